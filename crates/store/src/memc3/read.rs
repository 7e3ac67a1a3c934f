//! Reading an item: by the table's writer, and optimistically by any core (MemC3 §3.2.1, §4.2).

use super::{Found, Reader, Shared, Writer, expired};
use crate::access::Access;
use crate::batches::Batch;
use crate::heap::Item;
use crate::index::cuckoo::{Home, Slot, SlotAt, line_at};
use crate::table::{Absence, Busy, TableReader, optimistically};
use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::{fence, weakened};
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
        self.read_in(&self.shared.directory.home(keyhash), key, now, take)
    }

    /// Reads an item whose home was `home` not long ago. The default home, which is nobody's, has tag zero.
    #[inline(always)]
    pub fn read_at<T>(
        &mut self,
        home: Home,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        // All else follows from the keyhash alone; only the segment may have been split since, or been flushed.
        let directory = &self.shared.directory;
        if home.tag != 0 && (weakened("home_recheck") || directory.unchanged(&home)) {
            return self.read_in(&home, key, now, take);
        }
        self.read(keyhash, key, now, take)
    }

    #[inline(always)]
    fn read_in<T>(
        &self,
        home: &Home,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let found = self.shared.find(home, key)?;
        if expired(&found.item, now) {
            return None;
        }
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

impl TableReader for Reader {
    type Place = Home;

    #[inline(always)]
    fn read<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        mut take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        let shared = &*self.shared;
        debug_assert!(self.seat.knows(batch));
        let found = optimistically(|bytes_copied| {
            if !shared.flushes.is_current(flushes) {
                return Some(Err(Busy));
            }
            let take = |item: &Item<'_>| {
                *bytes_copied += item.value().len();
                take(item)
            };
            (shared.try_read(keyhash, key, now, flushes, take)).map(Ok)
        })??;
        Ok(found.map(|(taken, at, slot)| {
            shared.line(at).mark_read(at.bucket, at.place, slot);
            taken
        }))
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> Home {
        self.shared.directory.home(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, place: Home) {
        self.shared.prefetch_buckets(&place);
    }

    #[inline(always)]
    fn prefetch_item(&self, _keyhash: Keyhash, place: Home) {
        self.shared.prefetch_item(&place);
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
        take: impl FnOnce(&Item<'_>) -> T,
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
        if !weakened("cuckoo_acquire_fence") {
            fence(Acquire);
        }
        let unchanged = weakened("cuckoo_version_recheck")
            || first.read_unchanged(versions.0) && second.read_unchanged(versions.1);
        let same_life = self.flushes.is_still(flushes);
        (unchanged && same_life && self.directory.unchanged(&home)).then_some(taken)
    }
}
