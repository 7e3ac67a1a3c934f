//! A read, from the keyhash to the item: by the writer, or optimistically beside it.

use super::loans::{Loan, Note};
use super::shared::{CellIn, EntryIn, Heap, HomeBucketIn, Index, LockIn, Named, Shared, SlotIn};
use super::{Absence, Busy, LOAN_WORDS_MIN, Lent, TableReader, WithLent, expired};
use crate::batches::{Batch, Seat};
use crate::flushes::has_groups;
use crate::heap::Item;
use glimmer_base::limits::{OPTIMISTIC_BYTES_MAX, OPTIMISTIC_TRIES_MAX};
use glimmer_base::sync::{Arc, spin_loop, weakened};
use glimmer_base::{Keyhash, Moment};

/// Where an item was found.
pub struct Found<'a, H: Heap> {
    /// What covers the entry.
    pub(crate) lock: LockIn<H>,
    /// Where the entry stands.
    pub(crate) slot: SlotIn<H>,
    /// The memory of the entry.
    pub(crate) cell: CellIn<'a, H>,
    /// The entry.
    pub(crate) entry: EntryIn<H>,
    /// The item itself.
    pub item: Item<'a>,
}

impl<H: Heap> Clone for Found<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Heap> Copy for Found<'_, H> {}

/// What a read took, and the entry under which it found the item.
pub type Taken<'a, T, H> = Option<(T, CellIn<'a, H>, EntryIn<H>)>;

/// The reading side of a table, for cores that do not own it.
pub struct Reader<H: Heap> {
    pub(super) shared: Arc<Shared<H>>,
    pub(super) seat: Seat,
}

impl<H: Heap> Clone for Reader<H> {
    fn clone(&self) -> Self {
        Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        }
    }
}

impl<H: Heap> TableReader for Reader<H> {
    type HomeBucket = HomeBucketIn<H>;
    type Prefetcher = Shared<H>;

    #[inline(always)]
    fn read_at<T>(
        &self,
        batch: &Batch<'_>,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        let found = self.beside_writers(batch, home, keyhash, key, (now, flushes), take)?;
        let Some((taken, cell, entry)) = found else {
            self.shared.was_missed(keyhash, now);
            return Ok(None);
        };
        let most = self.shared.heap.reads_counted();
        self.shared.index.count_read(cell, entry, most);
        self.shared.was_hit(keyhash, entry, now);
        Ok(Some(taken))
    }

    fn peek<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        let home = HomeBucketIn::<H>::default();
        let found = self.beside_writers(batch, home, keyhash, key, (now, flushes), take)?;
        Ok(found.map(|(taken, ..)| taken))
    }

    #[cold]
    #[inline(never)]
    fn lend<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        mut take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<WithLent<T>>, Busy> {
        let (shared, home) = (&*self.shared, HomeBucketIn::<H>::default());
        debug_assert!(self.seat.knows(batch));
        let taken = optimistically(|_| {
            let Some(flushes) = shared.common.flushes.for_reader(flushes) else {
                return Some(Err(Busy));
            };
            let lent = shared.try_read(home, keyhash, key, now, flushes, |found| {
                // A note that was made in a try that fails is removed with the try.
                Some((shared.note_loan(found)?, found.item, take(&found.item)))
            });
            lent.map(Ok)
        })??;
        match taken {
            None => Ok(None),
            Some((None, ..)) => Err(Busy),
            Some((Some((note, item, taken)), ..)) => {
                let loan = Loan::new(item, note);
                Ok(Some((taken, Lent::of(loan, &self.shared))))
            }
        }
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    fn prefetcher(&self) -> Arc<Shared<H>> {
        self.shared.clone()
    }
}

impl<H: Heap> Reader<H> {
    /// Has `take` see the key's item, beside writers.
    #[inline(always)]
    fn beside_writers<T>(
        &self,
        batch: &Batch<'_>,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
        (now, flushes): (Moment, u64),
        mut take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Taken<'_, T, H>, Busy> {
        let shared = &*self.shared;
        debug_assert!(self.seat.knows(batch));
        optimistically(|bytes_copied| {
            let Some(flushes) = shared.common.flushes.for_reader(flushes) else {
                return Some(Err(Busy));
            };
            let take = |found: &Found<'_, H>| {
                *bytes_copied += found.item.value().len();
                take(&found.item)
            };
            (shared.try_read(home, keyhash, key, now, flushes, take)).map(Ok)
        })?
    }
}

