//! `flush_all`: one clock that every worker looks at before each batch.
//!
//! A flush is not carried to the partitions. It raises a number; whoever next works on a partition
//! finds that the partition has seen fewer flushes and catches up first
//! ([`Owner::enter`](glimmer_store::partition::Owner::enter)). A reader on another core that finds
//! the same asks the owner. So a flush costs nothing until a partition is used, and no request that
//! arrives after the flush was acknowledged sees an older item: the number was raised before.

use glimmer_base::Moment;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::SeqCst;

/// When flushes are due.
#[derive(Default)]
pub struct FlushClock {
    /// Flushes that have come due.
    done: AtomicU64,
    /// When the next one is due, in milliseconds since the epoch; zero for never. A new one
    /// replaces it, as in memcached.
    pending_ms: AtomicU64,
}

impl FlushClock {
    /// Makes a flush due at a time; at once if that is not in the future.
    pub fn set(&self, now: Moment, at_ms: u64) {
        // One that has come due but that nobody has looked for yet is not undone by a new one.
        self.due(now);
        if at_ms <= now.ms {
            self.pending_ms.store(0, SeqCst);
            self.done.fetch_add(1, SeqCst);
        } else {
            self.pending_ms.store(at_ms, SeqCst);
        }
    }

    /// How many flushes are due by now.
    #[inline]
    pub fn due(&self, now: Moment) -> u64 {
        let pending = self.pending_ms.load(SeqCst);
        if pending != 0
            && pending <= now.ms
            && self
                .pending_ms
                .compare_exchange(pending, 0, SeqCst, SeqCst)
                .is_ok()
        {
            self.done.fetch_add(1, SeqCst);
        }
        self.done.load(SeqCst)
    }

    /// How many flushes have been carried out or begun; for figures, which have no time.
    pub fn done(&self) -> u64 {
        self.done.load(SeqCst)
    }
}

#[cfg(test)]
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
