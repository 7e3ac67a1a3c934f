//! What the engine asks of a table, whatever it is made of.
//!
//! A *table* is one partition's data with two handles. The writing side does everything:
//! [`Table::enter`] passes its gate and gives a [`TableWriter`]. Where the access mode lets other
//! cores read beside the writer, they do so through a [`TableReader`].

use crate::access::Access;
use crate::batches::{Batch, Batches};
use crate::evict::Learned;
use crate::groups::Groups;
use crate::heap::{CasSequence, History, Item, NewItem};
use crate::removals::{RemovalObserver, Tap};
use glimmer_base::sync::Arc;
use glimmer_base::{Expiry, Keyhash, Moment};
use std::ops::Range;

mod common;
mod config_error;
mod draft;
mod figures;
mod handles;
mod lent;
mod loans;
mod read;
mod search;
mod shared;
mod soonest;
mod upload;
mod uploading;
mod verbs;

pub use common::Common;
pub use config_error::ConfigError;
pub(crate) use draft::{DRAFT_WORDS_MIN, Drafts, Purpose, RoomLeft};
pub use draft::{Draft, Headway, Large, Reservation, Reserved, Step};
pub(crate) use figures::Counters;
pub use figures::{Ages, Counts};
pub(crate) use handles::note_read;
pub use handles::{Design, Owner, Parts, Writer};
pub(crate) use lent::Lent;
pub use lent::{LentValue, WithLent};
pub use loans::{Asides, Whereabouts};
pub(crate) use loans::{LOAN_WORDS_MIN, Loans};
pub use read::{Found, Reader};
pub(crate) use search::Search;
pub use shared::{Chain, Fetched, Heap, Index, Ledger, Shared, State};
pub(crate) use soonest::Soonest;
pub use upload::{Announced, Begun, Upload, UploadFigures};
pub(crate) use upload::{Cell, Underway, Uploads};
pub(crate) use verbs::learn_size;

/// Makes the owner of memory that is there: it takes up what the memory holds.
pub type Attach<T> = Box<dyn FnOnce() -> Result<T, ConfigError> + Send>;

