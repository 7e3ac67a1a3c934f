//! S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, algorithm
//! 1).

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

const USES_MAX: u8 = 3;
/// The small queue has this fraction (1 / n) of the capacity.
const SMALL_DIVISOR: u64 = 10;

/// A small queue for new items, a main queue with reinsertion, and a memory of keys that left the
/// small queue unread. An item heavier than the small queue goes to the main one.
pub struct S3Fifo {
    capacity: u64,
    small_capacity: u64,
    small: Ring,
    main: Ring,
    /// Keys that left the small queue; as heavy as the main queue may be.
    ghosts: Ring,
    uses: Vec<u8>,
}

impl S3Fifo {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        S3Fifo {
            capacity,
            small_capacity: (capacity / SMALL_DIVISOR).max(1),
            small: Ring::new(key_bound),
            main: Ring::new(key_bound),
            ghosts: Ring::new(key_bound),
            uses: vec![0; key_bound as usize],
        }
    }

    fn main_capacity(&self) -> u64 {
        self.capacity - self.small_capacity
    }

    fn make_room(&mut self, weight: u32) {
        while self.weight() + u64::from(weight) > self.capacity {
            let main_is_empty = self.main.oldest().is_none();
            let small_is_full = self.small.weight() >= self.small_capacity;
            if main_is_empty || small_is_full && self.small.oldest().is_some() {
                self.evict_from_small();
            } else {
                self.evict_from_main();
            }
        }
    }

    fn evict_from_small(&mut self) {
        while let Some((key, weight)) = self.small.take_oldest() {
            if self.uses[key as usize] > 1 {
                self.enter_main(key, weight);
                if self.main.weight() > self.main_capacity() {
                    self.evict_from_main();
                }
            } else {
                self.remember(key, weight);
                return;
            }
        }
    }

    fn evict_from_main(&mut self) {
        while let Some((key, weight)) = self.main.take_oldest() {
            if self.uses[key as usize] > 0 {
                self.uses[key as usize] -= 1;
                self.main.push_newest(key, weight);
            } else {
                return;
            }
        }
    }

    fn enter_main(&mut self, key: u32, weight: u32) {
        self.uses[key as usize] = 0;
        self.main.push_newest(key, weight);
    }

    fn remember(&mut self, key: u32, weight: u32) {
        self.ghosts.take(key);
        self.ghosts.push_newest(key, weight);
        while self.ghosts.weight() > self.main_capacity() {
            self.ghosts.take_oldest();
        }
    }
}

impl Cache for S3Fifo {
    fn read(&mut self, key: u32) -> bool {
        let hit = self.small.contains(key) || self.main.contains(key);
        if hit {
            self.uses[key as usize] = (self.uses[key as usize] + 1).min(USES_MAX);
        }
        hit
    }

    fn write(&mut self, key: u32, item: Item) {
        for ring in [&mut self.small, &mut self.main] {
            if ring.contains(key) && ring.weight_of(key) == item.weight {
                self.uses[key as usize] = (self.uses[key as usize] + 1).min(USES_MAX);
                return;
            }
        }
        let was_main = self.main.contains(key);
        self.remove(key);
        if u64::from(item.weight) > self.capacity {
            return;
        }
        self.make_room(item.weight);
        let is_large = u64::from(item.weight) > self.small_capacity;
        if self.ghosts.take(key).is_some() || was_main || is_large {
            self.enter_main(key, item.weight);
        } else {
            self.uses[key as usize] = 0;
            self.small.push_newest(key, item.weight);
        }
    }

    fn remove(&mut self, key: u32) {
        self.small.take(key);
        self.main.take(key);
    }

    fn weight(&self) -> u64 {
        self.small.weight() + self.main.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cache: &mut S3Fifo, key: u32) -> bool {
        let hit = cache.read(key);
        if !hit {
            cache.write(key, Item::UNIT);
        }
        hit
    }

    #[test]
    fn a_scan_passes_through_the_small_queue() {
        let mut cache = S3Fifo::new(100, 10_000);
        for _ in 0..4 {
            for key in 0..50 {
                request(&mut cache, key);
            }
        }
        for key in 1000..9000 {
            request(&mut cache, key);
        }
        assert!(
            (0..50).all(|key| request(&mut cache, key)),
            "a scan pushed out what is read again and again"
        );
    }

    #[test]
    fn what_comes_back_soon_goes_to_the_main_queue() {
        let mut cache = S3Fifo::new(20, 1000);
        for key in 0..21 {
            request(&mut cache, key);
        }
        assert!(!cache.small.contains(0) && !cache.main.contains(0));
        assert!(!request(&mut cache, 0));
        assert!(cache.main.contains(0));
    }
}
