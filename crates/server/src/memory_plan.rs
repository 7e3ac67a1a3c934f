//! How `-m` is spent: a pure function from the settings to the size of every part. All sizes are
//! decided before anything is allocated, and their sum never exceeds `-m`.

mod largest;

pub use largest::memory_mib_max;

use crate::config::{AccessMode, Mode, TableKind};
use glimmer_base::limits;
use glimmer_node::NodeConfig;
use glimmer_proto::text::Limits;
use largest::enough_partitions;

/// Bytes of a log entry in addition to key and value. The sum is rounded up to 8 bytes.
const ENTRY_HEADER_BYTES: usize = 8;
/// Bytes of a main bucket of the index: a version and its entries in two cache lines.
const BUCKET_BYTES: usize = 128;
/// Entries of a main bucket.
const BUCKET_ENTRIES: usize = 15;
/// Bytes of a spare bucket.
const SPARE_BYTES: usize = 64;
/// Load of the main buckets when the log is full of items of the hinted size, in percent: 15
/// items a bucket. At this load two buckets in five overflow and chain a spare bucket, and one item
/// in ten lies in a spare one.
const LOAD_PERCENT: usize = 100;
/// Spare buckets per hundred main buckets. At this load 47 are in use (a bucket with `n` items, of
/// a Poisson distribution with mean 15, needs `(n - 15) / 7` of them, rounded up); the rest
/// allows for items that come and go.
const SPARE_PERCENT: usize = 50;
/// Bytes of a hundred main buckets and the spare ones that come with them.
const INDEX_BYTES_PER_100_BUCKETS: usize = 100 * BUCKET_BYTES + SPARE_PERCENT * SPARE_BYTES;

/// In cache mode the index starts with this fraction of the buckets that items of the hinted size
/// finally need, so that a whole number of doublings leads there. The log uses the remaining memory
/// until the index needs it.
const FIRST_BUCKETS_PART: usize = 16;

/// Bytes that an item of store mode costs in addition to its entry, at most: 17 bytes of an index
/// that has just doubled, and a bit for each word of the heap.
const GROWING_INDEX_BYTES_PER_ITEM: usize = 19;

/// The log of a partition consists of whole pages.
const PAGE_BYTES: usize = 4 << 10;

/// A log holds at least this many of the largest items, so that one of them does not evict
/// everything else.
const LARGEST_ITEMS_IN_LOG: usize = 8;
/// The minimum instead, if a worker would otherwise own no partition.
const LARGEST_ITEMS_IN_OWNED_LOG: usize = 4;
/// The minimum in a log that is the only one. Below it, the item limit is lowered.
const LARGEST_ITEMS_IN_ONLY_LOG: usize = 3;

/// Partitions per worker in CRCW, where a writer locks its partition. With this many, two workers
/// rarely need the same lock.
const CRCW_PARTITIONS_PER_WORKER: usize = 8;

/// Buffers get at least 1/64 of `-m`, unless the user says otherwise.
const BUFFER_SHARE_MIN: usize = 64;
/// Buffers get at most 1/3 of `-m`, however large the largest item is. If that is too little, the
/// item limit is lowered.
const BUFFER_SHARE_MAX: usize = 3;
/// Bytes of buffers that may come from the process's own 32 MiB instead of `-m`, so that most of a
/// small `-m` remains for items.
const BUFFER_OVERDRAFT_BYTES: usize = 8 << 20;
/// Buffers take at most 1/16 of `-m` as long as the rest of them fits into the overdraft.
const BUFFER_SHARE_BEFORE_OVERDRAFT: usize = 16;
const _: () = assert!(BUFFER_SHARE_MAX < BUFFER_SHARE_BEFORE_OVERDRAFT);
const _: () = assert!(BUFFER_SHARE_BEFORE_OVERDRAFT < BUFFER_SHARE_MIN);
/// The smallest store that is worth starting.
const STORE_BYTES_MIN: usize = 256 << 10;

