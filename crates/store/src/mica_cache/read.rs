//! Reading an item: by the partition's writer, and optimistically by any core.

use super::{Reader, Shared, Writer, expired};
use crate::access::Access;
use crate::batches::Batch;
use crate::heap::Item;
use crate::index::{Entry, Slot};
use crate::table::{Absence, Busy, TableReader, optimistically};
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};

/// The index entry under which a read found its item.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub slot: Slot,
    pub entry: Entry,
}

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
        if self.shared.rule.reinsertion_threshold.is_some() {
            return self.count_read_or_reinsert(keyhash, mark, now);
        }
        self.raise_count(mark);
    }

    #[inline(always)]
    fn raise_count(&self, Mark { slot, entry }: Mark) {
        let (index, most) = (&self.shared.index, self.shared.rule.reads_counted);
        if A::SHARED_READS {
            index.count_read(slot, entry, most);
        } else {
            index.count_read_alone(slot, entry, most);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_read_or_reinsert(&mut self, keyhash: Keyhash, mark: Mark, now: Moment) {
        let Mark { slot, entry } = mark;
        let id = entry.log();
        let distance = || self.geometry(id).distance(entry.offset(), self.tail(id));
        if self.shared.rule.reinserts(distance, self.limit(id)) {
            self.reinsert(slot, entry, keyhash, now);
        } else {
            self.raise_count(mark);
        }
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
        Ok(found.map(|(taken, Mark { slot, entry })| {
            let index = &self.shared.index;
            index.count_read(slot, entry, self.shared.rule.reads_counted);
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
    /// torn nor stale nor another item's stands at [`Bucket`](crate::index::Bucket),
    /// [`index::chained`](crate::index::chained) and [`CircularLog`](crate::heap::CircularLog).
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Option<(T, Mark)>> {
        let taken = self.index.try_read(keyhash, |home| {
            let found = self.find(home, keyhash, key)?;
            let mark = Mark {
                slot: found.slot,
                entry: found.entry,
            };
            (!expired(&found.item, now)).then(|| (take(&found.item), mark))
        })?;
        if let Some((_, mark)) = &taken
            && !weakened("head_recheck")
            && !self.log(mark.entry.log()).is_live(mark.entry.offset())
        {
            return None;
        }
        Some(taken)
    }
}
