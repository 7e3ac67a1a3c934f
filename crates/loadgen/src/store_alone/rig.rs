//! A store under test: its workers' handles, and the loop that drives them through the engine's pipeline.

use std::{
    sync::Barrier,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use glimmer_base::{Expiry, Keyhash, Moment, Seed, limits::BATCH_MAX};
use glimmer_engine::{Partitions, Spread, Stages, partitions, staged};
use glimmer_store::{
    access::Access,
    evict::Evict,
    heap::{History, NewItem},
    partition::Owner,
    store_mode,
    table::{Table, TableReader, TableWriter},
};

use super::stream::{KEYS_MAX, Operation, Share, key};
use crate::{machine, sizing};

const KEY_BYTES: usize = 8;
const VALUE_BYTES: usize = 8;
/// Partitions for each worker.
const PARTITIONS_PER_WORKER: usize = 8;
/// Room for how unevenly hashing fills the partitions.
const SLACK_PERCENT: usize = 5;
/// Batches between two looks at the clock.
const BATCHES: usize = 256;
const SEED: Seed = Seed(0x5EED);
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// A filled store of any access mode and rule.
pub trait Rig {
    /// What worker `worker` may touch.
    fn share(&self, worker: usize) -> Share;

    /// Operations per second of all workers together, each bound to the core of its number and going through its own list for about `duration`.
    fn operations_per_s(
        &mut self,
        lists: &[Vec<Operation>],
        stages: Stages,
        duration: Duration,
    ) -> Result<f64>;
}

/// The value that a key has after any number of writes: the low half says which.
#[inline(always)]
fn value(number: u32, version: u32) -> u64 {
    u64::from(number) << 32 | u64::from(version)
}

struct Workers<T: Table> {
    handles: Vec<Partitions<T>>,
    partitions: usize,
}

/// Fills a store with `items` items for so many workers.
pub fn build<A: Access, E: Evict>(items: u32, workers: usize, rule: E) -> Result<Box<dyn Rig>> {
    build_table(items, workers, |items_each| {
        let partition = sizing::partition(items_each, KEY_BYTES, VALUE_BYTES, SEED);
        Ok(Owner::<A, E>::new(&partition, rule.clone())?)
    })
}

/// The same in store mode.
pub fn build_store<A: Access>(items: u32, workers: usize) -> Result<Box<dyn Rig>> {
    build_table(items, workers, |items_each| {
        let partition = sizing::store_partition(items_each, KEY_BYTES, VALUE_BYTES, SEED);
        Ok(store_mode::Owner::<A>::new(&partition)?)
    })
}

/// Fills tables that `make` makes for a number of items each.
fn build_table<T: Table>(
    items: u32,
    workers: usize,
    mut make: impl FnMut(usize) -> Result<T>,
) -> Result<Box<dyn Rig>> {
    ensure!(
        (1..KEYS_MAX).contains(&items),
        "from 1 to {} items",
        KEYS_MAX - 1
    );
    let partition_count = workers * PARTITIONS_PER_WORKER;
    let items_each = (items as usize * (100 + SLACK_PERCENT)).div_ceil(100 * partition_count) + 256;
    let spread = Spread {
        partitions: partition_count,
        workers,
        numa_nodes: Vec::new(),
    };
    let mut rig = Workers {
        handles: partitions(&spread, |_| make(items_each))?,
        partitions: partition_count,
    };
    rig.fill(items)?;
    Ok(Box::new(rig))
}

impl<T: Table> Workers<T> {
    fn fill(&mut self, items: u32) -> Result<()> {
        let shares: Vec<Share> = (0..self.handles.len())
            .map(|worker| self.share(worker))
            .collect();
        std::thread::scope(|scope| {
            for (handle, share) in self.handles.iter_mut().zip(shares) {
                scope.spawn(move || {
                    // Every key is stored by its owner, whoever else may.
                    let share = Share {
                        writes_all: false,
                        ..share
                    };
                    let mut driver = Driver {
                        partitions: handle,
                        found: 0,
                        wrong: 0,
                        version: 0,
                    };
                    let mine = (0..items).filter(|&number| share.includes(number, true));
                    let mut batch = Vec::with_capacity(BATCH_MAX);
                    for number in mine {
                        batch.push(Operation::new(number, true));
                        if batch.len() == BATCH_MAX {
                            driver.run(&batch, Stages::ALL);
                            batch.clear();
                        }
                    }
                    driver.run(&batch, Stages::ALL);
                });
            }
        });
        Ok(())
    }
}

impl<T: Table> Rig for Workers<T> {
    fn share(&self, worker: usize) -> Share {
        Share {
            partitions: self.partitions,
            workers: self.handles.len(),
            worker,
            reads_all: T::Access::SHARED_READS,
            writes_all: T::Access::SHARED_WRITES,
            seed: SEED,
        }
    }

    fn operations_per_s(
        &mut self,
        lists: &[Vec<Operation>],
        stages: Stages,
        duration: Duration,
    ) -> Result<f64> {
        let start = Barrier::new(self.handles.len());
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (core, (handle, list)) in self.handles.iter_mut().zip(lists).enumerate() {
                let start = &start;
                let run = move || drive(handle, list, stages, duration, core, start);
                threads.push(scope.spawn(run));
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<f64>>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).sum()
        })
    }
}

