//! Our own tables, driven through the engine's pipeline as in the server.

use anyhow::{Result, ensure};
use glimmer_base::{Keyhash, limits::BATCH_MAX};
use glimmer_dispatch::PartitionMap;
use glimmer_engine::{Partitions, Spread, partitions, staged};
use glimmer_store::{
    access::{Access, Crcw, Crew, Erew},
    batches::Participant,
    evict::{FIFO, RULES, Rule},
    memc3,
    memory::PagePolicy,
    mica_cache::{Owner, PartitionConfig},
    mica_store::{self, StoreConfig},
    table::{Table, TableFigures},
};

use super::{
    Mode,
    items::{self, PAPER_KEY_BYTES, PAPER_VALUE_BYTES, SEED, TINY_BYTES},
    operations::Operations,
    rig::{Loss, Rig, Tally, Task, Team, Worker},
    stream::{KEYS_MAX, Operation, Share},
};
use crate::sizing;

/// Partitions per worker.
const PARTITIONS_PER_WORKER: usize = 8;
/// Margin for partitions that hashing fills unevenly.
const SLACK_PERCENT: usize = 5;
/// The share of items that a lossy index may lose once the log has wrapped.
const LOSS_OF_INDEX: f64 = 0.001;

/// One of our tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// Cache mode under an eviction rule.
    Cache(Rule),
    /// Store mode, which evicts nothing (MICA §4.3.3).
    Store,
    /// MemC3's table.
    Memc3,
}

impl Ours {
    /// Every table, cache mode under every rule.
    pub fn all() -> Vec<Ours> {
        let rules = RULES.iter().copied().map(Ours::Cache);
        rules.chain([Ours::Store, Ours::Memc3]).collect()
    }

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Ours::Cache(rule) => rule.name,
            Ours::Store => "store",
            Ours::Memc3 => "memc3",
        }
    }

    /// A table for this many workers with `items` tiny items.
    pub fn build(self, items: u32, mode: Mode, workers: usize) -> Result<Box<dyn Rig>> {
        self.build_on(PagePolicy::default(), items, mode, workers)
    }

    /// The same, on pages of this kind.
    pub fn build_on(
        self,
        pages: PagePolicy,
        items: u32,
        mode: Mode,
        workers: usize,
    ) -> Result<Box<dyn Rig>> {
        match mode {
            Mode::Erew => self.in_mode::<Erew>(pages, items, workers),
            Mode::Crew => self.in_mode::<Crew>(pages, items, workers),
            Mode::Crcw => self.in_mode::<Crcw>(pages, items, workers),
        }
    }

    fn in_mode<A: Access>(
        self,
        pages: PagePolicy,
        items: u32,
        workers: usize,
    ) -> Result<Box<dyn Rig>> {
        const K: usize = TINY_BYTES;
        match self {
            Ours::Cache(rule) => {
                let loss = match rule.reinsertion_threshold {
                    Some(_) => Loss::Refilled,
                    None => Loss::AtMost(LOSS_OF_INDEX),
                };
                cache::<A, K, K>(pages, items, workers, rule, loss)
            }
            Ours::Store => {
                build_table::<_, K, K>(items, workers, Loss::AtMost(0.0), |items_each| {
                    let config = sizing::store_partition(items_each, K, K, SEED);
                    let config = StoreConfig { pages, ..config };
                    Ok(mica_store::Owner::<A>::new(&config)?)
                })
            }
            Ours::Memc3 => memc3_table::<A, K, K>(pages, items, workers),
        }
    }
}

fn cache<A: Access, const K: usize, const V: usize>(
    pages: PagePolicy,
    items: u32,
    workers: usize,
    rule: Rule,
    loss: Loss,
) -> Result<Box<dyn Rig>> {
    build_table::<_, K, V>(items, workers, loss, |items_each| {
        let config = PartitionConfig {
            pages,
            ..sizing::partition(items_each, K, V, SEED)
        };
        Ok(Owner::<A>::new(&config, rule)?)
    })
}

