//! Minos, §3.1: what small requests miss in caches if small cores read the queues of large ones.

use anyhow::Result;
use glimmer_base::Seed;
use glimmer_microbench::sizing::log_bytes_per_item;
use glimmer_queueing::{LARGE_KEYS, SMALL_KEYS};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::mica_index::PlannedIndex;
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    caches::{Cache, Core, LINE_BYTES},
    placement::scattered,
    plot::Plot,
    simulated::{GETS, LARGE_PERCENT, default_workload},
    workload::Mix,
};

const CORES: usize = 8;
/// Requests of a case. The first third fills the caches.
const REQUESTS: usize = 600_000;
const LINE: u64 = LINE_BYTES as u64;
/// Bytes of a key (§5.3).
const KEY_BYTES: usize = 8;
/// Bytes of the largest small value.
const SMALL_BYTES: usize = 1400;
/// Where the memory of each partition begins, and its log, beyond all lines of its index.
const PARTITION_AT: u64 = 1 << 44;
const LOG_AT: u64 = 1 << 40;
/// Where large items lie, and the bytes from one to the next.
const LARGE_AT: u64 = 1 << 50;
const LARGE_STEP: u64 = 1 << 20;

const ALL: &str = "in all queues";
const THEIRS: &str = "in large cores' queues";
const OVER: &str = "over keyhash";
/// Where a line is missed.
const PLACES: [&str; 5] = [
    "second cache",
    "last cache, an eighth each",
    "last cache of all cores",
    "TLB, 4 KiB pages",
    "TLB, 2 MiB pages",
];

/// The figure.
pub struct Locality;

/// How requests come, and how many large cores there may be. Keyhash sharding has none.
struct Way {
    name: &'static str,
    gets_are_random: bool,
    has_large: bool,
    large_cores: &'static [usize],
}

const WAYS: [Way; 3] = [
    Way {
        name: "queue by keyhash",
        gets_are_random: false,
        has_large: false,
        large_cores: &[0, 1, 2, 4],
    },
    Way {
        name: "GETs at random",
        gets_are_random: true,
        has_large: false,
        large_cores: &[0, 1],
    },
    Way {
        name: "beside large requests",
        gets_are_random: false,
        has_large: true,
        large_cores: &[0, 1],
    },
];

fn series(large: usize) -> String {
    match large {
        0 => "keyhash".to_owned(),
        1 => "size-aware, 1 large core".to_owned(),
        large => format!("size-aware, {large} large cores"),
    }
}

/// A small item.
#[derive(Clone, Copy, Default)]
struct Item {
    /// Its partition, which is also the RX queue of its key.
    queue: u8,
    /// Its number in the index of the partition.
    number: u32,
    /// Where it is in the log of the partition.
    at: u64,
    bytes: u32,
}

/// The items of all keys, by the rank of the key from 0, and the index that each partition has.
struct Items {
    items: Vec<Item>,
    index: PlannedIndex,
}

impl Items {
    fn of(keys: u32) -> Result<Items> {
        let workload = default_workload();
        let lengths: Vec<u32> = (0..=SMALL_BYTES)
            .map(|value| log_bytes_per_item(KEY_BYTES, value) as u32)
            .collect();
        let mut items = vec![Item::default(); keys as usize];
        let (mut numbers, mut ends) = ([0; CORES], [0; CORES]);
        // Popular keys do not lie beside one another.
        for stored in 0..keys {
            let rank = scattered(stored, keys);
            let (keyhash, value) = workload.item(u64::from(rank) + 1, false);
            let queue = keyhash.partition(CORES);
            let bytes = lengths[value as usize];
            items[rank as usize] = Item {
                queue: queue as u8,
                number: numbers[queue],
                at: ends[queue],
                bytes,
            };
            numbers[queue] += 1;
            ends[queue] += u64::from(bytes);
        }
        let most = numbers.into_iter().max().unwrap_or(0);
        Ok(Items {
            items,
            index: PlannedIndex::of(most as usize, Seed(1))?,
        })
    }
}

/// Misses at each of [`PLACES`].
type Missed = [u64; PLACES.len()];