/// The writing side of one partition. One thread at a time has it; where all may write, each has
/// one of its own and writers exclude one another.
pub trait Table: Send + Sized + 'static {
    /// Who may touch what.
    type Access: Access;
    /// A writer at work.
    type Writer<'a>: TableWriter
    where
        Self: 'a;
    /// Where a key's bucket was at a moment.
    type HomeBucket: Copy + Default;
    /// The reading side for other cores.
    type Reader: TableReader<HomeBucket = Self::HomeBucket, Prefetcher = Self::Prefetcher>;
    /// What fetches buckets and items ahead of their requests.
    type Prefetcher: Prefetcher<HomeBucket = Self::HomeBucket>;
    /// The table without its access mode. Tables that differ in nothing else have the same parts.
    type Parts: Send;

    /// Begins work on the partition at a time when `flushes` flushes were due: the partition
    /// catches up with them first.
    #[inline(always)]
    fn enter(&mut self, flushes: u64) -> Self::Writer<'_> {
        self.enter_at(Keyhash(0), Self::HomeBucket::default(), flushes)
    }

    /// [`enter`](Self::enter) for a key whose home was this one not long ago, or the default for
    /// none. What is done with the key begins there, if it still is the key's home.
    fn enter_at(
        &mut self,
        keyhash: Keyhash,
        home: Self::HomeBucket,
        flushes: u64,
    ) -> Self::Writer<'_>;

    /// Copies a large value to where its item is to lie, while others may use the partition. None
    /// if the value is copied when it is stored, as small ones are, or if `is_wanted`, which is
    /// asked about the partition several times, said no. The key's home is as in
    /// [`enter_at`](Self::enter_at). A draft has to be passed to [`TableWriter::bring`], also if it
    /// is not to be stored: else its place is lost.
    fn draft(
        &mut self,
        home: Self::HomeBucket,
        flushes: u64,
        large: &Large<'_>,
        is_wanted: impl FnMut(&Self::Writer<'_>) -> bool,
    ) -> Option<Draft>;

    /// Reserves a place for a large value that is about to arrive: see [`Upload`]. Makes room for
    /// it as a store does, but no more in one turn than the headway says. Between two turns nothing
    /// is reserved, so a caller may as well not go on. The key's home is as in
    /// [`enter_at`](Self::enter_at).
    fn begin_upload(
        &mut self,
        home: Self::HomeBucket,
        flushes: u64,
        announced: &Announced<'_>,
        headway: &mut Headway,
    ) -> Begun;

    /// [`enter_at`](Self::enter_at) for nothing but a [read](TableWriter::read).
    fn read_at<T>(
        &mut self,
        at: (Keyhash, Self::HomeBucket),
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T>;

    /// [`enter_at`](Self::enter_at) for nothing but a [store](TableWriter::put).
    fn put_at(
        &mut self,
        at: (Keyhash, Self::HomeBucket),
        item: &NewItem<'_>,
        now: Moment,
        flushes: u64,
    ) -> Stored;

    /// The same, unless something is in the way. That is asked once the gate is passed. None if so:
    /// nothing has changed.
    fn put_at_unless(
        &mut self,
        at: (Keyhash, Self::HomeBucket),
        item: &NewItem<'_>,
        now: Moment,
        flushes: u64,
        is_in_the_way: impl FnOnce() -> bool,
    ) -> Option<Stored>;

    /// Lends a large value for as long as the result lives. `take` sees its item. Does not count as
    /// a read. None if there is no such item, or if the value is not to be lent: see
    /// [`TableReader::lend`].
    fn lend<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<WithLent<T>>;

    /// A handle for reading beside the writer, if the access mode allows that.
    fn reader(&self) -> Option<Self::Reader>;

    /// Writes down what only the writer knows, if the table lies in a file. `flushes` are due, and
    /// those that the table has not carried out are carried out first. Nothing is changed after
    /// that.
    fn save(&mut self, flushes: u64);

    /// A second writing side, for another worker, if the access mode allows that.
    fn share(&self, worker: usize) -> Option<Self>;

    /// The table without its access mode, if this is its only writing side. No other thread may
    /// read it meanwhile, and none may go on to use a reader that it was given.
    fn into_parts(self) -> Option<Self::Parts>;

    /// The table that has these parts, under this access mode.
    fn of_parts(parts: Self::Parts) -> Self;

    /// Keys have groups from now on. Only before the table is shared. All tables of a store have
    /// the same ones.
    ///
    /// # Panics
    ///
    /// If it is shared already.
    fn have_groups(&mut self, groups: &Arc<Groups>);

    /// Reports what leaves the table to this observer. Only before the table is shared.
    ///
    /// # Panics
    ///
    /// If it is shared already.
    fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>);

    /// Has the table wait for these batches before it gives memory that readers write to another
    /// owner, and says which worker has this handle. Only before the table is shared. Readers read
    /// in these batches only.
    fn join(&mut self, batches: &Arc<Batches>, worker: usize);

    /// What runs the stages before execution.
    fn prefetcher(&self) -> Arc<Self::Prefetcher>;

    /// A way to the partition's figures, for any thread.
    fn figures(&self) -> Box<dyn TableFigures>;
}

/// What became of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The item is there, with this CAS unique.
    Yes(u64),
    /// The item is larger than the limit; nothing has changed.
    TooLarge,
    /// There is no room, and the table evicts nothing; nothing has changed, and the old item is
    /// still there.
    OutOfMemory,
}

/// Why a read found no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is one, and it has expired.
    Expired,
    /// There was one before the last flush, or before its group was last invalidated.
    Flushed,
    /// Anything else, as far as the table knows.
    Other,
}

/// A writer at work: requests are executed on this. An item that has expired is not there, and
/// neither is one whose [group](crate::groups) was invalidated since it was stored.
///
/// Verbs that are not hot use it as a trait object, so that they are compiled once and not for each
/// table and access mode.
pub trait TableWriter {
    /// Brings a draft, whose value may be stored from now on, and gives up the one that was brought
    /// before and not stored. While a draft can be stored, the memory that it was made from does
    /// not change: who brings one for a request gives it up, by `None`, before the request ends.
    fn bring(&mut self, draft: Option<Draft>);

