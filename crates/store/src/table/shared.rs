//! What every core may see of a table: an index over a heap.

use super::{Ages, Common, Counts, Draft, Prefetcher, TableFigures, UploadFigures, Uploads};
use crate::evict::{Learned, Learner, Seen};
use crate::flushes::number_in;
use crate::heap::{CasSequence, Item, Put};
use crate::memory::Words;
use glimmer_base::sync::Arc;
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
    /// A large value that the request which is being executed may store.
    pub draft: Option<Draft>,
    /// Large values that are being received.
    pub(crate) uploads: Uploads,
}

/// An index entry, as far as all tables' entries are alike.
pub trait Fetched: Copy {
    /// Whether the item is known to have been fetched since it was stored.
    fn is_fetched(self) -> bool;
}

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
///
/// # The slot that is carried
///
/// The pipeline's second or third stage meets the key's entry some time before the request is
/// executed, and a home carries the slot in which it stood ([`seek`](Self::seek),
/// [`seek_behind`](Self::seek_behind)). Nothing about a carried slot is believed. It only says
/// where a search looks first:
///
/// - [`home_again`](Self::home_again) keeps the slot only if the home is still the key's. What a
///   home consists of follows from the keyhash and from one word (a shape, a page), which is loaded
///   and compared. So the home is the one that [`home`](Self::home) would give.
/// - A slot that is not in the home's main bucket is found again by the link that leads there now,
///   as a search finds it.
/// - The entry is loaded again from the slot, its tag is compared ([`carried`](Self::carried)), the
///   heap is asked whether it is live, and the item's key is compared. Those are the steps by which
///   a search accepts an entry. A key has one live entry at most, so a search would accept the same
///   one. If a step fails, the search is made.
/// - An optimistic reader takes these steps between its first and its last look at the versions, as
///   it takes those of a search.
///
/// So an item that was replaced, moved, evicted or flushed between the stages, or that has expired,
/// is seen as if nothing had been carried.
pub trait Index: Send + Sync + 'static {
    /// See [`Table::HomeBucket`](super::Table::HomeBucket).
    type HomeBucket: Copy + Default;
    /// What a writer locks to change an entry or its item.
    type Lock: Copy;
    /// Where an entry stands.
    type Slot: Copy;
    /// An entry's memory: what a slot stands for, worked out once for all who look at the entry or
    /// change it.
    type Cell<'a>: Copy
    where
        Self: 'a;
    /// An entry, which names an item.
    type Entry: Fetched;

    /// Where the key's entry can be now.
    fn home(&self, keyhash: Keyhash) -> Self::HomeBucket;

    /// Where the key's entry can be now, given where it could be not long ago, or the default,
    /// which is no key's. If that is the same, the slot stays that it carries.
    fn home_again(&self, home: Self::HomeBucket, keyhash: Keyhash) -> Self::HomeBucket;

    /// Fetches the buckets of a home without waiting for them.
    fn prefetch(&self, home: Self::HomeBucket);

    /// Shows `meet` the entries whose items are to be fetched for the key of a home. The home then
    /// carries the slot of the first of them. If there are none, the entry may be in another part
    /// of the home, which is now fetched: says whether [`seek_behind`](Self::seek_behind) is to be
    /// called when that has come.
    fn seek(&self, home: &mut Self::HomeBucket, meet: impl FnMut(Self::Entry)) -> bool;

    /// Shows `meet` the entries with the key's tag in the part of a home that [`seek`](Self::seek)
    /// has fetched. The home then carries the slot of the first of them.
    fn seek_behind(&self, _home: &mut Self::HomeBucket, _meet: impl FnMut(Self::Entry)) {}

    /// The entry in the slot that a home carries, with its memory, if it bears the key's tag.
    fn carried(
        &self,
        home: Self::HomeBucket,
        keyhash: Keyhash,
    ) -> Option<(Named<Self>, Self::Cell<'_>)>;

    /// The memory of a slot's entry.
    fn cell(&self, slot: Self::Slot) -> Self::Cell<'_>;

    /// One optimistic try to read something in a key's home, given where that was not long ago:
    /// none if the entries there, or where they are, have changed meanwhile; then `read` may have
    /// met nonsense.
    fn try_read<T>(
        &self,
        home: Self::HomeBucket,
        keyhash: Keyhash,
        read: impl FnOnce(Self::HomeBucket) -> T,
    ) -> Option<T>;

    /// The entries that bear the key's tag. Beside a writer they may be nonsense.
    fn candidates(
        &self,
        home: Self::HomeBucket,
        keyhash: Keyhash,
    ) -> impl Iterator<Item = Named<Self>>;

    /// What covers an entry of a key.
    fn lock(&self, home: Self::HomeBucket, slot: Self::Slot) -> Self::Lock;

    /// Begins a change of entries or items that readers are to notice, if there are any (`shared`).
    fn begin_change(&self, lock: Self::Lock, shared: bool);

    /// Ends the change that was begun.
    fn end_change(&self, lock: Self::Lock, shared: bool);

    /// Runs a change.
    #[inline(always)]
    fn change<T>(&self, lock: Self::Lock, shared: bool, change: impl FnOnce() -> T) -> T {
        self.begin_change(lock, shared);
        let changed = change();
        self.end_change(lock, shared);
        changed
    }

    /// Clears an entry, in the midst of a change.
    fn clear(&self, slot: Self::Slot);

    /// Notes a read in an entry and counts up to `most`, unless the entry has changed. Any thread
    /// may do this in the batch in which it has found the entry.
    fn count_read(&self, cell: Self::Cell<'_>, entry: Self::Entry, most: u8);

    /// The same for a writer beside which no other thread reads.
    fn count_read_alone(&self, cell: Self::Cell<'_>, entry: Self::Entry, most: u8);

    /// The chain with this number, if there is one.
    fn walk(&self, number: usize) -> Option<Chain<Self::Lock, impl Iterator<Item = Named<Self>>>>;

    /// Bytes of the index.
    fn bytes(&self) -> u64;
}

/// The memory of a table's items, and which entries name one.
pub trait Heap: Send + Sync + Sized + 'static {
    /// The index over it.
    type Index: Index;

    /// Whether a reader has to look at the number of flushes again after its copy: nothing else
    /// that it looks at tells it of every flush.
    const RECHECKS_FLUSHES: bool = false;

    /// Whether a key's entry may lie where a second keyhash says, as the chain of the first was
    /// full when it was stored. It then stays there until the item leaves, and the key has no other
    /// one.
    ///
    /// So a reader looks there second, in a read of its own. If it finds the key in neither place,
    /// there was a moment between the two looks without an item of the key, or before them.
    const OVERFLOWS: bool = false;

    /// What learns the eviction rule from the requests, if that may follow them.
    fn learner(&self) -> Option<&Learner> {
        None
    }

    /// What a place that is lent is called, by the entry that names its item.
    fn loan_name(&self, entry: EntryIn<Self>) -> u64;

    /// Words that the largest item takes.
    fn item_words_max(&self) -> usize;

    /// Whether an entry names an item: it has one, and that was not evicted or flushed.
    fn is_live(&self, entry: EntryIn<Self>) -> bool;

    /// [`is_live`](Self::is_live) for an entry that bears a key's tag, and so is not empty.
    fn is_tagged_live(&self, entry: EntryIn<Self>) -> bool;

    /// Whether the item of an entry is still there after it was copied: a reader's last look.
    fn is_still_live(&self, entry: EntryIn<Self>) -> bool;

    /// Whether the last flush passed the item of an entry by, which still lies where it lay.
    fn was_flushed(&self, _entry: EntryIn<Self>) -> bool {
        false
    }

    /// Where the item of an entry lies, or lay: words that can be read, whatever the entry says.
    fn words(&self, entry: EntryIn<Self>) -> Words<'_>;

    /// Fetches the line of one of an item's words without waiting for it.
    fn prefetch(&self, entry: EntryIn<Self>, word: usize);

    /// Up to which number reads are counted.
    #[inline(always)]
    fn reads_counted(&self) -> u8 {
        0
    }

    /// Whether a read by the writer may put the item elsewhere.
    #[inline(always)]
    fn moves_what_is_read(&self) -> bool {
        false
    }

    /// See [`TableFigures::ages`].
    fn ages(&self) -> Ages {
        Ages::default()
    }

    /// See [`TableFigures::heap_bytes`].
    fn bytes(&self, index: &Self::Index) -> u64;

    /// See [`TableFigures::addresses`].
    fn addresses(&self) -> Vec<Range<usize>>;
}

/// Where the key's entry can be in the index over a heap.
pub type HomeBucketIn<H> = <<H as Heap>::Index as Index>::HomeBucket;
/// What covers an entry of the index over a heap.
pub type LockIn<H> = <<H as Heap>::Index as Index>::Lock;
/// Where an entry of the index over a heap stands.
pub type SlotIn<H> = <<H as Heap>::Index as Index>::Slot;
/// The memory of an entry of the index over a heap.
pub type CellIn<'a, H> = <<H as Heap>::Index as Index>::Cell<'a>;
/// An entry of the index over a heap.
pub type EntryIn<H> = <<H as Heap>::Index as Index>::Entry;

/// What every core may see of a table.
pub struct Shared<H: Heap> {
    /// The index.
    pub(crate) index: H::Index,
    /// Where items lie.
    pub(crate) heap: H,
    /// What is the same in every table.
    pub(crate) common: Common,
}

impl<H: Heap> Shared<H> {
    /// The item of an entry, if the entry is live. Safe to ask while a writer works.
    #[inline(always)]
    pub(crate) fn item(&self, entry: EntryIn<H>) -> Option<Item<'_>> {
        let heap = &self.heap;
        heap.is_live(entry).then(|| Item::read(heap.words(entry)))?
    }

    /// Fetches the first lines of an entry's item without waiting for them.
    #[inline(always)]
    fn prefetch_of(&self, entry: EntryIn<H>) {
        (self.common).prefetch(|word| self.heap.prefetch(entry, word));
    }
}

