//! Our store as a cache of a given number of items, one partition driven in this process.

use anyhow::Result;
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::{
    access::Erew,
    evict::{ApproxLru, Evict, Fifo, S3Fifo},
    heap::{History, NewItem},
    mica_cache::Owner,
    table::Counts,
    table::TableFigures,
};

use super::reference::Cache;
use crate::sizing;
use glimmer_loadgen::workload::key;

/// Value bytes of an item: the size that the memory figures are stated for.
const VALUE_BYTES: usize = 32;
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// An eviction rule of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A log by itself.
    Fifo,
    /// Reinsertion of what is read, except in this share of the log next to the tail.
    Lru {
        /// `--lru-threshold`.
        threshold: f64,
    },
    /// A small log in front of the main one.
    S3Fifo,
}

impl Rule {
    /// All of them, LRU at several thresholds.
    pub const ALL: [Rule; 5] = [
        Rule::Fifo,
        Rule::Lru { threshold: 0.0 },
        Rule::Lru { threshold: 0.5 },
        Rule::Lru {
            threshold: ApproxLru::THRESHOLD_DEFAULT,
        },
        Rule::S3Fifo,
    ];

    /// As on the server's command line.
    pub fn name(self) -> String {
        match self {
            Rule::Fifo => Fifo::NAME.to_owned(),
            Rule::Lru { threshold } => format!("{}, threshold {threshold}", ApproxLru::NAME),
            Rule::S3Fifo => S3Fifo::NAME.to_owned(),
        }
    }

    /// A cache of that rule whose log holds `capacity` items.
    pub fn cache(self, capacity: usize) -> Result<Box<dyn OurCache>> {
        Ok(match self {
            Rule::Fifo => Box::new(Ours::new(capacity, Fifo)?),
            Rule::Lru { threshold } => Box::new(Ours::new(capacity, ApproxLru::new(threshold))?),
            Rule::S3Fifo => Box::new(Ours::new(capacity, S3Fifo)?),
        })
    }
}

/// A cache that is a partition of our store.
pub trait OurCache: Cache {
    /// What the partition has counted.
    fn counts(&self) -> Counts;
}

struct Ours<E: Evict> {
    owner: Owner<Erew, E>,
    seed: Seed,
}

impl<E: Evict> Ours<E> {
    fn new(capacity: usize, rule: E) -> Result<Self> {
        let seed = Seed(1);
        let config = sizing::partition(capacity, key::HEX_BYTES, VALUE_BYTES, seed);
        Ok(Ours {
            owner: Owner::new(&config, rule)?,
            seed,
        })
    }
}

impl<E: Evict> Cache for Ours<E> {
    fn request(&mut self, number: u32) -> bool {
        let key = key::hex(u64::from(number));
        let keyhash = self.seed.keyhash(&key);
        let mut writer = self.owner.enter(0);
        if writer.read(keyhash, &key, NOW, |_| ()).is_some() {
            return true;
        }
        let value = [&[0; VALUE_BYTES][..], &[]];
        writer.put(
            keyhash,
            &NewItem {
                key: &key,
                value,
                flags: 0,
                expiry: Expiry::NEVER,
                history: History::NEW,
            },
            NOW,
        );
        false
    }

    fn items(&self) -> usize {
        self.counts().items as usize
    }
}

impl<E: Evict> OurCache for Ours<E> {
    fn counts(&self) -> Counts {
        self.owner.figures().counts(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{
        reference::{Fifo as ReferenceFifo, Lru, Sieve},
        trace::{Trace, Workload},
    };

    const KEYS: u32 = 60_000;
    const CAPACITY: usize = 6_000;

    fn ours(rule: Rule, trace: &Trace) -> f64 {
        let mut cache = rule.cache(CAPACITY).unwrap();
        let ratio = trace.hit_ratio(|key| cache.request(key));
        assert!(
            cache.items() <= CAPACITY + 85,
            "{} holds {} items",
            rule.name(),
            cache.items()
        );
        ratio
    }

    fn reference(mut cache: impl Cache, trace: &Trace) -> f64 {
        trace.hit_ratio(|key| cache.request(key))
    }

    #[test]
    fn our_fifo_is_a_fifo_of_its_capacity() {
        let trace = Trace::generate(Workload::Zipf, KEYS, 400_000, 3);
        let difference = ours(Rule::Fifo, &trace)
            - reference(ReferenceFifo::new(CAPACITY, trace.key_bound), &trace);
        assert!(difference.abs() < 0.01, "{difference}");
    }

    #[test]
    fn the_modern_rule_is_near_sieve_and_above_lru() {
        for workload in [Workload::Zipf, Workload::Scan] {
            let trace = Trace::generate(workload, KEYS, 400_000, 3);
            let s3fifo = ours(Rule::S3Fifo, &trace);
            let sieve = reference(Sieve::new(CAPACITY, trace.key_bound), &trace);
            let lru = reference(Lru::new(CAPACITY, trace.key_bound), &trace);
            let name = workload.name();
            assert!(
                s3fifo > sieve - 0.01,
                "{name}: ours {s3fifo}, SIEVE {sieve}"
            );
            assert!(s3fifo > lru, "{name}: ours {s3fifo}, LRU {lru}");
        }
    }
}