/// Small requests of an RX queue, and what they missed.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    requests: u64,
    missed: Missed,
}

impl Tally {
    /// Misses per request of these queues.
    fn each(of: &[Tally]) -> [f64; PLACES.len()] {
        let requests: u64 = of.iter().map(|tally| tally.requests).sum();
        std::array::from_fn(|place| {
            let missed: u64 = of.iter().map(|tally| tally.missed[place]).sum();
            missed as f64 / requests as f64
        })
    }
}

/// The caches of all cores.
struct Caches {
    cores: Vec<Core>,
    last: Cache,
    last_missed: u64,
}

impl Caches {
    fn new() -> Caches {
        Caches {
            cores: (0..CORES).map(|_| Core::default()).collect(),
            last: Cache::new((20 << 20) / LINE_BYTES, 20, LINE_BYTES),
            last_missed: 0,
        }
    }

    fn access(&mut self, core: usize, address: u64, is_read: bool) {
        let second_missed = self.cores[core].counts.second_missed;
        self.cores[core].access(address);
        if self.cores[core].counts.second_missed > second_missed {
            self.last_missed += u64::from(!self.last.access(address));
        }
        if !is_read {
            let others = self.cores.iter_mut().enumerate();
            let others = others.filter(|(other, _)| *other != core);
            others.for_each(|(_, other)| other.forget(address));
        }
    }

    fn access_all(&mut self, core: usize, address: u64, bytes: u32, is_read: bool) {
        let lines = address / LINE..=(address + u64::from(bytes) - 1) / LINE;
        lines.for_each(|line| self.access(core, line * LINE, is_read));
    }

    fn missed(&self, core: usize) -> Missed {
        let counts = self.cores[core].counts;
        [
            counts.second_missed,
            counts.last_missed,
            self.last_missed,
            counts.small_page_missed,
            counts.huge_page_missed,
        ]
    }
}

/// Simulates requests. By RX queue: its small ones after the first third.
fn simulate(items: &Items, way: &Way, large: usize, requests: usize) -> [Tally; CORES] {
    let (mut caches, mut tallies) = (Caches::new(), [Tally::default(); CORES]);
    let (workload, small) = (default_workload(), CORES - large);
    let keys = items.items.len() as u32;
    let mut ranks = Mix::new(true, 0).popularity(keys).sampler();
    let (mut rng, mut turn) = (SmallRng::seed_from_u64(1), 0);
    for place in 0..requests {
        let is_read = rng.random_bool(GETS);
        let is_large = rng.random_bool(LARGE_PERCENT / 100.0) && way.has_large;
        let random = rng.random_range(0..CORES);
        let number = rng.random_range(0..LARGE_KEYS);
        let item = items.items[ranks.draw(&mut rng) as usize];
        let is_random = is_large || is_read && way.gets_are_random;
        let queue = if is_random { random } else { item.queue.into() };
        let core = if queue < small { queue } else { turn % small };
        turn += usize::from(queue >= small);
        if is_large {
            // A small core finds the item, and the last core reads or writes it.
            let (_, bytes) = workload.item(SMALL_KEYS + number, true);
            let at = LARGE_AT + number * LARGE_STEP;
            caches.access(core, at, true);
            let executes = if large == 0 { core } else { CORES - 1 };
            caches.access_all(executes, at, bytes, is_read);
            continue;
        }
        let before = caches.missed(core);
        let partition = PARTITION_AT * (u64::from(item.queue) + 1);
        items.index.lines(item.number as usize, |line| {
            caches.access(core, partition + LINE * line as u64, is_read);
        });
        caches.access_all(core, partition + LOG_AT + item.at, item.bytes, is_read);
        if place >= requests / 3 {
            let after = caches.missed(core);
            tallies[queue].requests += 1;
            let missed = tallies[queue].missed.iter_mut().enumerate();
            missed.for_each(|(place, missed)| *missed += after[place] - before[place]);
        }
    }
    tallies
}