impl<H: Heap> Shared<H> {
    /// Whether what learns the eviction rule is told of requests of a key.
    #[inline(always)]
    pub(crate) fn follows(&self, keyhash: Keyhash) -> bool {
        (self.heap.learner()).is_some_and(|learner| learner.follows(keyhash))
    }

    /// A key was read, and its item found by this entry.
    #[inline(always)]
    pub(crate) fn was_hit(&self, keyhash: Keyhash, entry: EntryIn<H>, now: Moment) {
        if let Some(learner) = self.heap.learner()
            && learner.follows(keyhash)
        {
            self.follow_hit(learner, keyhash, entry, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_hit(&self, learner: &Learner, keyhash: Keyhash, entry: EntryIn<H>, now: Moment) {
        // Beside a writer it may have gone, or be another one by now: the learner is told too much
        // or too little, once.
        if let Some(item) = self.item(entry) {
            let seen = Seen {
                words: item.words() as u64,
                expiry: item.expiry(),
            };
            learner.read(keyhash, Some(seen), now);
        }
    }

    /// A key was read, and no item found.
    #[inline(always)]
    pub(crate) fn was_missed(&self, keyhash: Keyhash, now: Moment) {
        if let Some(learner) = self.heap.learner()
            && learner.follows(keyhash)
        {
            learner.read(keyhash, None, now);
        }
    }

    /// An item was stored.
    #[inline(always)]
    pub(crate) fn was_written(&self, put: &Put<'_>) {
        if let Some(learner) = self.heap.learner()
            && learner.follows(put.keyhash)
        {
            let seen = Seen {
                words: put.words as u64,
                expiry: put.item.expiry,
            };
            learner.write(put.keyhash, seen, put.now);
        }
    }

    /// A key was removed by a client.
    #[inline(always)]
    pub(crate) fn was_removed(&self, keyhash: Keyhash) {
        if let Some(learner) = self.heap.learner()
            && learner.follows(keyhash)
        {
            learner.remove(keyhash);
        }
    }
}

impl<H: Heap> Prefetcher for Shared<H> {
    type HomeBucket = HomeBucketIn<H>;

    #[inline(always)]
    fn home(&self, keyhash: Keyhash) -> HomeBucketIn<H> {
        self.index.home(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, home: HomeBucketIn<H>) {
        self.index.prefetch(home);
    }

    #[inline(always)]
    fn prefetch_item(&self, home: &mut HomeBucketIn<H>) -> bool {
        self.index.seek(home, |entry| self.prefetch_of(entry))
    }

    #[inline(always)]
    fn prefetch_item_behind(&self, home: &mut HomeBucketIn<H>) {
        self.index
            .seek_behind(home, |entry| self.prefetch_of(entry));
    }
}

impl<H: Heap> TableFigures for Arc<Shared<H>> {
    fn counts(&self, flushes: u64) -> Counts {
        let common = &self.common;
        let mut counts = common.counters.counts();
        if common.flushes.get() < number_in(flushes) {
            counts.items = 0;
            counts.bytes = 0;
        }
        counts
    }

    fn ages(&self) -> Ages {
        self.heap.ages()
    }

    fn uploads(&self) -> UploadFigures {
        self.common.uploads.figures()
    }

    fn learned(&self) -> Option<Learned> {
        self.heap.learner().and_then(Learner::learned)
    }

    fn heap_bytes(&self) -> u64 {
        self.heap.bytes(&self.index)
    }

    fn index_bytes(&self) -> u64 {
        self.index.bytes()
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        self.heap.addresses()
    }
}
