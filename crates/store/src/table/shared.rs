//! What one kind of table brings along for all cores to see: an index, and where items lie.

use super::{Absence, Ages, Common, expired};
use crate::heap::{CasSequence, Item};
use crate::memory::Words;
use glimmer_base::{Keyhash, Moment};
use std::ops::Range;

/// What only a table's writer has.
pub trait State: Send {
    /// What every table's writer has.
    fn ledger(&mut self) -> &mut Ledger;
}

/// The part of a writer's state that is the same in every table.
#[derive(Default)]
pub struct Ledger {
    /// Where CAS uniques come from.
    pub cas: CasSequence,
    /// Words of an item, as a moving average, in 64ths.
    pub usual_words_64: u64,
}

/// An index entry, as far as all tables' entries are alike.
pub trait Fetched: Copy {
    /// Whether the item is known to have been fetched since it was stored.
    fn is_fetched(self) -> bool;
}

/// Where an item was found.
pub struct Found<'a, S: Shared> {
    /// What covers the entry.
    pub(crate) lock: LockIn<S>,
    /// Where the entry stands.
    pub(crate) slot: SlotIn<S>,
    /// The entry.
    pub(crate) entry: EntryIn<S>,
    /// The item itself.
    pub item: Item<'a>,
}

impl<S: Shared> Clone for Found<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Shared> Copy for Found<'_, S> {}

/// What an optimistic read took, and the entry under which it found the item.
pub type Taken<T, S> = Option<(T, SlotIn<S>, EntryIn<S>)>;

/// A part of the index that is walked at once: a chain of buckets or a line.
pub struct Chain<L, I> {
    /// What covers its entries.
    pub lock: L,
    /// Its entries.
    pub entries: I,
    /// The number of the next chain, unless this is the last.
    pub next: Option<usize>,
}

/// An entry of an index, and where it stands.
pub type Named<I> = (<I as Index>::Slot, <I as Index>::Entry);

/// The index of a table.
pub trait Index {
    /// See [`Table::Place`](super::Table::Place).
    type Place: Copy + Default;
    /// What a writer locks to change an entry or its item.
    type Lock: Copy;
    /// Where an entry stands.
    type Slot: Copy;
    /// An entry, which names an item.
    type Entry: Fetched;

    /// Where the key's bucket is now.
    fn place(&self, keyhash: Keyhash) -> Self::Place;

    /// Where the key's bucket is now, given where it was not long ago, or the default.
    #[inline(always)]
    fn place_again(&self, _place: Self::Place, keyhash: Keyhash) -> Self::Place {
        self.place(keyhash)
    }

    /// Fetches a bucket without waiting for it.
    fn prefetch_bucket(&self, place: Self::Place);

    /// The entries that bear the key's tag. Beside a writer they may be nonsense.
    fn candidates(&self, place: Self::Place, keyhash: Keyhash)
    -> impl Iterator<Item = Named<Self>>;

    /// What covers an entry of a key.
    fn lock(&self, place: Self::Place, slot: Self::Slot) -> Self::Lock;

    /// Begins a change that readers are to notice, if there are any.
    fn write_begin(&self, lock: Self::Lock, is_shared: bool);

    /// Ends a change.
    fn write_end(&self, lock: Self::Lock, is_shared: bool);

    /// Clears an entry, in the midst of a change.
    fn clear(&self, slot: Self::Slot);

    /// Notes a read in an entry and counts up to `most`, unless the entry has changed. Any thread
    /// may do this in the batch in which it has found the entry.
    fn count_read(&self, slot: Self::Slot, entry: Self::Entry, most: u8);

    /// The same for a writer beside which no other thread reads.
    fn count_read_alone(&self, slot: Self::Slot, entry: Self::Entry, most: u8);

    /// The chain with this number, if there is one.
    fn chain(&self, number: usize) -> Option<Chain<Self::Lock, impl Iterator<Item = Named<Self>>>>;

    /// Bytes of the index.
    fn bytes(&self) -> u64;
}

/// Where the key's bucket is in a table.
pub type PlaceIn<S> = <<S as Shared>::Index as Index>::Place;
/// What covers an entry of a table.
pub type LockIn<S> = <<S as Shared>::Index as Index>::Lock;
/// Where an entry of a table stands.
pub type SlotIn<S> = <<S as Shared>::Index as Index>::Slot;
/// An entry of a table.
pub type EntryIn<S> = <<S as Shared>::Index as Index>::Entry;

/// What every core may see of a table: which entries are live, and where their items lie.
pub trait Shared: Send + Sync + Sized + 'static {
    /// The index.
    type Index: Index;

    /// The index.
    fn index(&self) -> &Self::Index;

    /// What is the same in every table.
    fn common(&self) -> &Common;

    /// The same while one thread alone has the table.
    fn common_mut(&mut self) -> &mut Common;

    /// Words that the largest item takes.
    fn item_words_max(&self) -> usize;

    /// See [`Table::prefetch_item`](super::Table::prefetch_item).
    fn prefetch_item(&self, keyhash: Keyhash, place: PlaceIn<Self>);

    /// Where the item of an entry lies, if the entry is live. Safe to ask while a writer works.
    fn words(&self, entry: EntryIn<Self>) -> Option<Words<'_>>;

    /// Up to which number reads are counted.
    #[inline(always)]
    fn reads_counted(&self) -> u8 {
        0
    }

    /// One optimistic try of a read: none if it met a writer, or a flush that came after the
    /// `flushes`-th.
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Taken<T, Self>>;

    /// See [`TableFigures::ages`](super::TableFigures::ages).
    fn ages(&self) -> Ages {
        Ages::default()
    }

    /// See [`TableFigures::heap_bytes`](super::TableFigures::heap_bytes).
    fn heap_bytes(&self) -> u64;

    /// See [`TableFigures::addresses`](super::TableFigures::addresses).
    fn addresses(&self) -> Vec<Range<usize>>;

    /// Why a read has just found nothing. A table that forgets at once what a flush has passed by
    /// cannot say that this was the reason.
    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        match self.find(self.index().place(keyhash), keyhash, key) {
            Some(_) => Absence::Expired,
            None => Absence::Other,
        }
    }

    /// The item of an entry, if the entry is live.
    #[inline(always)]
    fn item(&self, entry: EntryIn<Self>) -> Option<Item<'_>> {
        Item::read(self.words(entry)?)
    }

    /// Finds the key's item, expired or not. Safe to run while a writer works; what it finds is
    /// then to be validated.
    #[inline(always)]
    fn find(&self, place: PlaceIn<Self>, keyhash: Keyhash, key: &[u8]) -> Option<Found<'_, Self>> {
        for (slot, entry) in self.index().candidates(place, keyhash) {
            // A racing reader may meet an entry that was cleared after its tag was compared.
            let Some(words) = self.words(entry) else {
                continue;
            };
            if let Some(item) = Item::of_key(words, key) {
                let lock = self.index().lock(place, slot);
                return Some(Found {
                    lock,
                    slot,
                    entry,
                    item,
                });
            }
        }
        None
    }

    /// Has `take` see the key's item, unless it has expired.
    #[inline(always)]
    fn take<T>(
        &self,
        place: PlaceIn<Self>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Taken<T, Self> {
        let found = self.find(place, keyhash, key)?;
        (!expired(&found.item, now)).then(|| (take(&found.item), found.slot, found.entry))
    }
}
