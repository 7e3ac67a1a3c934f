//! Connections of all workers that wait for places for large values.

use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, AtomicUsize};

/// What all workers know of connections that wait for places. These are counts, and order nothing.
#[derive(Default)]
pub(crate) struct Places {
    waiting: AtomicUsize,
    ended: AtomicU64,
}

impl Places {
    /// A connection waits for a place. Returns whether none did before.
    pub fn begin_wait(&self) -> bool {
        self.waiting.fetch_add(1, Relaxed) == 0
    }

    /// A connection waits no longer.
    pub fn end_wait(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// Whether connections wait.
    #[inline]
    pub fn are_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// A place was given up, or its value has become an item.
    pub fn end(&self) {
        self.ended.fetch_add(1, Relaxed);
    }

    /// How many were so far.
    #[inline]
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }
}
