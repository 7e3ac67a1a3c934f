//! S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, algorithm
//! 1).

use std::collections::VecDeque;

use super::Cache;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Small,
    Main,
}

const READS_MAX: u8 = 3;
/// The small queue has this fraction (1 / n) of the capacity.
const SMALL_DIVISOR: usize = 10;

/// A small queue for new items, a main queue with reinsertion, and a memory of keys that left the
/// small queue unread.
pub struct S3Fifo {
    capacity: usize,
    small_capacity: usize,
    ghost_capacity: usize,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// Keys that left the small queue, each with the number of its departure. An entry is void if
    /// the key has left again since.
    ghosts: VecDeque<(u32, u32)>,
    departure: Vec<u32>,
    departures: u32,
    place: Vec<Place>,
    reads: Vec<u8>,
}

impl S3Fifo {
    /// An empty cache. There are as many ghosts as the main queue has items. Without ghosts, no key
    /// goes directly to the main queue.
    pub fn new(capacity: usize, key_bound: u32, with_ghosts: bool) -> Self {
        let small_capacity = (capacity / SMALL_DIVISOR).max(1);
        S3Fifo {
            capacity,
            small_capacity,
            ghost_capacity: if with_ghosts {
                capacity - small_capacity
            } else {
                0
            },
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            departure: vec![0; key_bound as usize],
            departures: 0,
            place: vec![Place::Nowhere; key_bound as usize],
            reads: vec![0; key_bound as usize],
        }
    }

    fn make_room(&mut self) {
        while self.items() >= self.capacity {
            if self.small.len() >= self.small_capacity || self.main.is_empty() {
                self.evict_from_small();
            } else {
                self.evict_from_main();
            }
        }
    }

    fn evict_from_small(&mut self) {
        while let Some(key) = self.small.pop_front() {
            if self.reads[key as usize] > 1 {
                self.enter_main(key);
                if self.main.len() > self.capacity - self.small_capacity {
                    self.evict_from_main();
                }
            } else {
                self.place[key as usize] = Place::Nowhere;
                self.remember(key);
                return;
            }
        }
    }

    fn evict_from_main(&mut self) {
        while let Some(key) = self.main.pop_front() {
            if self.reads[key as usize] > 0 {
                self.reads[key as usize] -= 1;
                self.main.push_back(key);
            } else {
                self.place[key as usize] = Place::Nowhere;
                return;
            }
        }
    }

    fn enter_main(&mut self, key: u32) {
        self.reads[key as usize] = 0;
        self.place[key as usize] = Place::Main;
        self.main.push_back(key);
    }

    fn remember(&mut self, key: u32) {
        if self.ghost_capacity == 0 {
            return;
        }
        self.departures += 1;
        self.departure[key as usize] = self.departures;
        self.ghosts.push_back((key, self.departures));
        if self.ghosts.len() > self.ghost_capacity {
            let (oldest, number) = self.ghosts.pop_front().expect("more than none");
            if self.departure[oldest as usize] == number {
                self.departure[oldest as usize] = 0;
            }
        }
    }
}

impl Cache for S3Fifo {
    fn request(&mut self, key: u32) -> bool {
        if self.place[key as usize] != Place::Nowhere {
            self.reads[key as usize] = (self.reads[key as usize] + 1).min(READS_MAX);
            return true;
        }
        self.make_room();
        if self.departure[key as usize] != 0 {
            self.departure[key as usize] = 0;
            self.enter_main(key);
        } else {
            self.reads[key as usize] = 0;
            self.place[key as usize] = Place::Small;
            self.small.push_back(key);
        }
        false
    }

    fn items(&self) -> usize {
        self.small.len() + self.main.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_passes_through_the_small_queue() {
        let mut cache = S3Fifo::new(100, 10_000, true);
        for _ in 0..4 {
            for key in 0..50 {
                cache.request(key);
            }
        }
        for key in 1000..9000 {
            cache.request(key);
        }
        assert!(
            (0..50).all(|key| cache.request(key)),
            "a scan pushed out what is read again and again"
        );
    }

    #[test]
    fn what_comes_back_soon_goes_to_the_main_queue() {
        let mut cache = S3Fifo::new(20, 1000, true);
        for key in 0..21 {
            cache.request(key);
        }
        assert!(cache.place[0] == Place::Nowhere);
        assert!(!cache.request(0));
        assert!(cache.place[0] == Place::Main);
    }
}
