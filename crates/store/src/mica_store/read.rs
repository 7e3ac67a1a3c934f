//! Reading an item: by the partition's writer, and optimistically by any core.

use super::find::Found;
use super::{Reader, Shared, Writer};
use crate::access::Access;
use crate::batches::Batch;
use crate::heap::Item;
use crate::index::{Entry, Slot};
use crate::table::expired;
use crate::table::{Absence, Busy, TableReader, optimistically};
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};

/// Nothing is evicted, so that reads are noted but not counted.
pub(super) const READS_COUNTED: u8 = 0;

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
        let home = self.home(keyhash);
        let found = self.shared.find(home, keyhash, key)?;
        if expired(&found.item, now) {
            return None;
        }
        let taken = take(&found.item);
        let (index, Found { slot, entry, .. }) = (&self.shared.index, found);
        if A::SHARED_READS {
            index.count_read(slot, entry, READS_COUNTED);
        } else {
            index.count_read_alone(slot, entry, READS_COUNTED);
        }
        Some(taken)
    }
}

impl TableReader for Reader {
    type Place = usize;

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
        debug_assert!(self.seat.knows(batch));
        if !self.shared.flushes.is_current(flushes) {
            return Err(Busy);
        }
        let found = optimistically(|bytes_copied| {
            let take = |item: &Item<'_>| {
                *bytes_copied += item.value().len();
                take(item)
            };
            self.shared.try_read(keyhash, key, now, take)
        })?;
        Ok(found.map(|(taken, slot, entry)| {
            self.shared.index.count_read(slot, entry, READS_COUNTED);
            taken
        }))
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> usize {
        self.shared.place(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, place: usize) {
        self.shared.index.prefetch(place);
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, place: usize) {
        self.shared.prefetch_item(keyhash, place);
    }
}

impl Shared {
    /// One optimistic try: none if a writer was met. The argument why what it returns is neither
    /// torn nor stale nor another item's stands at [`Bucket`](crate::index::Bucket) and in the
    /// [module's text](super).
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Option<(T, Slot, Entry)>> {
        let generation = self.generation();
        let taken = self.index.try_read(keyhash, |home| {
            let found = self.find(home, keyhash, key)?;
            (!expired(&found.item, now)).then(|| (take(&found.item), found.slot, found.entry))
        })?;
        let unchanged = weakened("generation_recheck") || self.generation() == generation;
        unchanged.then_some(taken)
    }
}
