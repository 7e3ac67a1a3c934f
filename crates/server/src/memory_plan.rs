//! How `-m` is spent: a pure function from the settings to the size of every part. All sizes are
//! decided before anything is allocated, and their sum never exceeds `-m`.

#[cfg(test)]
mod documents;
mod largest;
#[cfg(test)]
mod tests;

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
/// The indexes of all partitions together start with this much at most, and then with a smaller
/// fraction. Items come to buckets all over an index, so that few of them make all of its pages
/// resident.
const FIRST_INDEX_BYTES_MAX: usize = 16 << 20;

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
/// With more workers than [`WORKERS_BEFORE_ITEMS`], buffers get at most 1/10 of `-m`.
const BUFFER_SHARE_OF_MANY_WORKERS: usize = 10;
/// As many workers as memcached starts by itself.
const WORKERS_BEFORE_ITEMS: usize = 4;
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
    /// Bytes that encrypted connections may take for it.
    pub encryption_bytes: usize,
    /// Bytes of packets that go past the kernel's stack.
    pub packet_bytes: usize,
}

impl Needs {
    /// What else to do where `-m` is too small.
    fn alternative(&self) -> &'static str {
        let parts = [
            (self.accelerator_bytes, ", or fewer --accelerate-slots"),
            (self.encryption_bytes, ", or fewer connections (-c)"),
            (self.packet_bytes, ", or leave --packet-transport out"),
        ];
        let most = parts.into_iter().max_by_key(|(bytes, _)| *bytes);
        match most {
            Some((bytes, what)) if bytes > self.memory_bytes / 4 => what,
            _ if self.workers > 1 => ", or fewer threads with -t",
            _ => "",
        }
    }
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
    /// Bytes that encrypted connections may take for it.
    pub encryption_bytes: usize,
    /// Bytes of packets that go past the kernel's stack.
    pub packet_bytes: usize,
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
        "-m {given_mib} is too small for one partition, the buffers of -t {workers} and what \
         other flags ask for: give at least -m {needed_mib}{alternative}"
    )]
    TooSmall {
        /// The given `-m`.
        given_mib: usize,
        /// The requested number of workers.
        workers: usize,
        /// The smallest `-m` for this number of workers.
        needed_mib: usize,
        /// The flag that asks for most, and what to do about it.
        alternative: &'static str,
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
            alternative: needs.alternative(),
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
            .unwrap_or((needs.memory_bytes / BUFFER_SHARE_MIN).max(ample_bytes(needs)));
        let buffer_bytes_per_worker =
            buffer_bytes_min(item_bytes_max).max(wanted_bytes / needs.workers);
        let buffer_bytes = buffer_bytes_per_worker * needs.workers;
        let store_bytes = (needs.memory_bytes - buffer_bytes_counted(needs, buffer_bytes))
            .checked_sub(needs.accelerator_bytes + needs.encryption_bytes + needs.packet_bytes)?;
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
                encryption_bytes: needs.encryption_bytes,
                packet_bytes: needs.packet_bytes,
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
            encryption_bytes: needs.encryption_bytes,
            packet_bytes: needs.packet_bytes,
        })
    }

    /// The largest number of workers, up to `needs.workers`, with which items may be as large as
    /// with one worker, and whose buffers leave most of the memory for items; at least one.
    pub fn workers_fitting(needs: Needs) -> usize {
        let limit = |workers| {
            let plan = Self::try_make(Needs { workers, ..needs });
            plan.map_or(0, |plan| plan.item_bytes_max)
        };
        let with_one = limit(1);
        let fits = |&workers: &usize| {
            let needs = Needs { workers, ..needs };
            let buffer_bytes = workers * buffer_bytes_min(needs.item_bytes_max);
            let counted_bytes = buffer_bytes_counted(needs, buffer_bytes);
            let leaves_room = workers <= WORKERS_BEFORE_ITEMS
                || counted_bytes <= needs.memory_bytes / BUFFER_SHARE_OF_MANY_WORKERS;
            leaves_room && limit(workers) >= with_one
        };
        (1..=needs.workers).rev().find(fits).unwrap_or(1)
    }

    /// The total: at most `-m`, plus up to 8 MiB of buffers if buffers would otherwise take more
    /// than 1/16 of `-m`.
    pub fn total_bytes(&self, workers: usize) -> usize {
        self.partitions * self.partition_bytes()
            + workers * self.buffer_bytes_per_worker
            + self.accelerator_bytes
            + self.encryption_bytes
            + self.packet_bytes
    }

    /// The bytes of one partition, in total.
    pub fn partition_bytes(&self) -> usize {
        self.log_bytes + index_bytes_of(self.main_buckets, self.spare_buckets)
    }

    /// The initial sizes of a partition in cache mode. They use all planned memory; the index,
    /// which will grow, starts with a small part of it.
    pub fn first_sizes(&self) -> FirstSizes {
        let all_bytes = self.partitions * index_bytes_of(self.main_buckets, self.spare_buckets);
        let part = all_bytes
            .div_ceil(FIRST_INDEX_BYTES_MAX)
            .next_power_of_two()
            .max(FIRST_BUCKETS_PART);
        let main_buckets = (self.main_buckets / part).max(1);
        let spare_buckets = (self.spare_buckets / part).max(1);
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

/// Bytes of buffers that are ample for all workers, as far as they come out of the overdraft.
fn ample_bytes(needs: Needs) -> usize {
    let item_bytes_max = needs.item_bytes_max;
    let each = NodeConfig::buffer_bytes_ample(&Limits { item_bytes_max });
    (each * needs.workers).min(overdraft_bytes(needs))
}

/// Bytes of buffers that may come out of the overdraft.
fn overdraft_bytes(needs: Needs) -> usize {
    BUFFER_OVERDRAFT_BYTES.min(needs.memory_bytes.saturating_mul(8))
}

/// The largest item for which every worker can have its buffers; `None` if not even the smallest
/// limit works.
fn item_bytes_bufferable(needs: Needs) -> Option<usize> {
    let bytes = (needs.memory_bytes / BUFFER_SHARE_MAX).max(overdraft_bytes(needs));
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
