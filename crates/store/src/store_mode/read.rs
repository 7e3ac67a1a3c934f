//! Reading an item: by the partition's writer, and optimistically by any core.

use super::{Reader, Shared, Writer};
use crate::access::Access;
use crate::heap::Item;
use crate::index::{Entry, Slot};
use crate::partition::{Busy, expired};
use glimmer_base::limits::OPTIMISTIC_TRIES_MAX;
use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::spin_loop;
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
        self.shared
            .index
            .count_read(found.slot, found.entry, READS_COUNTED);
        Some(taken)
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
                return Ok(outcome.map(|(taken, slot, entry)| {
                    self.shared.index.count_read(slot, entry, READS_COUNTED);
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
    /// torn nor stale nor another item's stands at [`Bucket`](crate::index::Bucket) and in the
    /// [module's text](super).
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: &mut impl FnMut(&Item<'_>) -> T,
    ) -> Option<Option<(T, Slot, Entry)>> {
        let (shape, generation) = (self.index.shape(), self.generation());
        let number = self.home(shape, keyhash);
        let home = self.index.bucket(number);
        let version = home.read_begin()?;
        let found = self.find(number, keyhash, key);
        let taken = found
            .filter(|found| !expired(&found.item, now))
            .map(|found| (take(&found.item), found.slot, found.entry));
        let unchanged = home.read_unchanged(version)
            && self.index.shape_is(shape)
            && (cfg!(weaken = "generation_recheck") || self.generation() == generation);
        unchanged.then_some(taken)
    }
}
