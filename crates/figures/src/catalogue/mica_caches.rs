//! MICA, Figure 11, §3.3 and §4.3.1: what a simulated core misses in its caches and its TLB.

use anyhow::{Context, Result};
use glimmer_base::Seed;
use glimmer_microbench::sizing::log_bytes_per_item;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{mica_heaps::Heap, mica_index::PlannedIndex};
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    caches::{Core, Counts},
    placement::{HEAD, KEYS, PARTITIONS, Placement, scattered},
    plot::{Mark, Plot},
    workload::Mix,
};

/// Requests for the keys of all partitions. The first half fills the caches.
const REQUESTS: usize = 1 << 25;
/// Bytes of a key and of a value (§5.1).
const TINY_BYTES: usize = 8;
/// Where the log begins, beyond all lines of the index.
const LOG_AT: u64 = 1 << 40;
const GETS_PERCENT: u32 = 50;

/// Words of a heap.
const HEAP_WORDS: usize = (256 << 20) / 8;
/// Inserts into a full heap that are counted, after a quarter as many that are not.
const INSERTS: usize = 4_000_000;

const HITS: &str = "hit ratio, %";
const PAGES: &str = "TLB misses per request";
const INSERT: &str = "misses per insert";
const SKEWED: &str = "skewed";
const UNIFORM: &str = "uniform";
const LAST: &str = "last cache";
const ANY: &str = "second or last cache";
const SMALL: &str = "4 KiB pages";
const HUGE: &str = "2 MiB pages";
const LINES: &str = "lines per request";

/// The figure.
pub struct Caches;

/// A partition's index, and its log, in which the items lie in the order of their numbers.
struct Partition {
    index: PlannedIndex,
    item_bytes: u64,
}

impl Partition {
    /// A GET or a PUT that updates its item in place: both access the key's buckets and its item.
    fn request(&self, number: u32, core: &mut Core) {
        self.index
            .lines(number as usize, |line| core.access(64 * line as u64));
        let at = LOG_AT + u64::from(number) * self.item_bytes;
        core.access_all(at, self.item_bytes);
    }

    /// Counts the requests of a core, but not the first half.
    fn count(&self, requests: &[u32]) -> (Counts, usize) {
        let mut core = Core::default();
        let (first, second) = requests.split_at(requests.len() / 2);
        first
            .iter()
            .for_each(|&number| self.request(number, &mut core));
        core.counts = Counts::default();
        second
            .iter()
            .for_each(|&number| self.request(number, &mut core));
        (core.counts, second.len())
    }
}

/// The counts of all cores, and the ratios of all together.
fn add(run: &mut Run<'_>, series: &str, cores: &[(Counts, usize)]) {
    let sum = |of: fn(&Counts) -> u64| cores.iter().map(|(counts, _)| of(counts)).sum::<u64>();
    let requests: usize = cores.iter().map(|(_, requests)| requests).sum();
    let accesses = sum(|counts| counts.accesses) as f64;
    let second = sum(|counts| counts.second_missed) as f64;
    let last = sum(|counts| counts.last_missed) as f64;
    let lines = accesses / requests as f64;
    for (place, hits) in [(LAST, 1.0 - last / second), (ANY, 1.0 - last / accesses)] {
        run.add(Point::new(HITS, series, place, 100.0 * hits).also(LINES, lines));
    }
    for (place, missed) in [
        (SMALL, sum(|counts| counts.small_page_missed)),
        (HUGE, sum(|counts| counts.huge_page_missed)),
    ] {
        let each = missed as f64 / requests as f64;
        run.add(Point::new(PAGES, series, place, each));
    }
}

