//! Our store as a cache for a given number of items or bytes: one partition in this process.

use std::sync::Arc;

use anyhow::Result;
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::{
    access::Erew,
    evict::{Learner, Objective, Rule},
    heap::{History, NewItem},
    mica_cache::{Owner, PartitionConfig},
    table::Counts,
    table::{Table, TableWriter},
};

use super::trace::{Cache, Item, Trace};
use crate::sizing;
use glimmer_loadgen::workload::key;

/// Least length of a value in bytes where all items are equal.
const VALUE_BYTES_MIN: usize = 1_000;
/// Values are so long that the log has about this many bytes: a log of a few pages is not divided.
const LOG_BYTES_MIN: usize = 1 << 20;
/// A server's index grows to about twice the buckets that items of this size need. The rest
/// remembers items that have left.
const BUCKETS_FACTOR: usize = 2;
/// The learner follows at least this many of the items that the cache can hold.
const FOLLOWED_ITEMS: u64 = 500;
/// What an expiry adds to an item of this size. The value is as much shorter.
const EXPIRY_BYTES: usize = 8;
/// Largest item of a trace with sizes.
const ITEM_BYTES_MAX: usize = 1 << 19;

/// A cache that is a partition of our store.
pub struct Ours {
    owner: Owner<Erew>,
    seed: Seed,
    now: Moment,
    /// Bytes of a value, unless the items say their size.
    value_bytes: Option<usize>,
    /// The eviction rule sees one read of this many.
    seen_one_in: u32,
    reads: u32,
}

impl Ours {
    /// A cache whose log has the capacity of a trace.
    pub fn new(trace: &Trace, rule: Rule) -> Result<Self> {
        let (seed, capacity) = (Seed(1), trace.capacity as usize);
        let value_bytes = (LOG_BYTES_MIN / capacity).max(VALUE_BYTES_MIN);
        let value_bytes = (!trace.in_bytes).then_some(value_bytes);
        let config = match value_bytes {
            Some(value_bytes) => PartitionConfig {
                item_bytes_max: 2 * value_bytes,
                ..sizing::partition(capacity, key::HEX_BYTES, value_bytes, seed)
            },
            // The index has room for all keys: the capacity is that of the log.
            None => PartitionConfig {
                log_bytes: capacity,
                item_bytes_max: ITEM_BYTES_MAX,
                ..sizing::partition(trace.items.len(), key::HEX_BYTES, 0, seed)
            },
        };
        // A cache smaller than those of servers follows more of its keys.
        let item_weight = match trace.in_bytes {
            true => {
                trace
                    .items
                    .iter()
                    .map(|item| u64::from(item.weight))
                    .sum::<u64>()
                    / trace.items.len() as u64
            }
            false => 1,
        };
        let followed_one_in = (trace.capacity / item_weight / FOLLOWED_ITEMS).max(1);
        let learner = Learner::following(Objective::Hits, followed_one_in.ilog2());
        let config = PartitionConfig {
            learner: Some(Arc::new(learner)),
            main_buckets: config.main_buckets * BUCKETS_FACTOR,
            ..config
        };
        Ok(Ours {
            owner: Owner::new(&config, rule)?,
            seed,
            now: Moment {
                ms: Moment::EPOCH_LEAD_MS,
                epoch_unix_ms: 0,
            },
            value_bytes,
            seen_one_in: 1,
            reads: 0,
        })
    }

    /// The same cache, if the eviction rule sees one read of `cores`. MICA has it so under CREW:
    /// clients send their reads to all cores in turn, and the writing core counts its own (§4.1.2).
    pub fn seeing_reads_of_one_in(self, cores: u32) -> Self {
        Ours {
            seen_one_in: cores,
            ..self
        }
    }

    /// The partition's counters.
    pub fn counts(&self) -> Counts {
        self.owner.figures().counts(0)
    }
}

impl Cache for Ours {
    /// A request takes a millisecond.
    fn begin(&mut self, requests: u64) {
        self.now.ms = Moment::EPOCH_LEAD_MS + requests;
    }

    fn read(&mut self, number: u32) -> bool {
        let key = key::hex(u64::from(number));
        let (keyhash, now) = (self.seed.keyhash(&key), self.now);
        let mut writer = self.owner.enter(0);
        self.reads = (self.reads + 1) % self.seen_one_in;
        match self.reads {
            0 => writer.read(keyhash, &key, now, |_| ()).is_some(),
            _ => writer.find(keyhash, &key, now).is_some(),
        }
    }

    fn write(&mut self, number: u32, item: Item) {
        static VALUE: [u8; ITEM_BYTES_MAX] = [0; ITEM_BYTES_MAX];
        let key = key::hex(u64::from(number));
        let keyhash = self.seed.keyhash(&key);
        let (value_bytes, expiry) = match (self.value_bytes, item.lifetime) {
            (None, _) => {
                let overhead = sizing::log_bytes_per_item(key::HEX_BYTES, 0);
                let value_bytes = (item.weight as usize).saturating_sub(overhead);
                (value_bytes, Expiry::NEVER)
            }
            (Some(value_bytes), 0) => (value_bytes, Expiry::NEVER),
            (Some(value_bytes), lifetime) => (
                value_bytes - EXPIRY_BYTES,
                Expiry::at_ms(self.now.ms + u64::from(lifetime)),
            ),
        };
        let new = NewItem {
            key: &key,
            value: [&VALUE[..value_bytes], &[]],
            flags: 0,
            expiry,
            history: History::NEW,
        };
        self.owner.enter(0).put(keyhash, &new, self.now);
    }