fn drive<T: Table>(
    partitions: &mut Partitions<T>,
    list: &[Operation],
    stages: Stages,
    duration: Duration,
    core: usize,
    start: &Barrier,
) -> Result<f64> {
    let pinned = machine::pin([core]);
    start.wait();
    pinned?;
    let mut driver = Driver {
        partitions,
        found: 0,
        wrong: 0,
        version: 1,
    };
    let begin = Instant::now();
    let (mut operations, mut reads) = (0u64, 0u64);
    for blocks in list.chunks_exact(BATCH_MAX * BATCHES).cycle() {
        for batch in blocks.chunks_exact(BATCH_MAX) {
            reads += driver.run(batch, stages);
        }
        operations += blocks.len() as u64;
        if begin.elapsed() >= duration {
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(
        driver.wrong == 0,
        "{} of {reads} reads returned a wrong value",
        driver.wrong
    );
    let missed = (reads - driver.found) as f64 / reads as f64;
    // What a full index bucket loses; more would make the store look faster than it is.
    ensure!(
        missed < 0.001,
        "{:.2}% of the reads found nothing",
        missed * 100.0
    );
    Ok(operations as f64 / seconds)
}

/// One worker at work.
struct Driver<'a, T: Table> {
    partitions: &'a mut Partitions<T>,
    found: u64,
    wrong: u64,
    version: u32,
}

impl<T: Table> Driver<'_, T> {
    /// Executes a batch as the engine does, keyhashes included, and returns how many reads it held.
    #[inline]
    fn run(&mut self, batch: &[Operation], stages: Stages) -> u64 {
        let mut hashed = [(Keyhash(0), Operation::new(0, false)); BATCH_MAX];
        for (place, &operation) in hashed.iter_mut().zip(batch) {
            *place = (SEED.keyhash(&operation.key()), operation);
        }
        let hashed = &hashed[..batch.len()];
        let (mut found, mut wrong, mut reads) = (0, 0, 0);
        let version = self.version;
        staged(
            self.partitions,
            hashed,
            stages,
            |job| job.0,
            |partitions, _, &(keyhash, operation)| {
                if operation.writes() {
                    put(partitions, keyhash, operation.number(), version);
                    return;
                }
                reads += 1;
                if let Some(word) = get(partitions, keyhash, operation.number()) {
                    found += 1;
                    wrong += u64::from(word >> 32 != u64::from(operation.number()));
                }
            },
        );
        self.found += found;
        self.wrong += wrong;
        reads
    }
}

#[inline(always)]
fn put<T: Table>(partitions: &mut Partitions<T>, keyhash: Keyhash, number: u32, version: u32) {
    let (key, value) = (key(number), value(number, version).to_le_bytes());
    let item = NewItem {
        key: &key,
        value: [&value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let owner = partitions
        .owner(keyhash)
        .expect("lists hold only writes that a worker may do");
    owner.enter(0).put(keyhash, &item, NOW);
}

/// The value's word. Read as the engine reads: beside the writer where the access mode knows readers, else as the owner.
#[inline(always)]
fn get<T: Table>(partitions: &mut Partitions<T>, keyhash: Keyhash, number: u32) -> Option<u64> {
    let key = key(number);
    let word = |item: &glimmer_store::heap::Item<'_>| {
        let mut buffer = [0; 32];
        match item.value().short_bytes(&mut buffer) {
            Some(bytes) => bytes.try_into().map_or(u64::MAX, u64::from_le_bytes),
            None => u64::MAX,
        }
    };
    if let Some(reader) = partitions.reader(keyhash) {
        // A read that met a writer every time would go to the owner; here it is tried again.
        loop {
            if let Ok(read) = reader.read(keyhash, &key, NOW, 0, word) {
                return read;
            }
        }
    }
    let owner = partitions
        .owner(keyhash)
        .expect("lists hold only reads that a worker may do");
    owner.enter(0).read(keyhash, &key, NOW, word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::popularity::Popularity;
    use glimmer_store::{
        access::{Crcw, Crew, Erew},
        evict::{Fifo, S3Fifo},
    };

    #[test]
    fn every_mode_reads_back_what_was_stored_through_any_stages() {
        const ITEMS: u32 = 50_000;
        let rigs = [
            build::<Erew, _>(ITEMS, 2, S3Fifo).unwrap(),
            build::<Crew, _>(ITEMS, 2, Fifo).unwrap(),
            build::<Crcw, _>(ITEMS, 2, S3Fifo).unwrap(),
            build::<Erew, _>(ITEMS, 1, Fifo).unwrap(),
        ];
        for mut rig in rigs {
            let workers = rig.share(0).workers;
            let draw = |worker| {
                rig.share(worker)
                    .draw(Popularity::uniform(u64::from(ITEMS)), 0.5, 16_384)
            };
            let lists: Vec<_> = (0..workers).map(draw).collect();
            for (bucket, item) in [(true, true), (true, false), (false, true), (false, false)] {
                let stages = Stages { bucket, item };
                let rate = rig
                    .operations_per_s(&lists, stages, Duration::from_millis(5))
                    .unwrap();
                assert!(rate > 0.0);
            }
        }
    }
}