fn lookups(run: &mut Run<'_>) -> Result<()> {
    let keys = run.pick(KEYS, HEAD + 100_000);
    let placement = Placement::new(Seed(1), keys);
    let items = placement.items();
    run.say(format!("an index of {items} keys"));
    let partition = Partition {
        index: PlannedIndex::of(items as usize, Seed(1))?,
        item_bytes: log_bytes_per_item(TINY_BYTES, TINY_BYTES) as u64,
    };
    let count = run.pick(REQUESTS, 1 << 14);
    let mut rng = SmallRng::seed_from_u64(1);
    let mut ranks = Mix::new(true, GETS_PERCENT)
        .popularity(keys as u32)
        .sampler();
    let mut skewed = vec![Vec::new(); PARTITIONS];
    for _ in 0..count {
        let (core, number) = placement.of(ranks.draw(&mut rng));
        skewed[core].push(scattered(number, items));
    }
    let uniform = (0..count / PARTITIONS).map(|_| rng.random_range(0..items));
    let uniform: Vec<u32> = uniform.collect();
    let name = |list: &Vec<u32>| format!("{} requests", list.len());
    let cores = run.in_parallel(&skewed, name, |list| partition.count(list));
    add(run, UNIFORM, &[partition.count(&uniform)]);
    add(run, SKEWED, &cores);
    Ok(())
}

fn inserts(run: &mut Run<'_>) -> Result<()> {
    let words = run.pick(HEAP_WORDS, 1 << 17);
    let inserts = run.pick(INSERTS, 10_000);
    let counted = run.in_parallel(
        &Heap::NAMES,
        |name| (*name).to_owned(),
        |name| {
            let mut core = Core::default();
            let mut heap = Heap::new(name, words)?;
            let mut rng = SmallRng::seed_from_u64(1);
            while !heap.is_full() {
                heap.insert(&mut rng, &mut core);
            }
            for count in [inserts / 4, inserts] {
                core.counts = Counts::default();
                for _ in 0..count {
                    heap.insert(&mut rng, &mut core);
                }
            }
            anyhow::Ok(core.counts)
        },
    );
    for (name, counts) in Heap::NAMES.into_iter().zip(counted) {
        let counts = counts.context(name)?;
        for (place, missed) in [
            ("second cache", counts.second_missed),
            (LAST, counts.last_missed),
            ("TLB, 4 KiB pages", counts.small_page_missed),
            ("TLB, 2 MiB pages", counts.huge_page_missed),
        ] {
            let each = missed as f64 / inserts as f64;
            run.add(Point::new(INSERT, name, place, each));
        }
    }
    Ok(())
}

impl Figure for Caches {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-caches",
            title: "What a simulated core misses in its caches and its TLB",
            source: "MICA (NSDI'14), Figure 11, §3.3 and §4.3.1",
            claim: "Skew raises the average hit ratio of the processor's caches from 67.8% to \
                    77.8%. A log is written sequentially, with fewer misses of caches and TLB than \
                    a heap. Huge pages reduce TLB misses considerably.",
            here: "A core of the paper's machine is simulated: a second cache of 256 KiB, an \
                   eighth of the processor's last cache of 20 MiB, and TLBs of 64 and 512 pages of \
                   4 KiB, or of 32 pages of 2 MiB. The block used longest ago leaves. Requests for \
                   192 Mi keys of tiny items are divided among 16 cores, and each core accesses \
                   the buckets that the index of store mode reads for the key, and the item in a \
                   log. Packets, code and stack, which a server accesses as well, have no part in \
                   it. The paper does not say which cache it means. We take the last, as counters \
                   of processors do: hits there, of what the second cache lacked. For inserts, the \
                   three heaps of the tables are full, with 256 MiB and items of 24 to 160 bytes. \
                   Counted are the lines of the new item, and the first line of each item that \
                   leaves for it: the oldest in a log, and a random one in a heap. What a heap \
                   reads beyond that to find a place is not counted. No prefetch is simulated.",
            kind: Kind::Counted,
            needs: Needs::one_core(2500),
            columns: Columns {
                panel: "panel",
                series: "keys, or heap",
                x: "cache or pages",
                y: "%, or count",
            },
            plot: Plot::bars("", "").paper(
                "MICA §5.2: average hit ratio of the caches, 67.8% uniform and 77.8% skewed, of \
                 all that a core accesses",
                vec![
                    Mark::bar(HITS, UNIFORM, LAST, 67.8),
                    Mark::bar(HITS, SKEWED, LAST, 77.8),
                ],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        lookups(run)?;
        inserts(run)
    }
}
