//! First in, first out.

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// Evicts the oldest item, whether or not it was read: a circular log without reinsertion. What is
/// written again stays where it is.
pub struct Fifo {
    capacity: u64,
    ring: Ring,
}

impl Fifo {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        Fifo {
            capacity,
            ring: Ring::new(key_bound),
        }
    }
}

impl Cache for Fifo {
    fn read(&mut self, key: u32) -> bool {
        self.ring.contains(key)
    }

    fn write(&mut self, key: u32, item: Item) {
        if self.ring.contains(key) && self.ring.weight_of(key) == item.weight {
            return;
        }
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

    #[test]
    fn reads_do_not_count() {
        let mut cache = Fifo::new(2, 10);
        for (key, hit) in [
            (1, false),
            (2, false),
            (1, true),
            (3, false),
            (1, false),
            (3, true),
            (2, false),
        ] {
            assert_eq!(cache.read(key), hit, "key {key}");
            cache.write(key, Item::UNIT);
        }
    }
}