impl<H: Heap> Shared<H> {
    /// One optimistic try of a read: none if it met a writer, or a flush that came after the
    /// `flushes`-th. It looks where the key's entry belongs, and then where that may have
    /// overflowed to.
    #[inline(always)]
    fn try_read<'a, T>(
        &'a self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        mut take: impl FnMut(&Found<'a, H>) -> T,
    ) -> Option<Taken<'a, T, H>> {
        let taken = self.try_read_in(home, keyhash, key, now, flushes, &mut take)?;
        if !H::OVERFLOWS || taken.is_some() || !self.common.has_overflowed() {
            return Some(taken);
        }
        if weakened("overflow_look") {
            return Some(None);
        }
        let (home, second) = (
            HomeBucketIn::<H>::default(),
            self.common.second(keyhash, key),
        );
        self.try_read_in(home, second, key, now, flushes, take)
    }

    /// [`try_read`](Self::try_read) where the keyhash says.
    ///
    /// What it returns is neither torn nor stale nor another item's. Three looks after the copy
    /// show that: the index looks at its versions again, the heap whether the item is still live,
    /// and, where those do not show every flush, at the number of flushes. The arguments stand
    /// where the types are defined: [`Bucket`](crate::index::Bucket),
    /// [`index::chained`](crate::index::chained) and
    /// [`CircularLog`](crate::heap::CircularLog) for cache mode, [`mica_store`](crate::mica_store)
    /// for store mode, and [`cuckoo::line`](crate::index::cuckoo::line) and
    /// [`Directory::unchanged`](crate::index::cuckoo::Directory::unchanged) for MemC3 (§3.2.1 and
    /// §4.2 of its paper).
    #[inline(always)]
    fn try_read_in<'a, T>(
        &'a self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Found<'a, H>) -> T,
    ) -> Option<Taken<'a, T, H>> {
        let read = |home| self.take(home, keyhash, key, (now, flushes), take);
        let taken = self.index.try_read(home, keyhash, read)?;
        let is_still_live = match &taken {
            Some((_, _, entry)) => self.heap.is_still_live(*entry),
            None => true,
        };
        let no_flush = !H::RECHECKS_FLUSHES || self.common.flushes.is_still(flushes);
        (is_still_live && no_flush).then_some(taken)
    }

    /// Has `take` see the key's item, unless it has expired or its group was invalidated. What is
    /// asked of an item that another thread changes meanwhile does not matter, as with all that is
    /// copied.
    #[inline(always)]
    fn take<'a, T>(
        &'a self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
        (now, flushes): (Moment, u64),
        take: impl FnOnce(&Found<'a, H>) -> T,
    ) -> Taken<'a, T, H> {
        let found = self.find(home, keyhash, key)?;
        let is_gone = expired(&found.item, now)
            || has_groups(flushes)
                && !weakened("group_check")
                && self.is_in_dead_group(found.entry, key);
        (!is_gone).then(|| (take(&found), found.cell, found.entry))
    }

    /// Notes that a value is to be lent, if it is one that may be.
    pub(super) fn note_loan(&self, found: &Found<'_, H>) -> Option<Note<'_>> {
        match found.item.words() < LOAN_WORDS_MIN {
            true => None,
            false => self.common.loans.note(self.heap.loan_name(found.entry)),
        }
    }

    /// Finds the key's item, expired or not. Safe to run while a writer works; what it finds is
    /// then to be validated.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
    ) -> Option<Found<'_, H>> {
        if let Some(found) = self.carried_item(home, keyhash, key) {
            return Some(found);
        }
        let (slot, entry) = self.search(home, keyhash, key)?;
        // A racing reader may meet an entry that was cleared after its tag was compared.
        if !self.heap.is_live(entry) {
            return None;
        }
        self.named_item(home, (slot, entry), self.index.cell(slot), key)
    }

    /// [`find`](Self::find) for a writer: where the key's entry belongs, or where it has overflowed
    /// to.
    #[inline(always)]
    pub(crate) fn find_in_either(
        &self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
    ) -> Option<Found<'_, H>> {
        if !H::OVERFLOWS {
            return self.find(home, keyhash, key);
        }
        if let Some(found) = self.carried_item(home, keyhash, key) {
            return Some(found);
        }
        let (home, named) = self.search_either(home, keyhash, key)?;
        self.named_item(home, named, self.index.cell(named.0), key)
    }

    /// [`search`](Self::search) in both places, with the home that has the entry. The writer's
    /// entries do not change meanwhile, so a live one stays so.
    #[inline(never)]
    fn search_either(
        &self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
    ) -> Option<(HomeBucketIn<H>, Named<H::Index>)> {
        if let Some(named) = self.search(home, keyhash, key) {
            return Some((home, named));
        }
        if !self.common.has_overflowed() {
            return None;
        }
        let second = self.common.second(keyhash, key);
        let home = self.index.home(second);
        Some((home, self.search(home, second, key)?))
    }

    /// The key's item, if its entry lies where its second keyhash says.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_overflowed(&self, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_, H>> {
        let second = self.common.second(keyhash, key);
        self.find(self.index.home(second), second, key)
    }

    /// The key's item, if the slot that the home carries names it.
    #[inline(always)]
    pub(crate) fn carried_item(
        &self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
    ) -> Option<Found<'_, H>> {
        let (named, cell) = self.index.carried(home, keyhash)?;
        if !self.heap.is_tagged_live(named.1) && !weakened("carried_live") {
            return None;
        }
        self.named_item(home, named, cell, key)
    }

    /// The item that a live entry names, if the item's key is this one.
    #[inline(always)]
    pub(crate) fn named_item<'a>(
        &'a self,
        home: HomeBucketIn<H>,
        (slot, entry): Named<H::Index>,
        cell: CellIn<'a, H>,
        key: &[u8],
    ) -> Option<Found<'a, H>> {
        let item = Item::of_key(self.heap.words(entry), key)?;
        Some(Found {
            lock: self.index.lock(home, slot),
            slot,
            cell,
            entry,
            item,
        })
    }

    /// Looks through all entries that bear the key's tag. Apart, because most requests find the
    /// item by the slot that their home carries. It says no more than which entry it is, so that
    /// what is known of the item is in registers, however it was found.
    #[inline(never)]
    fn search(
        &self,
        home: HomeBucketIn<H>,
        keyhash: Keyhash,
        key: &[u8],
    ) -> Option<Named<H::Index>> {
        let mut candidates = self.index.candidates(home, keyhash);
        candidates.find(|&(_, entry)| {
            self.heap.is_live(entry) && Item::of_key(self.heap.words(entry), key).is_some()
        })
    }

    /// An item that the writer has come upon, with where its entry stands.
    pub(crate) fn found<'a>(
        &'a self,
        lock: LockIn<H>,
        (slot, entry): Named<H::Index>,
        item: Item<'a>,
    ) -> Found<'a, H> {
        Found {
            lock,
            slot,
            cell: self.index.cell(slot),
            entry,
            item,
        }
    }

    /// Why a read has just found nothing. Only what bears the key's tag is looked at, so that a
    /// plain miss costs one look at its bucket.
    #[inline(always)]
    pub(crate) fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        match self.absence_in(keyhash, key) {
            Absence::Other if H::OVERFLOWS && self.common.has_overflowed() => {
                self.absence_in(self.common.second(keyhash, key), key)
            }
            absence => absence,
        }
    }

    /// Whether the key's item, which was found, is not there for a request: it has expired, or its
    /// group was invalidated. For who has passed the gate.
    #[inline(always)]
    pub(crate) fn is_gone(&self, found: &Found<'_, H>, key: &[u8], now: Moment) -> bool {
        expired(&found.item, now)
            || self.common.flushes.knows_groups() && self.is_in_dead_group(found.entry, key)
    }

    /// Whether the key has an item whose group was invalidated. For who has passed the gate. It is
    /// asked before the item is looked up, and so apart from that: where there are no groups, this
    /// is one load and one branch, and takes no register from what follows.
    #[inline(always)]
    pub(crate) fn has_dead(&self, keyhash: Keyhash, key: &[u8]) -> bool {
        self.common.flushes.knows_groups() && self.finds_dead(keyhash, key)
    }

    #[cold]
    #[inline(never)]
    fn finds_dead(&self, keyhash: Keyhash, key: &[u8]) -> bool {
        self.find_dead(keyhash, key).is_some()
    }

    /// The key's item if its group was invalidated.
    pub(super) fn find_dead(&self, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_, H>> {
        if !self.common.knows_event_of(key) {
            return None;
        }
        let found = self.find_in_either(self.index.home(keyhash), keyhash, key)?;
        self.is_in_dead_group(found.entry, key).then_some(found)
    }

    /// Whether the item of a live entry, if it is still one, is of a group that was invalidated. It
    /// is read again, so that the caller's copy stays in registers where there are no groups. Most
    /// keys are of no such group, so the item is read last.
    #[cold]
    #[inline(never)]
    fn is_in_dead_group(&self, entry: EntryIn<H>, key: &[u8]) -> bool {
        let groups = self.common.groups.as_deref();
        groups.is_some_and(|groups| {
            groups.is_dead(key, || {
                Item::read(self.heap.words(entry)).map(|item| item.birth())
            })
        })
    }

    #[inline(always)]
    fn absence_in(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        let mut absence = Absence::Other;
        for (_, entry) in self.index.candidates(self.index.home(keyhash), keyhash) {
            let is_live = self.heap.is_live(entry);
            if !is_live && !self.heap.was_flushed(entry) {
                continue;
            }
            if Item::read(self.heap.words(entry)).is_some_and(|item| item.key_is(key)) {
                if is_live && !self.is_in_dead_group(entry, key) {
                    return Absence::Expired;
                }
                // A later item of the key may follow.
                absence = Absence::Flushed;
            }
        }
        absence
    }
}

/// Tries until a try has met no writer, but not for ever: neither too often, nor on after too many
/// bytes have been copied in vain. `attempt` adds the bytes of the values that it copies to the
/// number that it is given.
#[inline(always)]
fn optimistically<T>(mut attempt: impl FnMut(&mut usize) -> Option<T>) -> Result<T, Busy> {
    let mut bytes_copied = 0;
    for _ in 0..OPTIMISTIC_TRIES_MAX {
        if let Some(outcome) = attempt(&mut bytes_copied) {
            return Ok(outcome);
        }
        if bytes_copied >= OPTIMISTIC_BYTES_MAX {
            break;
        }
        spin_loop();
    }
    Err(Busy)
}
