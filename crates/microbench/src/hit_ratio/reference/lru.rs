//! Strict least-recently-used order.

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// Evicts the least recently used item.
pub struct Lru {
    capacity: u64,
    ring: Ring,
}

impl Lru {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        Lru {
            capacity,
            ring: Ring::new(key_bound),
        }
    }
}

impl Cache for Lru {
    fn read(&mut self, key: u32) -> bool {
        self.ring.renew(key)
    }

    fn write(&mut self, key: u32, item: Item) {
        self.ring.take(key);
        if u64::from(item.weight) <= self.capacity {
            while self.ring.weight() + u64::from(item.weight) > self.capacity {
                self.ring.take_oldest();
            }
            self.ring.push_newest(key, item.weight);
        }
    }

    fn remove(&mut self, key: u32) {
        self.ring.take(key);
    }

    fn weight(&self) -> u64 {
        self.ring.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn agrees_with_a_list_kept_in_order() {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut cache = Lru::new(20, 64);
        let mut oracle: Vec<u32> = vec![];
        for _ in 0..10_000 {
            let key = rng.random_range(0..64);
            let position = oracle.iter().position(|&k| k == key);
            assert_eq!(cache.read(key), position.is_some());
            if let Some(position) = position {
                oracle.remove(position);
            } else if oracle.len() == 20 {
                oracle.remove(0);
            }
            cache.write(key, Item::UNIT);
            oracle.push(key);
        }
    }
}
