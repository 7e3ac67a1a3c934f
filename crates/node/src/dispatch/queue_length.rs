//! How much has been handed to one worker and is not done yet.

use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// The length of the queue of what other workers have handed to one worker: what waits for it, and
/// what it is about to serve. Any worker counts, and only where something is handed over.
#[derive(Debug)]
pub struct QueueLength {
    now: AtomicU64,
    most: AtomicU64,
}

impl Default for QueueLength {
    fn default() -> QueueLength {
        QueueLength {
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }
}

impl QueueLength {
    /// One more is handed to the worker.
    pub fn enter(&self) {
        let length = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(length, Relaxed);
    }

    /// One is done.
    pub fn leave(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    /// The length now, and the greatest one since the server began.
    pub fn view(&self) -> (u64, u64) {
        (self.now.load(Relaxed), self.most.load(Relaxed))
    }
}