fn memc3_table<A: Access, const K: usize, const V: usize>(
    pages: PagePolicy,
    items: u32,
    workers: usize,
) -> Result<Box<dyn Rig>> {
    build_table::<_, K, V>(items, workers, Loss::AtMost(0.0), |items_each| {
        let config = memc3::Memc3Config {
            pages,
            ..sizing::memc3_table(items_each, K, V, SEED)
        };
        Ok(memc3::Owner::<A>::new(&config)?)
    })
}

/// A circular log under a lossy index for one thread, as in Formica's review, with `items` items of
/// `K`-byte keys and tiny values.
pub fn log_and_lossy_index<const K: usize>(items: u32) -> Result<Box<dyn Rig>> {
    let (pages, loss) = (PagePolicy::default(), Loss::AtMost(LOSS_OF_INDEX));
    cache::<Erew, K, TINY_BYTES>(pages, items, 1, FIFO, loss)
}

/// A MemC3 table with `items` of the paper's items, in an access mode.
pub fn memc3(items: u32, mode: Mode, workers: usize) -> Result<Box<dyn Rig>> {
    const K: usize = PAPER_KEY_BYTES;
    const V: usize = PAPER_VALUE_BYTES;
    let pages = PagePolicy::default();
    match mode {
        Mode::Erew => memc3_table::<Erew, K, V>(pages, items, workers),
        Mode::Crew => memc3_table::<Crew, K, V>(pages, items, workers),
        Mode::Crcw => memc3_table::<Crcw, K, V>(pages, items, workers),
    }
}

/// An empty MemC3 table of this many bytes, including its index, shared by all workers; for the
/// paper's items.
pub fn memc3_cache(memory_bytes: usize, workers: usize) -> Result<Box<dyn Rig>> {
    let config = memc3::Memc3Config {
        memory_bytes,
        page_bytes: memc3::Memc3Config::page_bytes_for(memory_bytes),
        item_bytes_max: sizing::ITEM_BYTES_MAX,
        pages: PagePolicy::default(),
        hasher: SEED.into(),
        ..memc3::Memc3Config::default()
    };
    let make = |_| memc3::Owner::<Crcw>::new(&config);
    let team = team::<_, _, PAPER_KEY_BYTES, PAPER_VALUE_BYTES>(1, workers, Loss::Refilled, make)?;
    Ok(Box::new(team))
}

/// Fills tables that `make` creates for a number of items each.
fn build_table<T: Table, const K: usize, const V: usize>(
    items: u32,
    workers: usize,
    loss: Loss,
    mut make: impl FnMut(usize) -> Result<T>,
) -> Result<Box<dyn Rig>> {
    ensure!(
        (1..KEYS_MAX).contains(&items),
        "from 1 to {} items",
        KEYS_MAX - 1
    );
    let partition_count = workers * PARTITIONS_PER_WORKER;
    let items_each = (items as usize * (100 + SLACK_PERCENT)).div_ceil(100 * partition_count) + 256;
    let team = team::<_, _, K, V>(partition_count, workers, loss, |_| make(items_each))?;
    Ok(Box::new(team.fill(items)?))
}

fn team<T: Table, X, const K: usize, const V: usize>(
    partition_count: usize,
    workers: usize,
    loss: Loss,
    mut make: impl FnMut(Option<u32>) -> Result<T, X>,
) -> Result<Team<Ourselves<T, K, V>>, X> {
    let spread = Spread {
        partitions: partition_count,
        workers,
        numa_nodes: Vec::new(),
    };
    let mut figures = Vec::new();
    let handles = partitions(&spread, |node| {
        let table = make(node)?;
        figures.push(table.figures());
        Ok(table)
    })?;
    let mut workers: Vec<_> = handles
        .into_iter()
        .map(|(partitions, participant)| Ourselves {
            partitions,
            participant,
            hashed: [(Keyhash(0), Operation::new(0, false)); BATCH_MAX],
            figures: Vec::new(),
        })
        .collect();
    let share = Share {
        map: PartitionMap::new(partition_count, workers.len()),
        worker: 0,
        reads_all: T::Access::SHARED_READS,
        writes_all: T::Access::SHARED_WRITES,
        keyhash: items::keyhash::<K>,
    };
    workers[0].figures = figures;
    Ok(Team::new(workers, share, loss))
}