impl Figure for Locality {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-locality",
            title: "What small requests miss in simulated caches",
            source: "Minos (NSDI'19), §3.1; a statement in the text, no figure",
            claim: "Small requests that arrive in the RX queues of large cores lose some locality, \
                    as all small cores read these queues. The loss is minor.",
            here: "Eight cores are simulated, each with a second cache of 256 KiB and TLBs, and \
                   the last cache of 20 MiB in two ways: an eighth for each core, and one for all. \
                   The paper's 16 million keys are in eight partitions. A core accesses the \
                   buckets that the index reads for a key, and the item in a log. Packets, code \
                   and stack have no part in it. A PUT takes the lines that it accesses from the \
                   other cores' own caches. With keyhash sharding, each core serves its own RX \
                   queue. With size-aware sharding, the small cores take the requests of a large \
                   core's queue in turn, one at a time, which is the worst for locality. The large \
                   cores of the paper's workloads are one (0.125% large requests), two (0.25%) and \
                   four (0.75%). The column `over keyhash` compares the requests of the same \
                   queues. With `queue by keyhash`, clients choose the queue of every request by \
                   the key, as in MICA's EREW. In the paper that holds for PUTs alone, and the \
                   queue of a GET is random (`GETs at random`), so that there is little locality \
                   to lose. Both have small requests alone. With `beside large requests`, large \
                   ones come as well, to any queue, and go through the caches of the core that \
                   executes them.",
            kind: Kind::Counted,
            needs: Needs::one_core(1000),
            columns: Columns {
                panel: "small requests",
                series: "dispatch",
                x: "cache or pages",
                y: "misses per request",
            },
            plot: Plot::bars("", "misses per request"),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(SMALL_KEYS as u32, 100_000);
        run.say(format!("the items of {keys} keys"));
        let items = Items::of(keys)?;
        let requests = run.pick(REQUESTS, 3000);
        let large_cores = |way: &'static Way| way.large_cores.iter().map(move |&it| (way, it));
        let cases: Vec<(&Way, usize)> = WAYS.iter().flat_map(large_cores).collect();
        let name = |(way, large): &(&Way, usize)| format!("{}, {}", way.name, series(*large));
        let simulated = run.in_parallel(&cases, name, |&(way, large)| {
            simulate(&items, way, large, requests)
        });
        let mut base = &simulated[0];
        for (&(way, large), tallies) in cases.iter().zip(&simulated) {
            if large == 0 {
                base = tallies;
            }
            // With keyhash sharding, one queue stands for those of large cores.
            for (which, from) in [(THEIRS, CORES - large.max(1)), (ALL, 0)] {
                let [each, bases] = [tallies, base].map(|of| Tally::each(&of[from..]));
                for (at, place) in PLACES.into_iter().enumerate() {
                    let panel = format!("{which}, {}", way.name);
                    let point = Point::new(panel, series(large), place, each[at]);
                    // A quick run may miss nothing.
                    let over = (bases[at] > 0.0).then(|| each[at] / bases[at]);
                    run.add(point.also_if(OVER, over));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_large_cores_queue_miss_more() {
        let items = Items::of(20_000).unwrap();
        let of = |way: &Way, large| simulate(&items, way, large, 30_000);
        let [keyhash, one] = [0, 1].map(|large| of(&WAYS[0], large));
        let requests = |tallies: &[Tally; CORES]| tallies.map(|tally| tally.requests);
        assert_eq!(requests(&keyhash), requests(&one));
        let [before, after] = [&keyhash, &one].map(|tallies| Tally::each(&tallies[7..]));
        assert!(after[0] > 1.2 * before[0], "{after:?}, {before:?}");
        // If the queue of a GET is random, each core serves all keys under both policies.
        let [keyhash, one] = [0, 1].map(|large| Tally::each(&of(&WAYS[1], large)[7..]));
        let ratio = one[0] / keyhash[0];
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_put_takes_lines_from_other_cores() {
        let mut caches = Caches::new();
        for (core, is_read, missed) in [(0, true, 1), (0, true, 1), (1, false, 1), (0, true, 2)] {
            caches.access(core, 4096, is_read);
            assert_eq!(caches.cores[core].counts.second_missed, missed);
        }
        // All cores have one last cache, which keeps the line.
        assert_eq!(caches.last_missed, 1);
    }
}