    /// Executes a request whose value has arrived: `execute` is called once, with a writer and the
    /// value. If it stores exactly these bytes as the whole value of an item of the key that was
    /// announced, the upload's place becomes the item. If not, the place is given up afterwards.
    ///
    /// `execute` cannot store anything else: that is refused as
    /// [`OutOfMemory`](Stored::OutOfMemory), since the value must stay where it is meanwhile. A
    /// request that appends the value to another one, say, takes a
    /// [copy](Upload::copy_to) of it and has nothing to do with this.
    fn with_upload(&mut self, upload: Upload, execute: &mut dyn FnMut(&mut dyn TableWriter, &[u8]));

    /// Where the CAS uniques of items come from that are stored from now on.
    fn cas_sequence(&mut self) -> &mut CasSequence;

    /// Finds the key's item, and does not count as a read.
    fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Item<'_>>;

    /// Reads an item: `take` sees it, and copies what it wants. None if there is no such item.
    fn read<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T>
    where
        Self: Sized;

    /// [`read`](Self::read) for trait objects, which have [`take`](TableWriter#method.take).
    fn show(&mut self, keyhash: Keyhash, key: &[u8], now: Moment, take: &mut dyn FnMut(&Item<'_>));

    /// Stores an item under its key, in place of the one that is there, with the CAS unique of its
    /// history or, if that has none, a new one.
    fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored;

    /// Removes the key's item; says whether there was one.
    fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool;

    /// Changes when the key's item expires; says whether that was done: there may be no such item,
    /// or no room for its expiry. Counts as a read. The CAS unique stays: touching is no mutation.
    fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool;

    /// Stores an item whose value is the one that its key has now, with the first part of the
    /// item's value in front of it and the second part after it. The value is copied from where it
    /// lies to where it is to lie, and nowhere else. None if there is no such item, or if the table
    /// had to give it up to make room.
    fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored>;

    /// Gives the key's item another expiry and another history, of which the CAS unique stays if it
    /// names none; value and flags stay. Says whether that was done: there may be no such item, or
    /// no room for what it has to carry. Does not count as a read.
    fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool;

    /// Shows `visit` the items of the chain (bucket, set) with this number that have not expired,
    /// each with what [`TableWriter::was_read`] says of it. Returns the number of the next chain,
    /// if there is one. The walk begins with 0 and may span any number of visits to the table.
    /// Items that are there throughout are shown once, unless the table moves them: see
    /// [`walk_on`](TableWriter::walk_on).
    fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize>;

    /// A walk that misses nothing comes to this chain next, or ends. From here on, the table notes
    /// what it moves from chains that the walk has yet to come to, to chains that the walk has
    /// passed. Shows `visit` the keys that it has noted since the last call. Returns false if there
    /// were too many to be noted: then the walk has missed some, and has to begin again. There is
    /// one such walk at a time.
    fn walk_on(&mut self, _chain: Option<usize>, _visit: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    /// Removes the items of the chain with this number that have expired, or whose groups were
    /// invalidated. Returns how many there were, and the number of the next chain, as
    /// [`TableWriter::list`] does. The table counts the items that no client had fetched, but none
    /// as reclaimed: no store has taken their place.
    fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>);

    /// A sweep begins: all chains are about to be visited by [`expire`](Self::expire), from the
    /// first one on, by callers who have [`GROUPS_DUE`](crate::groups::GROUPS_DUE) in their numbers
    /// of flushes. Returns what the table calls the sweep.
    fn begin_sweep(&mut self) -> u64 {
        0
    }

    /// Whether the sweep of this name, which has come to its end, has met all items of groups that
    /// were invalidated before it began. If not, as some were moved past it, or as another one has
    /// begun since, it has to begin again.
    fn has_swept(&mut self, _name: u64) -> bool {
        true
    }

    /// Why a read has just found nothing, for figures: what the table still remembers.
    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence;

    /// The second, counted from the server's epoch, in which the key's item was put where it lies,
    /// or an earlier one; none if the table does not know.
    fn stored_s(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<u32>;

    /// Whether the key's item is known to have been read since it was stored, by reads that left no
    /// mark on the item itself.
    fn was_read(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool;
}

impl dyn TableWriter + '_ {
    /// Reads an item, as [`TableWriter::read`] does.
    pub fn take<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let (mut take, mut taken) = (Some(take), None);
        self.show(keyhash, key, now, &mut |item| {
            taken = take.take().map(|take| take(item));
        });
        taken
    }
}

/// An optimistic read that did not come to an end: it met a writer every time, or a flush that the
/// table has yet to carry out. The writing side has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The reading side of a partition, for cores that do not own it.
pub trait TableReader: Clone + Send {
    /// See [`Table::HomeBucket`].
    type HomeBucket: Copy + Default;
    /// See [`Table::Prefetcher`].
    type Prefetcher: Prefetcher<HomeBucket = Self::HomeBucket>;

    /// Reads an item beside the writer, in a batch of those that the table [waits
    /// for](Table::join). `take` may run several times, each time on what may turn out to be
    /// nonsense (of sane size): it must undo what it did the last time, and the caller must undo
    /// the last run unless the answer is an item.
    ///
    /// # Errors
    ///
    /// [`Busy`] if the read met writers again and again, or at once if `flushes` (see
    /// [`Table::enter`]) is news to the partition.
    #[inline(always)]
    fn read<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy> {
        self.read_at(
            batch,
            Self::HomeBucket::default(),
            keyhash,
            key,
            now,
            flushes,
            take,
        )
    }

    /// [`read`](Self::read) of a key whose home was this one not long ago, or the default for none.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[expect(clippy::too_many_arguments, reason = "a read and where it begins")]
    fn read_at<T>(
        &self,
        batch: &Batch<'_>,
        home: Self::HomeBucket,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy>;

    /// [`read`](Self::read) that does not count as a read of the item.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn peek<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<T>, Busy>;

    /// Lends a large value for as long as the result lives. `take` sees its item, as in
    /// [`read`](Self::read), and what it takes is returned. Does not count as a read.
    ///
    /// # Errors
    ///
    /// [`Busy`] as in [`read`](Self::read), and also if the value is not to be lent: the table
    /// lends as many as it may, or the item is smaller than `DRAFT_BYTES_MIN`.
    fn lend<T>(
        &self,
        batch: &Batch<'_>,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnMut(&Item<'_>) -> T,
    ) -> Result<Option<WithLent<T>>, Busy>;

    /// See [`TableWriter::absence`]. Beside a writer the answer may be wrong.
    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence;

    /// See [`Table::prefetcher`].
    fn prefetcher(&self) -> Arc<Self::Prefetcher>;
}

/// Fetches what requests will need from memory, without reading it and without waiting for it. The
/// same for all that may touch a partition.
pub trait Prefetcher: Send + Sync {
    /// See [`Table::HomeBucket`].
    type HomeBucket: Copy + Default;

    /// Where the key's entry can be now. It may be elsewhere in the next moment: the home is good
    /// for fetching, and for saying where to look first.
    fn home(&self, keyhash: Keyhash) -> Self::HomeBucket;

    /// Fetches a bucket without waiting for it (the pipeline's first stage).
    fn prefetch_bucket(&self, home: Self::HomeBucket);

    /// Fetches the first lines of the items that the key's tag names in its bucket, without waiting
    /// for them (the pipeline's second stage). The home then carries the slot of the first of them:
    /// see [`Index`]. If there are none, this fetches the bucket behind it, if there is one, and
    /// says so.
    fn prefetch_item(&self, home: &mut Self::HomeBucket) -> bool;

    /// The same for the bucket behind it (the pipeline's third stage).
    fn prefetch_item_behind(&self, home: &mut Self::HomeBucket);
}

/// Reads a partition's figures, from any thread.
pub trait TableFigures: Send + Sync {
    /// The figures now. `flushes` as in [`Table::enter`]: a partition that has yet to carry out a
    /// flush counts as empty.
    fn counts(&self, flushes: u64) -> Counts;

    /// How old the items are, as far as the table knows.
    fn ages(&self) -> Ages;

    /// Large values that are being received.
    fn uploads(&self) -> UploadFigures;

    /// What has been learned about the eviction rule, if it follows the requests.
    fn learned(&self) -> Option<Learned>;

    /// Bytes that items can lie in.
    fn heap_bytes(&self) -> u64;

    /// Bytes of the index.
    fn index_bytes(&self) -> u64;

    /// Where heap and index lie in memory, for [`PageReport::of`](crate::memory::PageReport::of).
    fn addresses(&self) -> Vec<Range<usize>>;
}

/// Whether `now` matters to a lookup: an item that has expired is not there.
#[inline(always)]
pub(crate) fn expired(item: &Item<'_>, now: Moment) -> bool {
    item.layout().expiry && item.expiry().is_due(now)
}
