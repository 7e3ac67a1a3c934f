//! Approximate LRU in a circular log (MICA §4.3.1): a read item is appended again, and its old copy
//! remains as garbage.

use std::collections::VecDeque;

use super::Cache;

const ABSENT: u64 = u64::MAX;

/// A log of `capacity` slots. An item that is read in the part of the log nearest the head is
/// reinserted at the tail.
pub struct LogLru {
    capacity: usize,
    /// A read item is reinserted if it is at least this many slots from the tail.
    reinsert_behind: u64,
    log: VecDeque<u32>,
    /// Offset of the slot after the newest item.
    tail: u64,
    offset: Vec<u64>,
    live: usize,
}

impl LogLru {
    /// An empty log. `part` is the share of it, from the head, in which a read item is reinserted:
    /// 0 is FIFO, 1 reinserts at every read.
    pub fn new(capacity: usize, key_bound: u32, part: f64) -> Self {
        LogLru {
            capacity,
            reinsert_behind: ((1.0 - part) * capacity as f64) as u64,
            log: VecDeque::with_capacity(capacity),
            tail: 0,
            offset: vec![ABSENT; key_bound as usize],
            live: 0,
        }
    }

    fn append(&mut self, key: u32) {
        if self.offset[key as usize] == ABSENT {
            self.live += 1;
        }
        self.offset[key as usize] = self.tail;
        if self.log.len() == self.capacity {
            let victim = self.log.pop_front().expect("a full log has a head");
            let head = self.tail - self.capacity as u64;
            if self.offset[victim as usize] == head {
                self.offset[victim as usize] = ABSENT;
                self.live -= 1;
            }
        }
        self.log.push_back(key);
        self.tail += 1;
    }
}

impl Cache for LogLru {
    fn request(&mut self, key: u32) -> bool {
        let offset = self.offset[key as usize];
        let hit = offset != ABSENT;
        if !hit || self.tail - offset > self.reinsert_behind {
            self.append(key);
        }
        hit
    }

    fn items(&self) -> usize {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{
        reference::Fifo,
        trace::{Trace, Workload},
    };

    #[test]
    fn without_reinsertion_it_is_fifo() {
        let trace = Trace::generate(Workload::Zipf, 1000, 10_000, 2);
        let (mut log, mut fifo) = (LogLru::new(100, 1000, 0.0), Fifo::new(100, 1000));
        for &key in &trace.requests {
            assert_eq!(log.request(key), fifo.request(key));
        }
    }

    #[test]
    fn two_keys_in_turn_fill_a_log_that_always_reinserts() {
        let (mut always, mut last_half) = (LogLru::new(10, 10, 1.0), LogLru::new(10, 10, 0.5));
        for cache in [&mut always, &mut last_half] {
            for key in 2..10 {
                cache.request(key);
            }
            for turn in 0..20 {
                cache.request(turn % 2);
            }
        }
        assert_eq!(always.items(), 2, "nothing but dead copies of two keys");
        assert!(last_half.items() > 4);
    }
}