    fn remove(&mut self, number: u32) {
        let key = key::hex(u64::from(number));
        let keyhash = self.seed.keyhash(&key);
        self.owner.enter(0).remove(keyhash, &key, self.now);
    }

    fn weight(&self) -> u64 {
        match self.value_bytes {
            None => self.counts().bytes,
            Some(_) => self.counts().items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{
        pattern::Pattern,
        reference::{self, Clock, S3Fifo, Sieve},
    };
    use glimmer_store::evict::{CLOCK, DEFAULT, FIFO, LRU, S3_FIFO, TWO_Q};

    const KEYS: u32 = 30_000;
    const PERCENT: f64 = 10.0;
    const CAPACITY: u64 = 3_000;

    fn trace(name: &str) -> Trace {
        let pattern = Pattern::named(name).unwrap();
        pattern.trace(KEYS, PERCENT, 90_000, 3)
    }

    fn ours(rule: Rule, trace: &Trace) -> f64 {
        let mut cache = Ours::new(trace, rule).unwrap();
        let ratio = trace.hit_ratio(&mut cache);
        // Up to a page.
        let most = trace.capacity + if trace.in_bytes { 4096 } else { 85 };
        let held = cache.weight();
        assert!(held <= most, "{rule:?} holds {held}");
        ratio
    }

    #[test]
    fn our_fifo_is_a_fifo_of_its_capacity() {
        for pattern in ["zipf-0.99", "sizes", "lag-95"] {
            let trace = trace(pattern);
            let simulated = trace.hit_ratio(&mut Clock::new(trace.capacity, trace.key_bound(), 0));
            let difference = ours(FIFO, &trace) - simulated;
            assert!(difference.abs() < 0.01, "{pattern}: {difference}");
        }
    }

    #[test]
    fn our_clock_is_one_of_one_bit() {
        let trace = trace("zipf-0.99");
        let simulated = trace.hit_ratio(&mut Clock::new(CAPACITY, trace.key_bound(), 1));
        let difference = ours(CLOCK, &trace) - simulated;
        assert!(difference.abs() < 0.01, "{difference}");
    }

    #[test]
    fn a_rule_that_sees_no_read_is_a_fifo() {
        let trace = trace("zipf-0.99");
        let seeing = |cores| {
            let cache = Ours::new(&trace, LRU).unwrap();
            trace.hit_ratio(&mut cache.seeing_reads_of_one_in(cores))
        };
        let (all, none) = (seeing(1), seeing(u32::MAX));
        let fifo = ours(FIFO, &trace);
        assert!((none - fifo).abs() < 0.005, "{none} for {fifo}");
        assert!(all > none + 0.02, "{all} for {none}");
    }

    #[test]
    fn two_logs_with_ghosts_keep_more_than_lru() {
        for name in ["zipf-0.99", "scan"] {
            let trace = trace(name);
            let two_q = ours(TWO_Q, &trace);
            let lru = trace.hit_ratio(&mut reference::Lru::new(CAPACITY, trace.key_bound()));
            println!("{name}: 2Q {two_q}, LRU {lru}");
            assert!(two_q > lru, "{name}: ours {two_q}, LRU {lru}");
        }
    }

    #[test]
    fn the_default_finds_what_is_read_later() {
        for name in ["lag-10", "lag-80", "lags-3", "sessions"] {
            let ratio = ours(DEFAULT, &trace(name));
            assert!(ratio > 0.995, "{name}: {ratio}");
        }
    }

    #[test]
    fn the_default_is_not_far_below_the_better_of_lru_and_s3fifo() {
        for name in [
            "zipf-0.99",
            "scan",
            "shift",
            "circle",
            "half-lag-40",
            "read-only",
            "sizes",
        ] {
            let trace = trace(name);
            let (capacity, bound) = (trace.capacity, trace.key_bound());
            let lru = trace.hit_ratio(&mut reference::Lru::new(capacity, bound));
            let s3fifo = trace.hit_ratio(&mut S3Fifo::new(capacity, bound));
            let adaptive = ours(DEFAULT, &trace);
            println!("{name}: {adaptive}, LRU {lru}, S3-FIFO {s3fifo}");
            assert!(adaptive > lru.max(s3fifo) - 0.03, "{name}");
        }
    }

    /// What was used stays where new items have room enough, and sizes do not count where large
    /// items are the popular ones.
    #[test]
    fn the_default_is_above_lru_and_s3fifo_in_a_small_cache_too() {
        for name in ["read-only", "sizes-large-hot"] {
            let trace = Pattern::named(name).unwrap().trace(KEYS, 1.0, 90_000, 3);
            let (capacity, bound) = (trace.capacity, trace.key_bound());
            let lru = trace.hit_ratio(&mut reference::Lru::new(capacity, bound));
            let s3fifo = trace.hit_ratio(&mut S3Fifo::new(capacity, bound));
            let adaptive = ours(DEFAULT, &trace);
            println!("{name}: {adaptive}, LRU {lru}, S3-FIFO {s3fifo}");
            assert!(adaptive > lru.max(s3fifo), "{name}");
        }
    }

    #[test]
    fn the_modern_rule_is_near_sieve_and_above_lru() {
        for name in ["zipf-0.99", "scan"] {
            let trace = trace(name);
            let s3fifo = ours(S3_FIFO, &trace);
            let sieve = trace.hit_ratio(&mut Sieve::new(CAPACITY, trace.key_bound()));
            let lru = trace.hit_ratio(&mut reference::Lru::new(CAPACITY, trace.key_bound()));
            assert!(
                s3fifo > sieve - 0.01,
                "{name}: ours {s3fifo}, SIEVE {sieve}"
            );
            assert!(s3fifo > lru, "{name}: ours {s3fifo}, LRU {lru}");
        }
    }
}
