//! The longest single requests of a full table whose items have all been read. In this state, an
//! unbounded eviction rule goes past all items for one store.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use glimmer_base::{Expiry, Moment};
use glimmer_store::{
    access::Crew,
    heap::{History, NewItem},
    memc3::{self, Memc3Config},
    mica_cache::{Owner, PartitionConfig},
    mica_store::{self, StoreConfig},
    table::Stored,
    table::{Table, TableWriter},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Ours,
    items::{PAPER_KEY_BYTES, PAPER_VALUE_BYTES, SEED, key, keyhash, value},
    stream::KEYS_MAX,
};

const K: usize = PAPER_KEY_BYTES;
const V: usize = PAPER_VALUE_BYTES;
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};
/// Largest item in bytes, the server's default.
const ITEM_BYTES_MAX: usize = 1 << 20;
/// Bytes of the table per main bucket that the index of cache mode has at the start. It grows to
/// sixteen times that many.
const BYTES_PER_FIRST_BUCKET: usize = 13 << 10;

/// The table is filled until an item leaves, and then with this part (1 / n) of the items more.
/// Each log has come to its end by then. Otherwise a timed store would be the first to touch a huge
/// page, which the kernel clears then. A server has a thread that does it ahead of need.
const MORE_PART: u32 = 8;

/// The longest requests of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Longest {
    /// The longest store.
    pub set: Times,
    /// The longest read.
    pub get: Times,
}

/// The duration of the longest request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Wall-clock time, including everything else that the machine did.
    pub wall: Duration,
    /// CPU time of the thread.
    pub cpu: Duration,
}

impl Times {
    fn take(&mut self, wall: Duration, cpu: Duration) {
        self.wall = self.wall.max(wall);
        self.cpu = self.cpu.max(cpu);
    }
}

/// Fills one partition of `memory_bytes` with the paper's items until all of its memory has been
/// used or an item is refused, and reads everything once. Then times `requests` requests
/// individually: stores of new items and reads of random ones, alternately.
///
/// # Errors
///
/// If the memory cannot be allocated.
pub fn longest(
    table: Ours,
    memory_bytes: usize,
    requests: u32,
    seed: u64,
    progress: &dyn Fn(&str),
) -> Result<Longest> {
    let cache = || {
        let main_buckets = memory_bytes / BYTES_PER_FIRST_BUCKET;
        let spare_buckets = main_buckets * 45 / 100;
        PartitionConfig {
            log_bytes: memory_bytes - 128 * main_buckets - 64 * spare_buckets,
            main_buckets,
            spare_buckets,
            index_follows: true,
            item_bytes_max: ITEM_BYTES_MAX.min(memory_bytes / 8),
            hasher: SEED.into(),
            ..PartitionConfig::default()
        }
    };
    let run = Run {
        requests,
        seed,
        progress,
    };
    match table {
        Ours::Cache(rule) => measure(Owner::<Crew>::new(&cache(), rule)?, run),
        Ours::Store => {
            let config = StoreConfig {
                bytes: memory_bytes,
                item_bytes_max: ITEM_BYTES_MAX.min(memory_bytes / 8),
                hasher: SEED.into(),
                ..StoreConfig::default()
            };
            measure(mica_store::Owner::<Crew>::new(&config)?, run)
        }
        Ours::Memc3 => {
            let config = Memc3Config {
                memory_bytes,
                page_bytes: Memc3Config::page_bytes_for(memory_bytes),
                item_bytes_max: ITEM_BYTES_MAX.min(memory_bytes / 8),
                hasher: SEED.into(),
                ..Memc3Config::default()
            };
            measure(memc3::Owner::<Crew>::new(&config)?, run)
        }
    }
}

/// The measurement of one table.
struct Run<'a> {
    requests: u32,
    seed: u64,
    progress: &'a dyn Fn(&str),
}

fn measure<T: Table>(mut table: T, run: Run<'_>) -> Result<Longest> {
    let Run {
        requests,
        seed,
        progress,
    } = run;
    let figures = table.figures();
    let (mut stored, mut enough) = (0, u32::MAX);
    progress("storing items until the memory is full");
    while stored < enough && put(&mut table, stored) {
        if enough == u32::MAX && stored % 64 == 0 && figures.counts(0).evictions > 0 {
            enough = stored + stored / MORE_PART;
        }
        stored += 1;
        ensure!(stored < KEYS_MAX / 2, "the memory takes too many items");
    }
    progress("reading every item");
    let found = (0..stored)
        .filter(|&number| get(&mut table, number))
        .count();
    ensure!(
        found as u64 * 2 > u64::from(stored),
        "{found} of {stored} items are there"
    );
    progress("timing each request");
    let (mut rng, mut longest) = (SmallRng::seed_from_u64(seed), Longest::default());
    let (mut wall, mut cpu) = (Instant::now(), thread_cpu());
    for number in 0..requests {
        let is_set = number % 2 == 0;
        match is_set {
            true => {
                put(&mut table, stored);
                stored += 1;
            }
            false => {
                get(&mut table, rng.random_range(0..stored));
            }
        }
        // The end of one request is the start of the next.
        let (wall_now, cpu_now) = (Instant::now(), thread_cpu());
        let times = match is_set {
            true => &mut longest.set,
            false => &mut longest.get,
        };
        times.take(wall_now - wall, cpu_now - cpu);
        (wall, cpu) = (wall_now, cpu_now);
    }
    Ok(longest)
}

fn put<T: Table>(table: &mut T, number: u32) -> bool {
    let (key, value) = (key::<K>(number), value::<V>(number, 0));
    let item = NewItem {
        key: &key,
        value: [&value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let stored = table.enter(0).put(keyhash::<K>(number), &item, NOW);
    matches!(stored, Stored::Yes(_))
}

fn get<T: Table>(table: &mut T, number: u32) -> bool {
    let (key, mut bytes) = (key::<K>(number), [0; 64]);
    let read = table
        .enter(0)
        .read(keyhash::<K>(number), &key, NOW, |item| {
            bytes[0] = item.value().len() as u8;
        });
    read.is_some()
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_filled_read_and_timed() {
        for table in Ours::all() {
            let longest = longest(table, 4 << 20, 20_000, 1, &|_| {}).unwrap();
            for times in [longest.set, longest.get] {
                assert!(times.cpu > Duration::ZERO && times.wall > Duration::ZERO);
            }
        }
    }
}