/// The input of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// `-m` in bytes.
    pub memory_bytes: usize,
    /// Worker threads.
    pub workers: usize,
    /// Whether items are evicted when memory is full.
    pub mode: Mode,
    /// The table of each partition.
    pub table: TableKind,
    /// Which workers may access a partition.
    pub access: AccessMode,
    /// The requested largest item in bytes.
    pub item_bytes_max: usize,
    /// Key and value bytes of a typical item.
    pub item_bytes_hint: usize,
    /// Bytes of the buffers of all workers, instead of 1/64 of `-m`. At least the buffers that the
    /// largest item needs, and at most 1/3 of `-m`.
    pub buffer_bytes: Option<usize>,
    /// Bytes of the hot-key accelerator.
    pub accelerator_bytes: usize,
}

/// The size of every part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Number of partitions.
    pub partitions: usize,
    /// Bytes of each partition's log, in whole pages, when it is full of items of the hinted size.
    /// In store mode, of heap and index together.
    pub log_bytes: usize,
    /// Main index buckets of each partition at that point; zero in store mode.
    pub main_buckets: usize,
    /// Spare index buckets of each partition, which overflowing main buckets chain.
    pub spare_buckets: usize,
    /// Largest item in bytes: the requested limit, or less if `-m` is too small for it.
    pub item_bytes_max: usize,
    /// Bytes of each worker's buffers for received data, replies, and requests forwarded to other
    /// workers.
    pub buffer_bytes_per_worker: usize,
    /// Bytes of the hot-key accelerator.
    pub accelerator_bytes: usize,
}

/// The initial sizes of a partition in cache mode. See [`MemoryPlan::first_sizes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSizes {
    /// Bytes of the log, in whole pages.
    pub log_bytes: usize,
    /// Main index buckets.
    pub main_buckets: usize,
    /// Spare index buckets.
    pub spare_buckets: usize,
}

/// Why there is no plan for a given `-m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// `-m` is too small for the settings.
    #[error(
        "-m {given_mib} is too small for one partition and {workers} worker threads: \
         give at least -m {needed_mib}, or fewer threads with -t"
    )]
    TooSmall {
        /// The given `-m`.
        given_mib: usize,
        /// The requested number of workers.
        workers: usize,
        /// The smallest `-m` for this number of workers.
        needed_mib: usize,
    },
    /// `-m` exceeds the maximum number of partitions of the maximum size.
    #[error(
        "-m {given_mib} is too large for {table}: give at most -m {largest_mib}, or {alternative}"
    )]
    TooLarge {
        /// The given `-m`.
        given_mib: usize,
        /// The requested table.
        table: &'static str,
        /// The largest `-m` that works.
        largest_mib: usize,
        /// An alternative that works.
        alternative: &'static str,
    },
}

impl MemoryPlan {
    /// Makes the plan.
    pub fn make(needs: Needs) -> Result<MemoryPlan, PlanError> {
        let largest_mib = memory_mib_max(needs.mode, needs.table);
        if needs.memory_bytes > largest_mib << 20 {
            let (table, alternative) = match (needs.mode, needs.table) {
                (Mode::Store, _) => ("--mode store", "use --mode cache"),
                (Mode::Cache, TableKind::Memc3) => ("--table memc3", "use --table mica"),
                (Mode::Cache, TableKind::Mica) => ("--table mica", "run several servers"),
            };
            return Err(PlanError::TooLarge {
                given_mib: needs.memory_bytes >> 20,
                table,
                largest_mib,
                alternative,
            });
        }
        Self::try_make(needs).ok_or_else(|| PlanError::TooSmall {
            given_mib: needs.memory_bytes >> 20,
            workers: needs.workers,
            needed_mib: (1..)
                .find(|mib| {
                    Self::try_make(Needs {
                        memory_bytes: mib << 20,
                        ..needs
                    })
                    .is_some()
                })
                .expect("enough memory is enough"),
        })
    }

