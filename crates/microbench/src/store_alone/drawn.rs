//! Draws the operations of a worker.

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
}
