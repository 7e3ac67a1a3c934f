//! Operations drawn in advance, so that the measured loop only reads a list in order.

use glimmer_base::Keyhash;
use glimmer_dispatch::PartitionMap;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use glimmer_loadgen::workload::Popularity;

/// The bit of an operation that marks a write; the other bits are the key's number.
const WRITE: u32 = 1 << 31;

/// Maximum number of keys: their numbers leave a bit for the verb.
pub const KEYS_MAX: u32 = WRITE;

/// A read or a write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(u32);

impl Operation {
    /// An operation on the key with this number.
    pub fn new(number: u32, writes: bool) -> Operation {
        debug_assert!(number < KEYS_MAX);
        Operation(number | if writes { WRITE } else { 0 })
    }

    /// The key's number.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0 & !WRITE
    }

    /// Whether it is a write.
    #[inline(always)]
    pub fn writes(self) -> bool {
        self.0 & WRITE != 0
    }
}

/// The keys that a worker may access.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The owner of each partition.
    pub map: PartitionMap,
    /// The worker.
    pub worker: usize,
    /// Whether it may read keys of other workers.
    pub reads_all: bool,
    /// Whether it may write keys of other workers.
    pub writes_all: bool,
    /// The keyhash of a number's key.
    pub keyhash: fn(u32) -> Keyhash,
}

impl Share {
    /// Whether the worker may read, or write, the key.
    pub fn includes(&self, number: u32, writes: bool) -> bool {
        let all = if writes {
            self.writes_all
        } else {
            self.reads_all
        };
        all || self.map.cores() == 1 || self.map.owner((self.keyhash)(number)) == self.worker
    }

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
