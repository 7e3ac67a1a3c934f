//! `flush_all`: one clock that every worker reads before each batch.
//!
//! A flush is not sent to the partitions. It increments a number. A worker that enters a partition
//! which has seen fewer flushes makes it catch up first
//! ([`Table::enter`](glimmer_store::table::Table::enter)). A reader on another core in the
//! same situation asks the owner. A flush therefore costs nothing until a partition is used. No
//! request that arrives after the flush was acknowledged sees an older item, because the number was
//! incremented before.
//!
//! # Every worker that looks after a delayed flush is due counts it
//!
//! Otherwise a worker could store an item, acknowledge it, and lose it to the flush. A flush that
//! comes due moves from one word to another: it stops being pending, and it is counted. All changes
//! are made under one lock. A flush is counted before it stops being pending, with a release store.
//! A worker loads the pending flush first, with acquire:
//!
//! - If the flush is there and due, the worker takes the lock and counts it, unless another worker
//!   has.
//! - If the flush is gone, the load synchronises with the store that removed it, and the worker's
//!   load of the number includes the flush.
//!
//! A worker takes the lock only when a flush is due. `tests/loom_flush.rs` checks this.

use glimmer_base::Moment;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, Mutex, lock, weakened};
use glimmer_store::memory::{Kept, MemoryFile};

/// By how much a flush is late that is weakened to be late.
const LATE_MS: u64 = 5;

/// When flushes are due.
#[derive(Default)]
pub struct FlushClock {
    /// The number of flushes that have come due.
    done: AtomicU64,
    /// When the pending flush is due, in milliseconds since the epoch; zero for none. A new one
    /// replaces it, as in memcached.
    pending_ms: AtomicU64,
    /// Held by the thread that changes these words.
    changing: Mutex<()>,
    /// Where both numbers are kept as well.
    file: Option<std::sync::Arc<MemoryFile>>,
}

impl FlushClock {
    /// Goes on from what a file knows of flushes, and has it know of those to come.
    pub fn kept_in(file: std::sync::Arc<MemoryFile>) -> FlushClock {
        let [done, pending_ms] = [Kept::Flushes, Kept::FlushPendingMs]
            .map(|number| AtomicU64::new(file.kept(number).load(Relaxed)));
        FlushClock {
            done,
            pending_ms,
            file: Some(file),
            ..FlushClock::default()
        }
    }

    fn keep(&self, number: Kept, value: u64) {
        if let Some(file) = &self.file {
            file.kept(number).store(value, Relaxed);
        }
    }

    /// Schedules a flush; it takes effect at once if the time is not in the future. Returns when
    /// the flush that is pending then is due.
    pub fn set(&self, now: Moment, at_ms: u64) -> Option<u64> {
        let changing = lock(&self.changing);
        // A flush that has come due, but that no worker has counted yet, still happens.
        self.record(now);
        if weakened("late_flush") {
            self.pending_ms.store(at_ms.max(now.ms) + LATE_MS, Release);
        } else if at_ms <= now.ms {
            self.count();
            self.pending_ms.store(0, Release);
        } else {
            self.pending_ms.store(at_ms, Release);
        }
        let pending_ms = self.pending();
        self.keep(Kept::FlushPendingMs, pending_ms.unwrap_or(0));
        drop(changing);
        pending_ms
    }

    /// The number of flushes that are due.
    #[inline]
    pub fn due(&self, now: Moment) -> u64 {
        self.due_around(now, |come_due| {
            come_due();
        })
    }

    /// [`due`](Self::due). If a flush is to be counted, that is done by `around`, which calls what
    /// it is given once and learns when the next flush is due.
    #[inline]
    pub fn due_around(&self, now: Moment, around: impl FnOnce(&dyn Fn() -> Option<u64>)) -> u64 {
        let weak = weakened("flush_acquire_load");
        let pending_ms = self.pending_ms.load(if weak { Relaxed } else { Acquire });
        if is_due(pending_ms, now) {
            around(&|| self.come_due(now));
        }
        self.done.load(Relaxed)
    }

    #[cold]
    fn come_due(&self, now: Moment) -> Option<u64> {
        let changing = lock(&self.changing);
        self.record(now);
        let pending_ms = self.pending();
        self.keep(Kept::FlushPendingMs, pending_ms.unwrap_or(0));
        drop(changing);
        pending_ms
    }

    /// When the pending flush is due. The caller holds the lock.
    fn pending(&self) -> Option<u64> {
        Some(self.pending_ms.load(Relaxed)).filter(|&at_ms| at_ms != 0)
    }

    /// Counts the pending flush if it is due. The caller holds the lock.
    fn record(&self, now: Moment) {
        if !is_due(self.pending_ms.load(Relaxed), now) {
            return;
        }
        if weakened("flush_counted_first") {
            self.pending_ms.store(0, Release);
            self.count();
        } else {
            self.count();
            let weak = weakened("flush_release_store");
            self.pending_ms
                .store(0, if weak { Relaxed } else { Release });
        }
    }

    /// Counts a flush. The caller holds the lock.
    fn count(&self) {
        let done = self.done.load(Relaxed) + 1;
        self.keep(Kept::Flushes, done);
        self.done.store(done, Relaxed);
    }

    /// The number of flushes so far; for statistics, which have no time.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }
}

fn is_due(pending_ms: u64, now: Moment) -> bool {
    pending_ms != 0 && pending_ms <= now.ms
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment {
            ms,
            epoch_unix_ms: 0,
        }
    }

    #[test]
    fn a_flush_comes_due_once() {
        let clock = FlushClock::default();
        clock.set(at(10), 10);
        assert_eq!(clock.due(at(10)), 1);
        clock.set(at(10), 20);
        assert_eq!(clock.due(at(19)), 1);
        assert_eq!(clock.due(at(20)), 2);
        assert_eq!(clock.due(at(21)), 2);
    }

    #[test]
    fn a_new_flush_replaces_the_pending_one() {
        let clock = FlushClock::default();
        clock.set(at(10), 20);
        clock.set(at(10), 50);
        assert_eq!(clock.due(at(30)), 0);
        clock.set(at(30), 30);
        assert_eq!(clock.due(at(60)), 1);
    }

    #[test]
    fn a_new_flush_does_not_undo_one_that_has_come_due() {
        let clock = FlushClock::default();
        clock.set(at(10), 20);
        clock.set(at(25), 90);
        assert_eq!(clock.due(at(26)), 1);
        assert_eq!(clock.due(at(90)), 2);
    }
}
