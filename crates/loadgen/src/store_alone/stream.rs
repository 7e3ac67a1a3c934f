//! Operations drawn beforehand, so that drawing them costs the measured loop nothing but reading a list in order.

use glimmer_base::{Keyhash, Seed};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::popularity::Popularity;

/// The bit of an operation that says it writes; the others are the key's number.
const WRITE: u32 = 1 << 31;

/// Most keys of a store here: their numbers leave a bit for the verb.
pub const KEYS_MAX: u32 = WRITE;

/// A read or a write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(u32);

impl Operation {
    /// Of the key with this number.
    pub fn new(number: u32, writes: bool) -> Operation {
        debug_assert!(number < KEYS_MAX);
        Operation(number | if writes { WRITE } else { 0 })
    }

    /// The key's number.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0 & !WRITE
    }

    /// Whether it writes.
    #[inline(always)]
    pub fn writes(self) -> bool {
        self.0 & WRITE != 0
    }

    /// The key, 8 bytes.
    #[inline(always)]
    pub fn key(self) -> [u8; 8] {
        key(self.number())
    }
}

/// The 8-byte key of a number.
#[inline(always)]
pub fn key(number: u32) -> [u8; 8] {
    u64::from(number).to_le_bytes()
}

/// Which keys a worker may touch.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Partitions of the store.
    pub partitions: usize,
    /// Workers of the store; partition `p` belongs to worker `p % workers`.
    pub workers: usize,
    /// The worker.
    pub worker: usize,
    /// Whether it may read what others own.
    pub reads_all: bool,
    /// Whether it may write what others own.
    pub writes_all: bool,
    /// Seed of the keyhash.
    pub seed: Seed,
}

impl Share {
    /// Whether the worker may read, or write, the key.
    pub fn includes(&self, number: u32, writes: bool) -> bool {
        let all = if writes {
            self.writes_all
        } else {
            self.reads_all
        };
        let keyhash: Keyhash = self.seed.keyhash(&key(number));
        all || keyhash.partition(self.partitions) % self.workers == self.worker
    }

    /// Draws operations for the worker: keys by their popularity, of those that it may touch.
    pub fn draw(&self, popularity: Popularity, get_share: f64, count: usize) -> Vec<Operation> {
        let mut rng = SmallRng::seed_from_u64(self.worker as u64);
        let mut numbers = popularity.sampler();
        let mut operation = || {
            let writes = rng.random::<f64>() >= get_share;
            loop {
                let number = numbers.draw(&mut rng) as u32;
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

    #[test]
    fn workers_are_given_what_they_may_touch() {
        let erew = Share {
            partitions: 8,
            workers: 2,
            worker: 1,
            reads_all: false,
            writes_all: false,
            seed: Seed(3),
        };
        let owner = |operation: &Operation| erew.seed.keyhash(&operation.key()).partition(8) % 2;
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
    }
}
