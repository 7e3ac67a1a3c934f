//! SIEVE (Zhang et al., "SIEVE is simpler than LRU", NSDI 2024, algorithm 1).

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// One queue in order of insertion. A hand moves from the oldest to the newest item. It clears the
/// mark of items that were read, which stay in place, and evicts the first item without a mark.
pub struct Sieve {
    capacity: u64,
    ring: Ring,
    read: Vec<bool>,
    hand: Option<u32>,
}

impl Sieve {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        Sieve {
            capacity,
            ring: Ring::new(key_bound),
            read: vec![false; key_bound as usize],
            hand: None,
        }
    }

    fn evict(&mut self) {
        let oldest = || self.ring.oldest().expect("a full cache has an oldest item");
        let mut key = self.hand.unwrap_or_else(oldest);
        while self.read[key as usize] {
            self.read[key as usize] = false;
            key = self.ring.newer_than(key).unwrap_or_else(oldest);
        }
        self.hand = Some(key);
        self.remove(key);
    }
}

impl Cache for Sieve {
    fn read(&mut self, key: u32) -> bool {
        let hit = self.ring.contains(key);
        self.read[key as usize] |= hit;
        hit
    }

    fn write(&mut self, key: u32, item: Item) {
        if self.ring.contains(key) && self.ring.weight_of(key) == item.weight {
            self.read[key as usize] = true;
            return;
        }
        self.remove(key);
        if u64::from(item.weight) <= self.capacity {
            while self.ring.weight() + u64::from(item.weight) > self.capacity {
                self.evict();
            }
            self.ring.push_newest(key, item.weight);
            self.read[key as usize] = false;
        }
    }

    fn remove(&mut self, key: u32) {
        if self.hand == Some(key) {
            self.hand = self.ring.newer_than(key);
        }
        self.ring.take(key);
    }

    fn weight(&self) -> u64 {
        self.ring.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cache: &mut Sieve, key: u32) -> bool {
        let hit = cache.read(key);
        if !hit {
            cache.write(key, Item::UNIT);
        }
        hit
    }

    #[test]
    fn walks_from_old_to_new_and_leaves_read_items_in_place() {
        // The paper's example (figure 2): items A to G, of which A, B and G have been read; the
        // hand is at A.
        let [a, b, c, d, e, f, g, h, i] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        let mut cache = Sieve::new(7, 9);
        for key in [a, b, c, d, e, f, g] {
            request(&mut cache, key);
        }
        for key in [a, b, g] {
            assert!(request(&mut cache, key));
        }
        request(&mut cache, h);
        assert!(
            !cache.ring.contains(c),
            "A and B lose their marks and C is evicted"
        );
        assert_eq!(cache.hand, Some(d));
        assert!(!cache.read[a as usize] && !cache.read[b as usize]);
        request(&mut cache, a);
        request(&mut cache, d);
        request(&mut cache, i);
        assert!(cache.ring.contains(d) && !cache.ring.contains(e));
        assert_eq!(cache.hand, Some(f));
    }

    #[test]
    fn the_hand_starts_over_at_the_oldest() {
        let mut cache = Sieve::new(3, 10);
        for key in [0, 1, 2, 0, 1, 2] {
            request(&mut cache, key);
        }
        request(&mut cache, 3);
        assert!(
            !cache.ring.contains(0),
            "all marks cleared in one round, then the oldest goes"
        );
        assert_eq!(cache.hand, Some(1));
    }
}
