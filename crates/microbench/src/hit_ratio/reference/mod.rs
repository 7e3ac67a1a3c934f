//! Plain simulators of eviction rules. Our store is compared with them and shares no code with
//! them.

mod arc;
mod clock;
mod lru;
mod optimum;
mod ring;
mod s3fifo;
mod sieve;
mod sketch;
mod tinylfu;

pub use arc::Arc;
pub use clock::Clock;
pub use lru::Lru;
pub use optimum::optimum;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use tinylfu::TinyLfu;

use super::trace::Cache;

/// A rule that is simulated.
#[derive(Clone, Copy)]
pub struct Reference {
    /// Its name in the literature.
    pub name: &'static str,
    /// An empty cache of a capacity, for keys below a bound.
    pub cache: fn(u64, u32) -> Box<dyn Cache>,
}

/// The rules, in the order of the tables.
pub const REFERENCES: &[Reference] = &[
    Reference {
        name: "strict LRU",
        cache: |capacity, keys| Box::new(Lru::new(capacity, keys)),
    },
    Reference {
        name: "S3-FIFO",
        cache: |capacity, keys| Box::new(S3Fifo::new(capacity, keys)),
    },
    Reference {
        name: "SIEVE",
        cache: |capacity, keys| Box::new(Sieve::new(capacity, keys)),
    },
    Reference {
        name: "ARC",
        cache: |capacity, keys| Box::new(Arc::new(capacity, keys)),
    },
    Reference {
        name: "W-TinyLFU",
        cache: |capacity, keys| Box::new(TinyLfu::new(capacity, keys)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{
        pattern::PATTERNS,
        trace::{Item, Operation},
    };

    fn every_rule(
        capacity: u64,
        keys: u32,
    ) -> impl Iterator<Item = (&'static str, Box<dyn Cache>)> {
        let simple: [(&str, Box<dyn Cache>); 2] = [
            ("FIFO", Box::new(Clock::new(capacity, keys, 0))),
            ("CLOCK", Box::new(Clock::new(capacity, keys, 3))),
        ];
        let known = REFERENCES
            .iter()
            .map(move |rule| (rule.name, (rule.cache)(capacity, keys)));
        simple.into_iter().chain(known)
    }

    /// A cache that counts what its driver does wrong.
    struct Watched<'a> {
        cache: Box<dyn Cache>,
        name: &'a str,
        capacity: u64,
        held: Vec<bool>,
    }

    impl Cache for Watched<'_> {
        fn read(&mut self, key: u32) -> bool {
            let hit = self.cache.read(key);
            assert!(
                !hit || self.held[key as usize],
                "{} hit a key that was never put in",
                self.name
            );
            hit
        }

        fn write(&mut self, key: u32, item: Item) {
            self.cache.write(key, item);
            self.held[key as usize] = true;
            assert!(
                self.cache.weight() <= self.capacity,
                "{} holds more",
                self.name
            );
        }

        fn remove(&mut self, key: u32) {
            self.cache.remove(key);
            self.held[key as usize] = false;
        }

        fn weight(&self) -> u64 {
            self.cache.weight()
        }
    }

    #[test]
    fn no_rule_exceeds_its_capacity_or_invents_a_hit() {
        for pattern in PATTERNS {
            let trace = pattern.trace(1_200, 5.0, 2_000, 9);
            for (name, cache) in every_rule(trace.capacity, trace.key_bound()) {
                let mut watched = Watched {
                    cache,
                    name,
                    capacity: trace.capacity,
                    held: vec![false; trace.items.len()],
                };
                let hits = trace.hit_ratio(&mut watched);
                let best = optimum(&trace);
                let is_bound = trace
                    .requests
                    .iter()
                    .all(|r| r.operation != Operation::Read);
                assert!(
                    !is_bound || hits <= best + 1e-9,
                    "{name} found {hits} in {}, and the optimum {best}",
                    pattern.name
                );
            }
        }
    }

    #[test]
    fn a_key_just_written_is_there() {
        for (name, mut cache) in every_rule(10, 1000) {
            for key in 0..1000 {
                assert!(!cache.read(key), "{name}");
                cache.write(key, Item::UNIT);
                assert!(cache.read(key), "{name} lost the newest item");
            }
        }
    }

    #[test]
    fn what_fits_is_never_evicted() {
        for (name, mut cache) in every_rule(64, 64) {
            for round in 0..4 {
                for key in 0..32 {
                    let hit = cache.read(key);
                    assert_eq!(hit, round > 0, "{name}, round {round}, key {key}");
                    cache.write(key, Item::UNIT);
                }
            }
        }
    }

    #[test]
    fn an_item_too_large_is_not_kept_and_its_predecessor_is_gone() {
        for (name, mut cache) in every_rule(10, 10) {
            let large = Item {
                weight: 11,
                ..Item::UNIT
            };
            cache.write(3, Item::UNIT);
            cache.write(3, large);
            assert!(!cache.read(3), "{name}");
            assert_eq!(cache.weight(), 0, "{name}");
        }
    }

    #[test]
    fn an_item_that_grows_makes_room_for_itself() {
        for (name, mut cache) in every_rule(10, 10) {
            for key in 0..10 {
                cache.write(key, Item::UNIT);
            }
            let grown = Item {
                weight: 6,
                ..Item::UNIT
            };
            cache.write(9, grown);
            assert!(cache.weight() <= 10, "{name} holds {}", cache.weight());
            assert!(cache.read(9), "{name} lost what was just written");
        }
    }
}
