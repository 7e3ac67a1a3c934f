//! CLOCK, also called second chance or FIFO with reinsertion: what a log can do at its head at
//! almost no cost.

use std::collections::VecDeque;

use super::Cache;

const ABSENT: u8 = u8::MAX;

/// Evicts from the head. An item that was read since its last visit goes back to the tail, and one
/// of its reads is forgotten.
pub struct Clock {
    capacity: usize,
    reads_max: u8,
    queue: VecDeque<u32>,
    reads: Vec<u8>,
}

impl Clock {
    /// An empty cache that remembers up to `reads_max` reads of each item (1 is the classic bit).
    pub fn new(capacity: usize, key_bound: u32, reads_max: u8) -> Self {
        Clock {
            capacity,
            reads_max,
            queue: VecDeque::with_capacity(capacity),
            reads: vec![ABSENT; key_bound as usize],
        }
    }
}

impl Cache for Clock {
    fn request(&mut self, key: u32) -> bool {
        if self.reads[key as usize] != ABSENT {
            self.reads[key as usize] = (self.reads[key as usize] + 1).min(self.reads_max);
            return true;
        }
        while self.queue.len() == self.capacity {
            let oldest = self.queue.pop_front().expect("a full queue has a head");
            let reads = &mut self.reads[oldest as usize];
            if *reads == 0 {
                *reads = ABSENT;
            } else {
                *reads -= 1;
                self.queue.push_back(oldest);
            }
        }
        self.queue.push_back(key);
        self.reads[key as usize] = 0;
        false
    }

    fn items(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_item_gets_as_many_chances_as_it_has_bits_for() {
        for (reads_max, rounds) in [(1, 1), (3, 3)] {
            let mut cache = Clock::new(3, 100, reads_max);
            cache.request(0);
            for _ in 0..5 {
                assert!(cache.request(0));
            }
            // Three new keys move an unread item once around a cache of three.
            let mut survived = 0;
            for key in 1..40 {
                cache.request(key);
                if cache.reads[0] != ABSENT {
                    survived = key;
                }
            }
            assert_eq!(survived, 2 + 2 * rounds);
        }
    }
}
