//! Reading an item: by the table's writer, and optimistically by any core (MemC3 §3.2.1, §4.2).

use super::{Found, Reader, Shared, Writer, expired};
use crate::access::Access;
use crate::heap::Item;
use crate::index::cuckoo::{Slot, SlotAt, line_at};
use crate::partition::Busy;
use glimmer_base::limits::OPTIMISTIC_TRIES_MAX;
use glimmer_base::sync::Ordering::{Acquire, Relaxed};
use glimmer_base::sync::{fence, spin_loop};
use glimmer_base::{Keyhash, Moment};

/// What one try of a read came to: nothing, or what was taken and where.
type Taken<T> = Option<(T, SlotAt, Slot)>;

impl<A: Access> Writer<'_, A> {
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
        self.count_use(&found);
        Some(taken)
    }

    /// Lets CLOCK know that an item was used.
    #[inline(always)]
    pub(super) fn count_use(&self, found: &Found<'_>) {
        let (line, at) = (self.shared.line(found.at), found.at);
        if A::SHARED_READS {
            line.mark_read(at.bucket, at.place, found.slot);
        } else {
            line.set_read(at.bucket, at.place);
        }
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
    /// [`Owner::enter`](super::Owner::enter)) is news to the table.
    #[inline(always)]
    pub fn read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        mut take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        let shared = &*self.shared;
        for _ in 0..OPTIMISTIC_TRIES_MAX {
            if shared.flushes.load(Acquire) != flushes {
                return Err(Busy);
            }
            if let Some(outcome) = shared.try_read(keyhash, key, now, flushes, &mut take) {
                return Ok(outcome.map(|(taken, at, slot)| {
                    shared.line(at).mark_read(at.bucket, at.place, slot);
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
    /// torn nor stale nor another item's stands at [`line`](crate::index::cuckoo::line); why a
    /// segment that was split or given up is noticed, at
    /// [`Directory::unchanged`](crate::index::cuckoo::Directory::unchanged) and in the writer's
    /// `flush`.
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: &mut impl FnMut(&Item<'_>) -> T,
    ) -> Option<Taken<T>> {
        let home = self.directory.home(keyhash);
        let segment = self.directory.segment(&self.pool, &home);
        let [first, second] = home
            .buckets
            .map(|bucket| line_at(&self.pool, segment.locate(bucket).0));
        let versions = (first.read_begin()?, second.read_begin()?);
        let found = self
            .find(&home, key)
            .filter(|found| !expired(&found.item, now));
        let taken = found.map(|found| (take(&found.item), found.at, found.slot));
        if !cfg!(weaken = "cuckoo_acquire_fence") {
            fence(Acquire);
        }
        let unchanged = cfg!(weaken = "cuckoo_version_recheck")
            || first.read_unchanged(versions.0) && second.read_unchanged(versions.1);
        let same_life = self.flushes.load(Relaxed) == flushes;
        (unchanged && same_life && self.directory.unchanged(&home)).then_some(taken)
    }
}
