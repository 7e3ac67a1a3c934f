//! Strict least-recently-used order.

use super::{Cache, ring::Ring};

/// Evicts the least recently used item.
pub struct Lru {
    capacity: usize,
    ring: Ring,
}

impl Lru {
    /// An empty cache.
    pub fn new(capacity: usize, key_bound: u32) -> Self {
        Lru {
            capacity,
            ring: Ring::new(key_bound),
        }
    }
}

impl Cache for Lru {
    fn request(&mut self, key: u32) -> bool {
        let hit = self.ring.contains(key);
        if hit {
            self.ring.remove(key);
        } else if self.ring.len() == self.capacity {
            self.ring
                .remove(self.ring.oldest().expect("a full cache has an oldest item"));
        }
        self.ring.push_newest(key);
        hit
    }

    fn items(&self) -> usize {
        self.ring.len()
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
            assert_eq!(cache.request(key), position.is_some());
            if let Some(position) = position {
                oracle.remove(position);
            } else if oracle.len() == 20 {
                oracle.remove(0);
            }
            oracle.push(key);
        }
    }
}
