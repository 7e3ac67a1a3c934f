//! Our store as a cache for a given number of items: one partition in this process.

use anyhow::Result;
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::{
    access::Erew,
    evict::{RULES, Rule},
    heap::{History, NewItem},
    mica_cache::Owner,
    table::Counts,
    table::{Table, TableWriter},
};

use super::reference::Cache;
use crate::sizing;
use glimmer_loadgen::workload::key;

/// Length of a value in bytes: the size for which memory figures are stated.
const VALUE_BYTES: usize = 32;
const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// The rules that are measured: every one, those with a threshold at several.
pub fn rules() -> Vec<Rule> {
    let thresholds = |rule: &Rule| match rule.reinsertion_threshold {
        Some(default) => [0.0, 0.5, default]
            .map(|at| rule.with_threshold(at))
            .to_vec(),
        None => vec![*rule],
    };
    RULES.iter().flat_map(thresholds).collect()
}

/// The rule's name as on the server's command line, and its threshold.
pub fn name(rule: Rule) -> String {
    match rule.reinsertion_threshold {
        Some(threshold) => format!("{}, threshold {threshold}", rule.name),
        None => rule.name.to_owned(),
    }
}

/// A cache that is a partition of our store.
pub struct Ours {
    owner: Owner<Erew>,
    seed: Seed,
}

impl Ours {
    /// A cache whose log holds `capacity` items.
    pub fn new(capacity: usize, rule: Rule) -> Result<Self> {
        let seed = Seed(1);
        let config = sizing::partition(capacity, key::HEX_BYTES, VALUE_BYTES, seed);
        Ok(Ours {
            owner: Owner::new(&config, rule)?,
            seed,
        })
    }

    /// The partition's counters.
    pub fn counts(&self) -> Counts {
        self.owner.figures().counts(0)
    }
}

impl Cache for Ours {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{
        reference::{Clock, Fifo, Lru, Sieve},
        trace::{Trace, Workload},
    };
    use glimmer_store::evict::{CLOCK, FIFO, S3_FIFO, TWO_Q};

    const KEYS: u32 = 60_000;
    const CAPACITY: usize = 6_000;

    fn ours(rule: Rule, trace: &Trace) -> f64 {
        let mut cache = Ours::new(CAPACITY, rule).unwrap();
        let ratio = trace.hit_ratio(|key| cache.request(key));
        assert!(
            cache.items() <= CAPACITY + 85,
            "{} holds {} items",
            name(rule),
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
        let difference =
            ours(FIFO, &trace) - reference(Fifo::new(CAPACITY, trace.key_bound), &trace);
        assert!(difference.abs() < 0.01, "{difference}");
    }

    #[test]
    fn our_clock_is_one_of_one_bit() {
        let trace = Trace::generate(Workload::Zipf, KEYS, 400_000, 3);
        let simulated = reference(Clock::new(CAPACITY, trace.key_bound, 1), &trace);
        let difference = ours(CLOCK, &trace) - simulated;
        assert!(difference.abs() < 0.01, "{difference}");
    }

    #[test]
    fn two_logs_with_ghosts_keep_more_than_lru() {
        for workload in [Workload::Zipf, Workload::Scan] {
            let trace = Trace::generate(workload, KEYS, 400_000, 3);
            let two_q = ours(TWO_Q, &trace);
            let lru = reference(Lru::new(CAPACITY, trace.key_bound), &trace);
            let name = workload.name();
            println!("{name}: 2Q {two_q}, LRU {lru}");
            assert!(two_q > lru, "{name}: ours {two_q}, LRU {lru}");
        }
    }

    #[test]
    fn the_modern_rule_is_near_sieve_and_above_lru() {
        for workload in [Workload::Zipf, Workload::Scan] {
            let trace = Trace::generate(workload, KEYS, 400_000, 3);
            let s3fifo = ours(S3_FIFO, &trace);
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