    fn try_make(needs: Needs) -> Option<MemoryPlan> {
        let item_bytes_max = needs.item_bytes_max.min(item_bytes_bufferable(needs)?);
        let wanted_bytes = needs
            .buffer_bytes
            .map(|bytes| bytes.min(needs.memory_bytes / BUFFER_SHARE_MAX))
            .unwrap_or(needs.memory_bytes / BUFFER_SHARE_MIN);
        let buffer_bytes_per_worker =
            buffer_bytes_min(item_bytes_max).max(wanted_bytes / needs.workers);
        let buffer_bytes = buffer_bytes_per_worker * needs.workers;
        let store_bytes = (needs.memory_bytes - buffer_bytes_counted(needs, buffer_bytes))
            .checked_sub(needs.accelerator_bytes)?;
        if store_bytes < STORE_BYTES_MIN {
            return None;
        }
        if needs.mode == Mode::Store {
            let partitions = partitions(needs, item_bytes_max, store_bytes);
            let partitions = enough_partitions(needs, partitions, store_bytes);
            let log_bytes = store_bytes / partitions / PAGE_BYTES * PAGE_BYTES;
            return Some(MemoryPlan {
                partitions,
                log_bytes,
                main_buckets: 0,
                spare_buckets: 0,
                item_bytes_max: item_bytes_max.min(log_bytes / LARGEST_ITEMS_IN_ONLY_LOG),
                buffer_bytes_per_worker,
                accelerator_bytes: needs.accelerator_bytes,
            });
        }
        let partitions = partitions(needs, item_bytes_max, log_share(store_bytes, needs));
        let partitions = enough_partitions(needs, partitions, store_bytes);
        let partition_bytes = store_bytes / partitions;
        let log_bytes = log_share(partition_bytes, needs) / PAGE_BYTES * PAGE_BYTES;
        let index_bytes = partition_bytes - log_bytes;
        let main_buckets = (index_bytes * 100 / INDEX_BYTES_PER_100_BUCKETS).max(1);
        let spare_buckets = index_bytes.saturating_sub(main_buckets * BUCKET_BYTES) / SPARE_BYTES;
        // MemC3 uses all of its memory for items and divides it between log and index itself.
        let items_bytes = match needs.table {
            TableKind::Mica => log_bytes,
            TableKind::Memc3 => log_bytes + index_bytes_of(main_buckets, spare_buckets),
        };
        Some(MemoryPlan {
            partitions,
            log_bytes,
            main_buckets,
            spare_buckets,
            item_bytes_max: item_bytes_max.min(items_bytes / LARGEST_ITEMS_IN_ONLY_LOG),
            buffer_bytes_per_worker,
            accelerator_bytes: needs.accelerator_bytes,
        })
    }

    /// The largest number of workers, up to `needs.workers`, for which the item limit need not be
    /// lowered for lack of buffers; at least one.
    pub fn workers_fitting(needs: Needs) -> usize {
        let keeps_limit = |&workers: &usize| {
            item_bytes_bufferable(Needs { workers, ..needs })
                .is_some_and(|bytes| bytes >= needs.item_bytes_max)
        };
        (1..=needs.workers).rev().find(keeps_limit).unwrap_or(1)
    }

    /// The total: at most `-m`, plus up to 8 MiB of buffers if buffers would otherwise take more
    /// than 1/16 of `-m`.
    pub fn total_bytes(&self, workers: usize) -> usize {
        self.partitions * self.partition_bytes()
            + workers * self.buffer_bytes_per_worker
            + self.accelerator_bytes
    }

    /// The bytes of one partition, in total.
    pub fn partition_bytes(&self) -> usize {
        self.log_bytes + index_bytes_of(self.main_buckets, self.spare_buckets)
    }

    /// The initial sizes of a partition in cache mode. They use all planned memory; the index,
    /// which will grow, starts with a small part of it.
    pub fn first_sizes(&self) -> FirstSizes {
        let main_buckets = (self.main_buckets / FIRST_BUCKETS_PART).max(1);
        let spare_buckets = (self.spare_buckets / FIRST_BUCKETS_PART).max(1);
        let spare_buckets = spare_buckets.min(self.spare_buckets).min(main_buckets);
        let index_bytes = index_bytes_of(main_buckets, spare_buckets);
        FirstSizes {
            log_bytes: (self.partition_bytes() - index_bytes) / PAGE_BYTES * PAGE_BYTES,
            main_buckets,
            spare_buckets,
        }
    }

