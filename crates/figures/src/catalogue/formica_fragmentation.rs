//! Formica's review of MICA: memory that items of mixed sizes take after many changes.

use std::fmt;
use std::sync::{Mutex, mpsc};

use anyhow::{Context as _, Result, ensure};
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_microbench::store_alone::Resident;
use glimmer_store::{
    access::Erew,
    evict::FIFO,
    heap::{History, NewItem},
    mica_cache::{self, PartitionConfig},
    table::{Stored, Table, TableWriter},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{Columns, Figure, Kind, Needs, Point, Run, Spec, plot::Plot};

const MEMORY_BYTES: usize = 64 << 20;
const MEMORY_BYTES_QUICK: usize = 4 << 20;
/// Bytes of a value, least and most. All factors between are equally frequent.
const VALUE_BYTES: [f64; 2] = [32.0, 1_024.0];
const KEY_BYTES: usize = 16;
const ITEM_BYTES_MAX: usize = 2 << 10;
/// By which the log's index is sized: fewer than the mean.
const ITEM_BYTES_EXPECTED: usize = 256;
/// How many times the memory's bytes are stored before each look.
const TURNOVERS: [usize; 5] = [1, 2, 4, 8, 16];
const SEEDS: usize = 5;

const ALLOCATOR: &str = "general allocator";
const LOG: &str = "circular log";
const PANEL: &str = "";
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// The figure.
pub struct Fragmentation;

/// Where items are kept, by numbers. That of an item that was removed is used again.
trait Keeper {
    /// Stores an item. False: the caller has to remove one first.
    fn store(&mut self, number: usize, value: &[u8]) -> bool;
    /// Removes an item.
    fn remove(&mut self, number: usize);
    /// Whether an item is there.
    fn has(&mut self, number: usize) -> bool;
    /// Bytes of memory that everything takes.
    fn bytes(&self) -> Result<usize>;
}

/// Each item in an allocation of its own.
struct Allocated {
    items: Vec<Option<Box<[u8]>>>,
    held: usize,
    held_max: usize,
    before: Resident,
}

impl Keeper for Allocated {
    fn store(&mut self, number: usize, value: &[u8]) -> bool {
        let bytes = KEY_BYTES + value.len();
        if self.held + bytes > self.held_max {
            return false;
        }
        self.held += bytes;
        self.items[number] = Some([&key(number)[..], value].concat().into());
        true
    }

    fn remove(&mut self, number: usize) {
        self.held -= self.items[number].take().map_or(0, |item| item.len());
    }

    fn has(&mut self, number: usize) -> bool {
        self.items[number].is_some()
    }

    fn bytes(&self) -> Result<usize> {
        let more = Resident::now()?.since(self.before).bytes as usize;
        // A few items may find room in what was resident before.
        Ok(more.max(self.held))
    }
}

/// One of our tables, with memory of a fixed size.
struct InTable<T> {
    table: T,
    seed: Seed,
    bytes: usize,
}

impl<T: Table> Keeper for InTable<T> {
    fn store(&mut self, number: usize, value: &[u8]) -> bool {
        let key = key(number);
        let item = NewItem {
            key: &key,
            value: [value, &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let keyhash = self.seed.keyhash(&key);
        self.table.enter(0).put(keyhash, &item, NOW) != Stored::OutOfMemory
    }

    fn remove(&mut self, number: usize) {
        let key = key(number);
        let keyhash = self.seed.keyhash(&key);
        self.table.enter(0).remove(keyhash, &key, NOW);
    }

    fn has(&mut self, number: usize) -> bool {
        let key = key(number);
        let keyhash = self.seed.keyhash(&key);
        self.table.enter(0).find(keyhash, &key, NOW).is_some()
    }

    fn bytes(&self) -> Result<usize> {
        Ok(self.bytes)
    }
}

fn key(number: usize) -> [u8; KEY_BYTES] {
    (number as u128).to_le_bytes()
}

/// A place for items, and the seed of what is stored there.
struct Case {
    place: &'static str,
    bytes: usize,
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, seed {}", self.place, self.seed)
    }
}

impl Case {
    /// The share of the memory that keys and values take, after each number of turnovers.
    fn measure(&self) -> Result<Vec<f64>> {
        let (bytes, seed) = (self.bytes, Seed(self.seed));
        let items_max = bytes / KEY_BYTES;
        let mut there = vec![(1, 1); items_max];
        there.clear();
        match self.place {
            ALLOCATOR => {
                // What notes the items is there before, and every page of it.
                let mut items = vec![Some(Box::default()); items_max];
                items.fill(None);
                self.turn_over(there, |before| Allocated {
                    items,
                    held: 0,
                    held_max: bytes,
                    before,
                })
            }
            _ => {
                // Of 15 and of 7 entries.
                let main_buckets = (bytes / ITEM_BYTES_EXPECTED).div_ceil(15);
                let spare_buckets = main_buckets / 2;
                let config = PartitionConfig {
                    log_bytes: bytes - 128 * main_buckets - 64 * spare_buckets,
                    main_buckets,
                    spare_buckets,
                    item_bytes_max: ITEM_BYTES_MAX,
                    hasher: seed.into(),
                    ..PartitionConfig::default()
                };
                let table = mica_cache::Owner::<Erew>::new(&config, FIFO)?;
                self.turn_over(there, |_| InTable { table, seed, bytes })
            }
        }
    }

    /// Stores items of random sizes. Where there is no room, a random item is removed. `there`
    /// notes those that are there, and `begin` is told what the process has before.
    fn turn_over<K: Keeper>(
        &self,
        mut there: Vec<(usize, usize)>,
        begin: impl FnOnce(Resident) -> K,
    ) -> Result<Vec<f64>> {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let value = vec![7; VALUE_BYTES[1] as usize];
        let [least, most] = VALUE_BYTES.map(f64::ln);
        let (mut offered, mut numbers, mut free, mut found) = (0, 0, Vec::new(), Vec::new());
        let mut keeper = begin(Resident::now()?);
        for turnovers in TURNOVERS {
            while offered < turnovers * self.bytes {
                let value_bytes = rng.random_range(least..most).exp() as usize;
                let number = free.pop().unwrap_or_else(|| {
                    numbers += 1;
                    numbers - 1
                });
                while !keeper.store(number, &value[..value_bytes]) {
                    ensure!(!there.is_empty(), "there is no room for an item");
                    let (removed, _) = there.swap_remove(rng.random_range(0..there.len()));
                    keeper.remove(removed);
                    free.push(removed);
                }
                there.push((number, KEY_BYTES + value_bytes));
                offered += KEY_BYTES + value_bytes;
            }
            // A log has evicted some.
            there.retain(|&(number, _)| keeper.has(number));
            let held: usize = there.iter().map(|(_, bytes)| bytes).sum();
            found.push(100.0 * held as f64 / keeper.bytes()? as f64);
        }
        Ok(found)
    }
}

impl Figure for Fragmentation {
    fn spec(&self) -> Spec {
        Spec {
            name: "formica-fragmentation",
            title: "Memory that items take after many changes",
            source: "Formica's review of MICA",
            claim: "Many small writes with a general allocator fragment memory. A log has no \
                    such holes.",
            here: "Keys and values that are there, as a share of the memory that is taken, after \
                   as many bytes were stored as the memory has, and after up to 16 times as many. \
                   Values have from 32 bytes to 1 KiB, all factors between them equally often. \
                   Each item of the general allocator (the C library's `malloc`) is an allocation \
                   of its own, and the memory is what the process has of the kernel: at most 64 \
                   MiB of keys and values are there, and a random one is freed for each that is \
                   too many. The circular log is one of cache mode under FIFO, which evicts its \
                   oldest. Its memory has 64 MiB and includes the index; the allocator has none. \
                   The heap of store mode is in `mica-heap`.",
            kind: Kind::Counted,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "panel",
                series: "memory",
                x: "bytes stored, as many times the memory",
                y: "keys and values, % of the memory",
            },
            plot: Plot::lines(
                "bytes stored, as many times the memory",
                "keys and values, % of the memory",
            )
            .log_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let bytes = run.pick(MEMORY_BYTES, MEMORY_BYTES_QUICK);
        let repeat = run.repeat(SEEDS) as u64;
        let cases = (1..=repeat).flat_map(|seed| [ALLOCATOR, LOG].map(|place| (seed, place)));
        let all_measured = Mutex::new(());
        std::thread::scope(|scope| {
            // A thread has an arena of the allocator to itself until it ends. So each waits for the
            // last to be measured: the next one would use memory that is resident already.
            let still_measuring = all_measured.lock();
            for (seed, place) in cases {
                let case = Case { place, bytes, seed };
                run.say(case.to_string());
                let (tell, told) = mpsc::channel();
                let all_measured = &all_measured;
                scope.spawn(move || {
                    // Nobody receives if the figure ends early.
                    let _ = tell.send(case.measure());
                    drop(all_measured.lock());
                });
                let percents = told.recv().context("the measurement panicked")??;
                for (turnovers, percent) in TURNOVERS.into_iter().zip(percents) {
                    run.add(Point::new(PANEL, place, turnovers as f64, percent));
                }
            }
            drop(still_measuring);
            Ok(())
        })
    }
}
