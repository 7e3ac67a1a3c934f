//! First in, first out.

use std::collections::VecDeque;

use super::Cache;

/// Evicts the oldest item, whether or not it was read: a circular log without reinsertion.
pub struct Fifo {
    capacity: usize,
    queue: VecDeque<u32>,
    present: Vec<bool>,
}

impl Fifo {
    /// An empty cache.
    pub fn new(capacity: usize, key_bound: u32) -> Self {
        Fifo {
            capacity,
            queue: VecDeque::with_capacity(capacity),
            present: vec![false; key_bound as usize],
        }
    }
}

impl Cache for Fifo {
    fn request(&mut self, key: u32) -> bool {
        if self.present[key as usize] {
            return true;
        }
        if self.queue.len() == self.capacity {
            let victim = self.queue.pop_front().expect("a full queue has a head");
            self.present[victim as usize] = false;
        }
        self.queue.push_back(key);
        self.present[key as usize] = true;
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
            assert_eq!(cache.request(key), hit, "key {key}");
        }
    }
}
