//! A set of workers.

use glimmer_base::limits::WORKERS_MAX;

const WORDS: usize = WORKERS_MAX.div_ceil(64);

/// A set of workers, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerSet([u64; WORDS]);

impl WorkerSet {
    /// Adds a worker.
    pub fn insert(&mut self, worker: usize) {
        self.0[worker / 64] |= 1 << (worker % 64);
    }

    /// Whether a worker is in the set.
    pub fn contains(&self, worker: usize) -> bool {
        self.0[worker / 64] >> (worker % 64) & 1 == 1
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0 = [0; WORDS];
    }
}