    /// The number of items of `item_bytes` (key and value) that full logs hold; in store mode, a
    /// lower bound.
    pub fn items_resident(&self, item_bytes: usize) -> usize {
        let index_bytes = match self.main_buckets {
            0 => GROWING_INDEX_BYTES_PER_ITEM,
            _ => 0,
        };
        self.partitions * (self.log_bytes / (entry_bytes(item_bytes) + index_bytes))
    }
}

fn index_bytes_of(main_buckets: usize, spare_buckets: usize) -> usize {
    main_buckets * BUCKET_BYTES + spare_buckets * SPARE_BYTES
}

fn entry_bytes(item_bytes: usize) -> usize {
    (ENTRY_HEADER_BYTES + item_bytes).next_multiple_of(8)
}

/// The share of `store_bytes` for the log, so that log and index fill up at the same time with
/// items of the hinted size.
fn log_share(store_bytes: usize, needs: Needs) -> usize {
    let entry_bytes = entry_bytes(needs.item_bytes_hint) as u128;
    // Per entry, in 1/10,000 of a byte: 128 bytes of bucket for 15 entries at the planned load, and
    // its share of spare buckets.
    let index_scaled =
        (INDEX_BYTES_PER_100_BUCKETS * 10_000 / (BUCKET_ENTRIES * LOAD_PERCENT)) as u128;
    let entry_scaled = entry_bytes * 10_000;
    let log_bytes = (store_bytes as u128 * entry_scaled / (entry_scaled + index_scaled)) as usize;
    // The index gets at least two buckets, whatever the hint.
    log_bytes.min(store_bytes - (2 * BUCKET_BYTES).min(store_bytes))
}

fn partitions(needs: Needs, item_bytes_max: usize, log_bytes: usize) -> usize {
    let holding = |items: usize| (log_bytes / (item_bytes_max * items)).max(1);
    let partitions = match needs.access {
        AccessMode::Crcw => {
            (needs.workers * CRCW_PARTITIONS_PER_WORKER).min(holding(LARGEST_ITEMS_IN_LOG))
        }
        AccessMode::Erew | AccessMode::Crew => {
            needs.workers.min(holding(LARGEST_ITEMS_IN_OWNED_LOG))
        }
    };
    partitions.min(limits::PARTITIONS_MAX)
}

/// The part of all buffers that counts towards `-m`; the rest is overdraft.
fn buffer_bytes_counted(needs: Needs, buffer_bytes: usize) -> usize {
    let share = needs.memory_bytes / BUFFER_SHARE_BEFORE_OVERDRAFT;
    let beyond_overdraft = buffer_bytes.saturating_sub(BUFFER_OVERDRAFT_BYTES);
    buffer_bytes.min(share.max(beyond_overdraft))
}

/// The minimum for a worker's buffers.
fn buffer_bytes_min(item_bytes_max: usize) -> usize {
    NodeConfig::buffer_bytes_min(&Limits { item_bytes_max })
}

