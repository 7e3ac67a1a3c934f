//! Plain simulators of eviction rules, with a capacity in items. Our store is compared with them
//! and shares no code with them.

mod clock;
mod fifo;
mod log_lru;
mod lru;
mod ring;
mod s3fifo;
mod sieve;

pub use clock::Clock;
pub use fifo::Fifo;
pub use log_lru::LogLru;
pub use lru::Lru;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;

/// A cache for a fixed number of items with one eviction rule.
pub trait Cache {
    /// Requests a key and returns whether it was found. A missing key is inserted, as by a client
    /// that fetches it elsewhere.
    fn request(&mut self, key: u32) -> bool;

    /// The number of items in the cache.
    fn items(&self) -> usize;
}

/// The name of a rule, and a cache with that rule.
pub type Named = (&'static str, Box<dyn Cache>);

/// One cache per rule, each with room for `capacity` items with key numbers below `key_bound`.
pub fn all(capacity: usize, key_bound: u32) -> Vec<Named> {
    vec![
        (
            "FIFO",
            Box::new(Fifo::new(capacity, key_bound)) as Box<dyn Cache>,
        ),
        ("strict LRU", Box::new(Lru::new(capacity, key_bound))),
        (
            "log, always reinsert",
            Box::new(LogLru::new(capacity, key_bound, 1.0)),
        ),
        (
            "log, reinsert in last half",
            Box::new(LogLru::new(capacity, key_bound, 0.5)),
        ),
        (
            "log, reinsert in last eighth",
            Box::new(LogLru::new(capacity, key_bound, 0.125)),
        ),
        ("CLOCK, 1 bit", Box::new(Clock::new(capacity, key_bound, 1))),
        (
            "CLOCK, 2 bits",
            Box::new(Clock::new(capacity, key_bound, 3)),
        ),
        ("S3-FIFO", Box::new(S3Fifo::new(capacity, key_bound, true))),
        (
            "S3-FIFO without ghosts",
            Box::new(S3Fifo::new(capacity, key_bound, false)),
        ),
        ("SIEVE", Box::new(Sieve::new(capacity, key_bound))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::trace::{Trace, Workload};

    #[test]
    fn no_rule_exceeds_its_capacity_or_invents_a_hit() {
        for workload in Workload::ALL {
            let trace = Trace::generate(workload, 2000, 10_000, 9);
            for (name, mut cache) in all(100, trace.key_bound) {
                let mut asked = vec![false; trace.key_bound as usize];
                for &key in &trace.requests {
                    let hit = cache.request(key);
                    assert!(
                        !hit || asked[key as usize],
                        "{name} hit a key that was never put in"
                    );
                    asked[key as usize] = true;
                    assert!(cache.items() <= 100, "{name} holds {} items", cache.items());
                }
            }
        }
    }

    #[test]
    fn a_key_just_asked_for_is_there() {
        for (name, mut cache) in all(10, 1000) {
            for key in 0..1000 {
                assert!(!cache.request(key), "{name}");
                assert!(cache.request(key), "{name} lost the newest item");
            }
        }
    }

    #[test]
    fn what_fits_is_never_evicted() {
        for (name, mut cache) in all(64, 64) {
            if name == "log, always reinsert" {
                continue; // Dead copies take room: that is the doubt this rule is here to show.
            }
            for round in 0..4 {
                for key in 0..32 {
                    assert_eq!(
                        cache.request(key),
                        round > 0,
                        "{name}, round {round}, key {key}"
                    );
                }
            }
        }
    }
}
