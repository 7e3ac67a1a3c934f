//! Draws the operations of a worker.

use std::ops::Range;

use super::stream::{KEYS_MAX, Operation, Share};
use glimmer_loadgen::workload::Popularity;
use rand::{Rng, SeedableRng, rngs::SmallRng};

impl Share {
    /// Draws operations for the worker: keys by their popularity, restricted to those that it may
    /// access.
    pub fn draw(&self, popularity: Popularity, get_share: f64, count: usize) -> Vec<Operation> {
        self.draw_from(0, popularity, get_share, count)
    }

    /// Draws reads of absent keys: the numbers from `items` on.
    pub fn draw_absent(&self, items: u32, count: usize) -> Vec<Operation> {
        let keys = items.min(KEYS_MAX - items);
        self.draw_from(items, Popularity::uniform(keys.into()), 1.0, count)
    }

    /// Draws operations that store each of these new keys once, in order, among uniform reads of
    /// the first `stored` keys, of which there are this share. Only for tables whose workers may
    /// access all keys.
    pub fn draw_new(&self, stored: u32, new: Range<u32>, get_share: f64) -> Vec<Operation> {
        let mut rng = SmallRng::seed_from_u64(self.worker as u64);
        let mut drawn = Vec::new();
        for number in new {
            while rng.random::<f64>() < get_share {
                drawn.push(Operation::new(rng.random_range(0..stored), false));
            }
            drawn.push(Operation::new(number, true));
        }
        drawn
    }

    fn draw_from(
        &self,
        first: u32,
        popularity: Popularity,
        get_share: f64,
        count: usize,
    ) -> Vec<Operation> {
        let mut rng = SmallRng::seed_from_u64(self.worker as u64);
        let mut numbers = popularity.sampler();
        let mut operation = || {
            let writes = rng.random::<f64>() >= get_share;
            loop {
                let number = first + numbers.draw(&mut rng) as u32;
                if self.includes(number, writes) {
                    return Operation::new(number, writes);
                }
            }
        };
        (0..count).map(|_| operation()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_alone::items;
    use glimmer_dispatch::PartitionMap;

    #[test]
    fn workers_are_given_what_they_may_touch() {
        let erew = Share {
            map: PartitionMap::new(8, 2),
            worker: 1,
            reads_all: false,
            writes_all: false,
            keyhash: items::keyhash::<8>,
        };
        let owner = |operation: &Operation| erew.map.owner((erew.keyhash)(operation.number()));
        let popularity = Popularity::zipf(1000, 0.99);
        assert!(
            erew.draw(popularity, 0.5, 1000)
                .iter()
                .all(|operation| owner(operation) == 1)
        );
        let crew = Share {
            reads_all: true,
            ..erew
        };
        let (writes, reads): (Vec<Operation>, Vec<Operation>) = crew
            .draw(popularity, 0.5, 1000)
            .into_iter()
            .partition(|operation| operation.writes());
        assert!(writes.iter().all(|operation| owner(operation) == 1));
        assert!(reads.iter().any(|operation| owner(operation) == 0));
        assert!(writes.len().abs_diff(500) < 100);
        let absent = erew.draw_absent(1000, 100);
        assert!(absent.iter().all(|read| !read.writes()
            && (1000..2000).contains(&read.number())
            && owner(read) == 1));
    }

    #[test]
    fn every_new_key_is_stored_once_among_reads_of_stored_ones() {
        let share = Share {
            map: PartitionMap::new(8, 1),
            worker: 0,
            reads_all: true,
            writes_all: true,
            keyhash: items::keyhash::<8>,
        };
        let drawn = share.draw_new(500, 500..600, 0.9);
        let (writes, reads): (Vec<Operation>, Vec<Operation>) =
            drawn.into_iter().partition(|operation| operation.writes());
        let new: Vec<u32> = writes.into_iter().map(Operation::number).collect();
        assert_eq!(new, Vec::from_iter(500..600));
        assert!(reads.len().abs_diff(900) < 300, "{}", reads.len());
        assert!(reads.into_iter().all(|read| read.number() < 500));
        assert_eq!(share.draw_new(500, 500..600, 0.0).len(), 100);
    }
}