/// The handles of one worker.
struct Ourselves<T: Table, const K: usize, const V: usize> {
    partitions: Partitions<T>,
    participant: Participant,
    /// The operations of a batch with their keyhashes.
    hashed: [(Keyhash, Operation); BATCH_MAX],
    /// Statistics of all partitions, kept by the first worker.
    figures: Vec<Box<dyn TableFigures>>,
}

impl<T: Table, const K: usize, const V: usize> Worker for Ourselves<T, K, V> {
    #[inline(never)]
    fn batch(&mut self, batch: &[Operation], task: &Task, version: u32, tally: &mut Tally) {
        for (place, &operation) in self.hashed.iter_mut().zip(batch) {
            *place = (items::keyhash::<K>(operation.number()), operation);
        }
        let hashed = &self.hashed[..batch.len()];
        let reading = T::Access::SHARED_READS.then(|| self.participant.begin());
        let mut operations = Operations::<K, V>::new(reading, version, task.fill);
        staged(
            &mut self.partitions,
            hashed,
            task.stages,
            |job| job.0,
            &mut operations,
        );
        operations.add_to(tally);
    }

    fn items(&mut self) -> Option<u64> {
        let counts = self.figures.iter().map(|figures| figures.counts(0).items);
        Some(counts.sum())
    }
}

#[cfg(all(test, feature = "comparisons"))]
mod tests {
    use super::*;
    use glimmer_engine::Stages;
    use glimmer_loadgen::workload::Popularity;
    use glimmer_store::evict::{LRU, S3_FIFO};
    use std::time::Duration;

    #[test]
    fn every_table_reads_back_what_was_stored_through_any_stages() {
        const ITEMS: u32 = 50_000;
        let rigs = [
            (Ours::Cache(S3_FIFO), Mode::Erew, 2),
            (Ours::Cache(FIFO), Mode::Crew, 2),
            (Ours::Cache(S3_FIFO), Mode::Crcw, 2),
            (Ours::Cache(FIFO), Mode::Erew, 1),
            (Ours::Store, Mode::Crcw, 2),
            (Ours::Memc3, Mode::Erew, 1),
            (Ours::Memc3, Mode::Crcw, 2),
        ];
        for (ours, mode, workers) in rigs {
            let mut rig = ours.build(ITEMS, mode, workers).unwrap();
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
            let absent = (0..workers).map(|worker| rig.share(worker).draw_absent(ITEMS, 4096));
            let absent: Vec<_> = absent.collect();
            let task = Task::lasting(Duration::from_millis(1));
            assert_eq!(rig.run(&absent, &task).unwrap().found, 0, "{}", ours.name());
        }
    }

    /// Reinsertion evicts items that were not read for long. A reader stores them again, and the
    /// value is correct.
    #[test]
    fn what_lru_gives_up_is_stored_again() {
        const ITEMS: u32 = 20_000;
        let mut rig = Ours::Cache(LRU).build(ITEMS, Mode::Erew, 1).unwrap();
        let popularity = Popularity::zipf(u64::from(ITEMS), 0.99);
        let lists = [rig.share(0).draw(popularity, 0.95, 1 << 20)];
        let outcome = rig.run(&lists, &Task::filling()).unwrap();
        assert!(outcome.missed() < 0.2, "{outcome:?}");
        assert_eq!(
            outcome.reads,
            outcome.found + (outcome.missed() * outcome.reads as f64).round() as u64
        );
    }

    #[test]
    fn a_small_cache_misses_and_a_large_one_does_not() {
        let mut missed = [4 << 20, 64 << 20].map(|bytes| {
            let mut rig = memc3_cache(bytes, 1).unwrap();
            let share = rig.share(0);
            let all: Vec<_> = (0..200_000).map(|n| Operation::new(n, true)).collect();
            rig.run(&[all], &Task::filling()).unwrap();
            let held = rig.items().unwrap();
            assert!(
                held > bytes as u64 / 80 * 9 / 10 || held == 200_000,
                "{held}"
            );
            let lists = [share.draw(Popularity::uniform(200_000), 1.0, 50_000)];
            rig.run(&lists, &Task::filling()).unwrap().missed()
        });
        missed.sort_by(f64::total_cmp);
        assert!(missed[0] == 0.0 && missed[1] > 0.3, "{missed:?}");
    }
}