/// The largest item for which every worker can have its buffers; `None` if not even the smallest
/// limit works.
fn item_bytes_bufferable(needs: Needs) -> Option<usize> {
    let bytes = (needs.memory_bytes / BUFFER_SHARE_MAX)
        .max(BUFFER_OVERDRAFT_BYTES.min(needs.memory_bytes.saturating_mul(8)));
    let bytes = bytes / needs.workers;
    let fits = |&item_bytes: &usize| buffer_bytes_min(item_bytes) <= bytes;
    // The need grows with the item size, so binary search finds the largest one that fits.
    let (mut fitting, mut beyond) = (limits::ITEM_BYTES_MIN, limits::ITEM_BYTES_MAX + 1);
    if !fits(&fitting) {
        return None;
    }
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(&middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    Some(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: usize = 1 << 20;
    /// Entries of a spare bucket.
    const SPARE_ENTRIES: usize = 7;

    fn needs(mib: usize, workers: usize, access: AccessMode) -> Needs {
        Needs {
            memory_bytes: mib * MIB,
            workers,
            mode: Mode::Cache,
            table: TableKind::Mica,
            access,
            item_bytes_max: limits::ITEM_BYTES_DEFAULT,
            item_bytes_hint: crate::config::ITEM_BYTES_HINT_DEFAULT,
            buffer_bytes: None,
            accelerator_bytes: 0,
        }
    }

    /// The user's bytes count, within what the largest item needs and a third of the memory.
    #[test]
    fn buffers_take_what_the_user_says() {
        let needs = needs(4096, 4, AccessMode::Crcw);
        let total = |buffer_bytes| {
            let plan = MemoryPlan::make(Needs {
                buffer_bytes,
                ..needs
            })
            .unwrap();
            (4 * plan.buffer_bytes_per_worker, plan.items_resident(48))
        };
        let (usual, items) = total(None);
        assert_eq!(usual, 64 * MIB);
        let (least, more_items) = total(Some(0));
        assert_eq!(least, 4 * buffer_bytes_min(limits::ITEM_BYTES_DEFAULT));
        assert!(least < usual && more_items > items);
        assert_eq!(total(Some(1024 * MIB)).0, 1024 * MIB);
        let (most, fewer_items) = total(Some(4096 * MIB));
        assert!((1365 * MIB..1366 * MIB).contains(&most) && fewer_items < items);
    }

    #[test]
    fn a_gibibyte_holds_nearly_sixteen_million_small_items() {
        for &access in AccessMode::ALL {
            for workers in [1, 2] {
                let plan = MemoryPlan::make(needs(1024, workers, access)).unwrap();
                let items = plan.items_resident(48);
                assert!(
                    items >= 15_800_000,
                    "{access} with {workers}: {items} in {plan:?}"
                );
                let entries = plan.partitions * plan.main_buckets * BUCKET_ENTRIES;
                let load = items as f64 / entries as f64;
                assert!(
                    (0.99..1.01).contains(&load),
                    "{access} with {workers}: load {load}"
                );
            }
        }
    }

    /// Where the bytes go when the memory is full of items of the default hint.
    #[test]
    fn the_documents_say_where_the_bytes_of_an_item_go() {
        let (key_bytes, value_bytes) = (16, 32);
        let plan = MemoryPlan::make(needs(1024, 1, AccessMode::Crcw)).unwrap();
        let items = plan.items_resident(key_bytes + value_bytes) as f64;
        let [mains, spares] = [plan.main_buckets, plan.spare_buckets]
            .map(|buckets| (plan.partitions * buckets) as f64 / items);
        let entry_bytes = entry_bytes(key_bytes + value_bytes);
        let places = mains * BUCKET_ENTRIES as f64 + spares * SPARE_ENTRIES as f64;
        let rows = [
            ("key and value", (key_bytes + value_bytes) as f64),
            (
                "header in the log: CAS unique, lengths, marks",
                ENTRY_HEADER_BYTES as f64,
            ),
            (
                "up to the next multiple of 8",
                (entry_bytes - ENTRY_HEADER_BYTES - key_bytes - value_bytes) as f64,
            ),
            ("index entry: tag, offset, use count", 8.0),
            ("versions and links of the buckets", 8.0 * (mains + spares)),
            ("places in buckets without an entry", 8.0 * (places - 1.0)),
            (
                "buffers of the connections, in memory only while in use",
                plan.buffer_bytes_per_worker as f64 / items,
            ),
            ("of `-m`, altogether", (1024 * MIB) as f64 / items),
        ];
        let table: String = (rows.iter())
            .map(|(what, bytes)| format!("| {bytes:.2} | {what} |\n"))
            .collect();
        let document = include_str!("../../../docs/memory.md");
        assert!(
            document.contains(&table),
            "docs/memory.md has another table than\n{table}"
        );
    }

    #[test]
    fn a_partition_begins_within_the_plan() {
        for mib in [2, 64, 1024] {
            let plan = MemoryPlan::make(needs(mib, 2, AccessMode::Crcw)).unwrap();
            let first = plan.first_sizes();
            let bytes = first.log_bytes + index_bytes_of(first.main_buckets, first.spare_buckets);
            assert!(bytes <= plan.partition_bytes());
            assert!(plan.partition_bytes() - bytes < PAGE_BYTES);
            assert!(first.log_bytes > plan.log_bytes);
        }
    }

    #[test]
    fn a_gibibyte_stores_thirteen_million_small_items() {
        for &access in AccessMode::ALL {
            let needs = Needs {
                mode: Mode::Store,
                ..needs(1024, 2, access)
            };
            let items = MemoryPlan::make(needs).unwrap().items_resident(48);
            assert!(items >= 13_500_000, "{access}: {items}");
        }
    }

    #[test]
    fn an_accelerator_takes_its_memory_from_the_store() {
        for &access in AccessMode::ALL {
            let without = needs(64, 2, access);
            let with = Needs {
                accelerator_bytes: 4 * MIB,
                ..without
            };
            let plans = [without, with].map(|needs| MemoryPlan::make(needs).unwrap());
            let [before, after] = plans.map(|plan| plan.partitions * plan.partition_bytes());
            let rounding = PAGE_BYTES * plans[0].partitions.max(plans[1].partitions);
            assert!(
                (before - after).abs_diff(4 * MIB) <= rounding,
                "{access}: {plans:?}"
            );
            assert_eq!(plans[1].accelerator_bytes, 4 * MIB);
            assert_eq!(
                plans[0].buffer_bytes_per_worker,
                plans[1].buffer_bytes_per_worker
            );
        }
    }

    #[test]
    fn too_little_memory_for_an_accelerator_is_refused() {
        let needs = Needs {
            accelerator_bytes: 8 * MIB,
            ..needs(8, 1, AccessMode::Crcw)
        };
        let needed_mib = needed_mib(MemoryPlan::make(needs).unwrap_err());
        assert!(needed_mib > 8);
        let enough = Needs {
            memory_bytes: needed_mib * MIB,
            ..needs
        };
        assert!(MemoryPlan::make(enough).is_ok());
    }

    #[test]
    fn two_mebibytes_are_enough_with_a_lower_item_limit() {
        for &access in AccessMode::ALL {
            let plan = MemoryPlan::make(needs(2, 4, access)).unwrap();
            assert!(plan.item_bytes_max < limits::ITEM_BYTES_DEFAULT);
            assert!(plan.item_bytes_max >= 100 << 10, "{plan:?}");
        }
    }

    #[test]
    fn the_default_keeps_the_item_limit_and_gives_every_worker_a_partition() {
        for &access in AccessMode::ALL {
            for workers in 1..=4 {
                let plan = MemoryPlan::make(needs(64, workers, access)).unwrap();
                assert_eq!(
                    plan.item_bytes_max,
                    limits::ITEM_BYTES_DEFAULT,
                    "{access} with {workers}"
                );
                assert!(
                    plan.partitions >= workers,
                    "{access} with {workers}: {plan:?}"
                );
            }
        }
    }

    #[test]
    fn a_small_store_keeps_most_of_its_memory_for_items() {
        for &access in AccessMode::ALL {
            for mib in [16, 24, 32, 64, 128, 1024] {
                let plan = MemoryPlan::make(needs(mib, 2, access)).unwrap();
                let store_bytes = plan.partitions * plan.partition_bytes();
                let share = store_bytes as f64 / (mib * MIB) as f64;
                assert!(share > 0.92, "{access} -m {mib}: {share} of {plan:?}");
                assert_eq!(plan.item_bytes_max, limits::ITEM_BYTES_DEFAULT);
            }
        }
    }

    #[test]
    fn too_small_says_what_would_do() {
        let error = MemoryPlan::make(needs(1, 200, AccessMode::Crcw)).unwrap_err();
        let needed_mib = needed_mib(error);
        assert!(MemoryPlan::make(needs(needed_mib, 200, AccessMode::Crcw)).is_ok());
        assert!(MemoryPlan::make(needs(needed_mib - 1, 200, AccessMode::Crcw)).is_err());
        assert!(
            error.to_string().starts_with("-m 1 is too small"),
            "{error}"
        );
        assert!(MemoryPlan::make(needs(0, 1, AccessMode::Crcw)).is_err());
        assert!(MemoryPlan::make(needs(1, 1, AccessMode::Crcw)).is_ok());
    }

    fn needed_mib(error: PlanError) -> usize {
        match error {
            PlanError::TooSmall { needed_mib, .. } => needed_mib,
            PlanError::TooLarge { .. } => panic!("{error}"),
        }
    }

    fn any_needs() -> impl Strategy<Value = Needs> {
        let item_limits =
            prop::sample::select(vec![1 << 10, 5000, 512 << 10, MIB, 64 * MIB, 1 << 30]);
        let mib = prop_oneof![0usize..64, 64usize..4096, Just(1 << 20)];
        (
            mib,
            1usize..=limits::WORKERS_MAX,
            prop::sample::select(AccessMode::ALL),
            prop::sample::select(Mode::ALL),
            item_limits,
            1usize..2000,
            prop::option::of(0usize..2048),
            prop::sample::select(vec![0, 2 * MIB, 160 * MIB]),
        )
            .prop_map(
                |(mib, workers, access, mode, item_bytes_max, hint, buffers, accelerator_bytes)| {
                    Needs {
                        buffer_bytes: buffers.map(|mib| mib * MIB),
                        memory_bytes: mib * MIB,
                        workers,
                        mode,
                        table: TableKind::Mica,
                        access,
                        item_bytes_max,
                        item_bytes_hint: hint.min(item_bytes_max),
                        accelerator_bytes,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn every_plan_holds_together(needs in any_needs()) {
            match MemoryPlan::make(needs) {
                Err(error) => {
                    let needed_mib = needed_mib(error);
                    prop_assert!(needed_mib > needs.memory_bytes / MIB);
                    let enough = Needs { memory_bytes: needed_mib * MIB, ..needs };
                    prop_assert!(MemoryPlan::make(enough).is_ok());
                }
                Ok(plan) => {
                    let total_bytes = plan.total_bytes(needs.workers);
                    let buffer_bytes = plan.buffer_bytes_per_worker * needs.workers;
                    let share = needs.memory_bytes / BUFFER_SHARE_BEFORE_OVERDRAFT;
                    let overdraft = buffer_bytes.saturating_sub(share).min(BUFFER_OVERDRAFT_BYTES);
                    prop_assert!(total_bytes <= needs.memory_bytes + overdraft, "{plan:?}");
                    prop_assert!(total_bytes >= needs.memory_bytes / 10 * 9, "{plan:?}");
                    prop_assert!((1..=limits::PARTITIONS_MAX).contains(&plan.partitions));
                    prop_assert!(plan.log_bytes > 0 && plan.log_bytes % PAGE_BYTES == 0);
                    prop_assert_eq!(plan.main_buckets >= 1, needs.mode == Mode::Cache);
                    prop_assert!(plan.item_bytes_max <= needs.item_bytes_max);
                    prop_assert!(plan.item_bytes_max >= limits::ITEM_BYTES_MIN);
                    prop_assert!(plan.log_bytes >= 3 * plan.item_bytes_max, "{plan:?}");
                    let needed_bytes = buffer_bytes_min(plan.item_bytes_max);
                    prop_assert!(plan.buffer_bytes_per_worker >= needed_bytes);
                    if needs.access == AccessMode::Crcw && plan.partitions > 1 {
                        prop_assert!(plan.log_bytes >= 7 * plan.item_bytes_max, "{plan:?}");
                    }
                }
            }
        }

        #[test]
        fn more_memory_never_lowers_the_item_limit(needs in any_needs(), more in 1usize..512) {
            let bigger = Needs { memory_bytes: needs.memory_bytes + more * MIB, ..needs };
            if let Ok(plan) = MemoryPlan::make(needs) {
                let bigger = MemoryPlan::make(bigger).expect("more than enough");
                prop_assert!(bigger.item_bytes_max >= plan.item_bytes_max);
            }
        }
    }
}
