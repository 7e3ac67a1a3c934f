//! CLOCK, also called second chance or FIFO with reinsertion: what a log can do at its head at
//! almost no cost.

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// Evicts from the head. An item that was used since its last visit goes back to the tail, and one
/// of its uses is forgotten.
pub struct Clock {
    capacity: u64,
    uses_max: u8,
    ring: Ring,
    uses: Vec<u8>,
}

impl Clock {
    /// An empty cache that remembers up to `uses_max` uses of each item: 1 is the classic bit, and
    /// 0 is FIFO.
    pub fn new(capacity: u64, key_bound: u32, uses_max: u8) -> Self {
        Clock {
            capacity,
            uses_max,
            ring: Ring::new(key_bound),
            uses: vec![0; key_bound as usize],
        }
    }

    fn make_room(&mut self, weight: u32) {
        while self.ring.weight() + u64::from(weight) > self.capacity {
            let (oldest, weight) = self.ring.take_oldest().expect("a full ring has a head");
            let uses = &mut self.uses[oldest as usize];
            if *uses > 0 {
                *uses -= 1;
                self.ring.push_newest(oldest, weight);
            }
        }
    }
}

impl Cache for Clock {
    fn read(&mut self, key: u32) -> bool {
        let uses = &mut self.uses[key as usize];
        *uses = (*uses + 1).min(self.uses_max);
        self.ring.contains(key)
    }

    fn write(&mut self, key: u32, item: Item) {
        if self.ring.contains(key) && self.ring.weight_of(key) == item.weight {
            self.read(key);
            return;
        }
        self.ring.take(key);
        if u64::from(item.weight) <= self.capacity {
            self.make_room(item.weight);
            self.uses[key as usize] = 0;
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
    fn reads_do_not_count_where_no_use_is_remembered() {
        let mut cache = Clock::new(2, 10, 0);
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

    #[test]
    fn a_used_item_goes_round_once_for_each_use() {
        let mut cache = Clock::new(2, 10, 3);
        cache.write(0, Item::UNIT);
        cache.write(1, Item::UNIT);
        assert!(cache.read(0) && cache.read(0));
        for key in 2..4 {
            cache.write(key, Item::UNIT);
            assert!(cache.ring.contains(0), "key {key}");
        }
        cache.write(4, Item::UNIT);
        cache.write(5, Item::UNIT);
        assert!(!cache.ring.contains(0));
    }
}
