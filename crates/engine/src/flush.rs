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
//!
//! # A process may end in between
//!
//! A memory file keeps both words. It has the count of a flush before any worker sees that count,
//! and does not have the flush as pending any more. So nothing is executed between the two stores
//! to the file. A process that ends there counts the flush twice, which flushes nothing else.
//!
//! # Groups
//!
//! While [groups](glimmer_store::groups) are known, [`GROUPS_DUE`] is set in the number, so that
//! the requests of a batch look at them. It is set under the lock, after the group's event was
//! stored and before the invalidation is acknowledged, and cleared when the last group was
//! forgotten.

use glimmer_base::Moment;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{self, AtomicU64, Mutex, in_program_order, lock, weakened};
use glimmer_store::groups::{GROUPS_DUE, GroupError, Groups};
use glimmer_store::memory::{Kept, MemoryFile};
use std::sync::Arc;

/// By how much a flush is late that is weakened to be late.
const LATE_MS: u64 = 5;

/// When flushes are due.
#[derive(Default)]
pub struct FlushClock {
    /// The number of flushes that have come due, and [`GROUPS_DUE`].
    done: AtomicU64,
    /// When the pending flush is due, in milliseconds since the epoch; zero for none. A new one
    /// replaces it, as in memcached.
    pending_ms: AtomicU64,
    /// Held by the thread that changes these words.
    changing: Mutex<()>,
    /// Where both numbers are kept as well.
    file: Option<Arc<MemoryFile>>,
    groups: Option<sync::Arc<Groups>>,
    /// Called before other workers see that a flush was counted.
    #[cfg(all(test, not(loom)))]
    before_seen: Option<fn(&FlushClock)>,
}

impl FlushClock {
    /// Goes on from what a file knows of flushes, and has it know of those to come.
    pub fn kept_in(file: Arc<MemoryFile>) -> FlushClock {
        let [done, pending_ms] = [Kept::Flushes, Kept::FlushPendingMs]
            .map(|number| AtomicU64::new(file.kept(number).load(Relaxed)));
        FlushClock {
            done,
            pending_ms,
            file: Some(file),
            ..FlushClock::default()
        }
    }

    /// The clock of a store whose keys have groups.
    pub fn with_groups(mut self, groups: sync::Arc<Groups>) -> FlushClock {
        if groups.is_any_known() {
            self.done = AtomicU64::new(self.done() | GROUPS_DUE);
        }
        self.groups = Some(groups);
        self
    }

    /// The groups, if keys have them.
    pub fn groups(&self) -> Option<&sync::Arc<Groups>> {
        self.groups.as_ref()
    }

    /// Makes every item of a group invisible that is stored now.
    ///
    /// # Errors
    ///
    /// [`GroupError`]: nothing has changed.
    pub fn invalidate(&self, name: &[u8]) -> Result<(), GroupError> {
        let groups = self.groups.as_ref().ok_or(GroupError::NoGroups)?;
        let _changing = lock(&self.changing);
        groups.invalidate(name)?;
        self.done.store(self.done() | GROUPS_DUE, Release);
        Ok(())
    }

    /// A partition, of this many, was swept since this event of a group.
    pub fn note_swept(&self, (partition, partitions): (usize, usize), event: u64) {
        let Some(groups) = &self.groups else {
            return;
        };
        let _changing = lock(&self.changing);
        groups.note_swept(partition, partitions, event);
        if !groups.is_any_known() {
            self.done.store(self.done(), Release);
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
        let pending_ms = match at_ms <= now.ms {
            _ if weakened("late_flush") => Some(at_ms.max(now.ms) + LATE_MS),
            true => None,
            false => Some(at_ms),
        };
        match pending_ms {
            None => {
                self.keep_counted();
                self.count();
            }
            Some(_) if weakened("pending_flush_not_kept") => {}
            Some(at_ms) => self.keep(Kept::FlushPendingMs, at_ms),
        }
        self.pending_ms.store(pending_ms.unwrap_or(0), Release);
        drop(changing);
        pending_ms
    }

    /// The number of flushes that are due, and [`GROUPS_DUE`] if groups are to be looked at.
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
        let pending_ms = self.pending_ms();
        drop(changing);
        pending_ms
    }

    /// Counts the pending flush if it is due. The caller holds the lock.
    fn record(&self, now: Moment) {
        if !is_due(self.pending_ms.load(Relaxed), now) {
            return;
        }
        self.keep_counted();
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

    /// Counts a flush, which the file has [counted](Self::keep_counted). The caller holds the lock.
    fn count(&self) {
        #[cfg(all(test, not(loom)))]
        self.before_seen.inspect(|look| look(self));
        self.done.store(self.done.load(Relaxed) + 1, Relaxed);
    }

    /// Has the file count a flush that is about to be counted, and then has no flush pending there.
    /// In the other order, a process that ends in between would lose the flush.
    fn keep_counted(&self) {
        self.keep(Kept::Flushes, self.done() + 1);
        in_program_order();
        self.keep(Kept::FlushPendingMs, 0);
        in_program_order();
    }

    /// When the pending flush is due. One that is being set or counted may be missing or gone.
    pub fn pending_ms(&self) -> Option<u64> {
        Some(self.pending_ms.load(Acquire)).filter(|&at_ms| at_ms != 0)
    }

    /// The number of flushes so far; for statistics, which have no time.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed) & !GROUPS_DUE
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

    /// Whether a worker that sees a flush could execute a request that the next process would flush
    /// again.
    #[test]
    fn a_file_has_counted_a_flush_before_any_worker_sees_it() {
        let name = format!("glimmer-flush-clock-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = MemoryFile::open(&path, 1, &[], true).unwrap();
        let _ = std::fs::remove_file(&path);
        let kept = |file: &MemoryFile| {
            [Kept::Flushes, Kept::FlushPendingMs].map(|number| file.kept(number).load(Relaxed))
        };
        let mut clock = FlushClock::kept_in(file.clone());
        clock.before_seen = Some(|clock| {
            let file = clock.file.as_ref().unwrap();
            let seen = clock.done();
            let kept = [Kept::Flushes, Kept::FlushPendingMs];
            let kept = kept.map(|number| file.kept(number).load(Relaxed));
            assert_eq!(kept, [seen + 1, 0]);
        });
        clock.set(at(10), 20);
        assert_eq!(kept(&file), [0, 20]);
        assert_eq!(clock.due(at(20)), 1);
        clock.set(at(30), 90);
        assert_eq!(kept(&file), [1, 90]);
        clock.set(at(40), 40);
        assert_eq!((clock.done(), kept(&file)), (2, [2, 0]));
        clock.set(at(50), 60);
        clock.set(at(70), 80);
        assert_eq!((clock.done(), kept(&file)), (3, [3, 80]));
        let next = FlushClock::kept_in(file);
        assert_eq!(next.due(at(79)), 3);
        assert_eq!(next.due(at(80)), 4);
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
