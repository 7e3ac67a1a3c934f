//! Reading an item: by the partition's writer, and optimistically by any core.

use super::{Reader, Shared, Writer, expired};
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::Item;
use crate::index::{Entry, Slot};
use glimmer_base::limits::OPTIMISTIC_TRIES_MAX;
use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::spin_loop;
use glimmer_base::{Keyhash, Moment};

/// An optimistic read that did not come to an end: it met a writer every time, or a flush that the
/// partition has yet to carry out. The writing side has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The index entry under which a read found its item.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub slot: Slot,
    pub entry: Entry,
}

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Reads an item: `take` sees it, and copies what it wants. None if there is no such item.
    #[inline(always)]
    pub fn read<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let found = self.find(keyhash, key, now)?;
        let taken = take(&found.item);
        let mark = Mark {
            slot: found.slot,
            entry: found.entry,
        };
        self.count_read(keyhash, mark, now);
        Some(taken)
    }

    /// Lets the eviction rule know that an item was read.
    #[inline(always)]
    pub(super) fn count_read(&mut self, keyhash: Keyhash, mark: Mark, now: Moment) {
        let Mark { slot, entry } = mark;
        if self.reinsertion_is_due(entry) {
            self.reinsert(slot, entry, keyhash, now);
        } else if A::SHARED_READS {
            self.shared.index.count_read(slot, entry, E::READS_COUNTED);
        } else {
            self.shared
                .index
                .count_read_alone(slot, entry, E::READS_COUNTED);
        }
    }

    #[inline(always)]
    fn reinsertion_is_due(&self, entry: Entry) -> bool {
        let geometry = self.log(entry.log()).geometry();
        self.rule.reinsert_on_read(
            geometry.distance(entry.offset(), self.tail(entry.log())),
            geometry.words(),
        )
    }
}

impl Reader {
    /// Reads an item from a core that does not own it. `take` may run several times, each time on
    /// what may turn out to be nonsense (of sane size): it must undo what it did the last time,
    /// and the caller must undo the last run unless the answer is an item.
    ///
    /// # Errors
    ///
    /// [`Busy`] after [`OPTIMISTIC_TRIES_MAX`] tries, or at once if `flushes` (see
    /// [`Owner::enter`](super::Owner::enter)) is news to the partition.
    #[inline(always)]
    pub fn read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        mut take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        if self.shared.flushes.load(Acquire) != flushes {
            return Err(Busy);
        }
        for _ in 0..OPTIMISTIC_TRIES_MAX {
            if let Some(outcome) = self.shared.try_read(keyhash, key, now, &mut take) {
                return Ok(outcome.map(|(taken, mark)| {
                    self.shared
                        .index
                        .count_read(mark.slot, mark.entry, self.reads_counted);
                    taken
                }));
            }
            spin_loop();
        }
        Err(Busy)
    }
}

impl Shared {
    /// One optimistic try: none if a writer was met. The argument why what it returns is neither
    /// torn nor stale nor another item's stands at [`Bucket`](crate::index::Bucket) and
    /// [`CircularLog`](crate::heap::CircularLog).
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: &mut impl FnMut(&Item<'_>) -> T,
    ) -> Option<Option<(T, Mark)>> {
        let home = self.index.bucket(self.index.home(keyhash));
        let version = home.read_begin()?;
        let found = self
            .find(keyhash, key)
            .filter(|found| !expired(&found.item, now));
        let taken = found.map(|found| {
            (
                take(&found.item),
                Mark {
                    slot: found.slot,
                    entry: found.entry,
                },
            )
        });
        if !home.read_unchanged(version) {
            return None;
        }
        if let Some((_, mark)) = &taken
            && !cfg!(weaken = "head_recheck")
            && !self.log(mark.entry.log()).is_live(mark.entry.offset())
        {
            return None;
        }
        Some(taken)
    }
}
