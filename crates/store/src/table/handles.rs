//! The three handles of every table: its writing side, a writer at work, and its reading side. A
//! [`Design`] says what kind of table it is.

use super::shared::{EntryIn, Found, Index, Ledger, LockIn, PlaceIn, Shared, SlotIn, State};
use super::{
    Absence, Ages, Busy, Counts, Stored, Table, TableFigures, TableReader, optimistically,
};
use crate::access::{Access, Gate};
use crate::batches::{Batch, Batches, Seat};
use crate::heap::{Item, Measured};
use crate::removals::{RemovalObserver, Tap};
use glimmer_base::sync::Ordering::Release;
use glimmer_base::sync::{Arc, fence, weakened};
use glimmer_base::{Expiry, Keyhash, Moment};
use std::ops::Range;

/// One kind of table.
pub trait Design: Sized + 'static {
    /// Who may touch what.
    type Access: Access;
    /// What every core may see.
    type Shared: Shared;
    /// What only the writer has.
    type State: State;

    /// Carries out a flush: from now on nothing that was stored is found, and then the number of
    /// flushes is announced. Nothing is walked.
    fn flush(writer: &mut Writer<'_, Self>, flushes: u64);

    /// Stores an item that is within the limit with a given CAS unique, which is that of its
    /// history if the history has one. None if the item's value was to stay, and had to leave to
    /// make room.
    fn store(
        writer: &mut Writer<'_, Self>,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> Option<Stored>;

    /// Lets the eviction rule know that the writer has read an item.
    #[inline(always)]
    fn count_read(
        writer: &mut Writer<'_, Self>,
        _keyhash: Keyhash,
        slot: SlotOf<Self>,
        entry: EntryOf<Self>,
        _now: Moment,
    ) {
        writer.note_read(slot, entry);
    }

    /// Takes back the memory of an item whose entry has just been cleared.
    fn free(_writer: &mut Writer<'_, Self>, _found: &Found<'_, Self::Shared>) {}

    /// Entries were cleared under a lock: the index may need less memory.
    fn cleared(_writer: &mut Writer<'_, Self>, _lock: LockOf<Self>) {}

    /// An item was given this expiry in its place.
    fn amended(_writer: &mut Writer<'_, Self>, _expiry: Expiry) {}

    /// See [`TableWriter::stored_s`](super::TableWriter::stored_s).
    fn stored_s(_writer: &Writer<'_, Self>, _found: &Found<'_, Self::Shared>) -> Option<u32> {
        None
    }
}

/// Where an entry of a table stands.
pub type SlotOf<D> = SlotIn<<D as Design>::Shared>;
/// An entry of a table.
pub type EntryOf<D> = EntryIn<<D as Design>::Shared>;
/// What covers an entry of a table.
pub type LockOf<D> = LockIn<<D as Design>::Shared>;

/// The gate to the state of a table's writer.
type GateOf<D> = <<D as Design>::Access as Access>::Gate<<D as Design>::State>;

/// The writing side of a table. Under EREW and CREW there is one. Under CRCW each core has one, and
/// writers exclude one another.
pub struct Owner<D: Design> {
    pub(crate) shared: Arc<D::Shared>,
    gate: GateOf<D>,
    seat: Seat,
}

/// A writer at work: the owner with its gate passed. Requests are executed on this.
pub struct Writer<'a, D: Design> {
    pub(crate) shared: &'a D::Shared,
    pub(crate) state: <GateOf<D> as Gate<D::State>>::Guard<'a>,
    pub(crate) seat: &'a Seat,
}

/// The reading side of a table, for cores that do not own it.
pub struct Reader<S> {
    shared: Arc<S>,
    seat: Seat,
}

/// A way to a table's figures, for any thread.
pub struct Figures<S>(Arc<S>);

impl<D: Design> Owner<D> {
    pub(crate) fn of(shared: D::Shared, state: D::State) -> Self {
        Owner {
            shared: Arc::new(shared),
            gate: Gate::new(state),
            seat: Seat::alone(),
        }
    }
}

impl<D: Design> Writer<'_, D> {
    #[inline(always)]
    pub(crate) fn ledger(&mut self) -> &mut Ledger {
        self.state.ledger()
    }
}

impl<D: Design> Table for Owner<D> {
    type Access = D::Access;
    type Writer<'a> = Writer<'a, D>;
    type Place = PlaceIn<D::Shared>;
    type Reader = Reader<D::Shared>;

    /// # Memory that one writer gives up and another overwrites
    ///
    /// A reader validates what it has copied by words that the writer changes before it gives
    /// memory up: a version, a head, a number of flushes. Between that change and the first store
    /// to the memory lies a release fence. The reader runs an acquire fence between its copy and
    /// its last look. If it has copied one new byte, the fences synchronise, and its last look sees
    /// the change.
    ///
    /// Where all may write, the thread that overwrites need not be the one that made the change.
    /// The fence of the first thread orders nothing for the second: the lock makes the change
    /// happen before the second thread's stores, but a relaxed store carries none of that to a
    /// reader that sees it. So a writer that enters runs a release fence of its own, once for all
    /// that others have given up.
    #[inline(always)]
    fn enter(&mut self, flushes: u64) -> Writer<'_, D> {
        let (shared, seat) = (&*self.shared, &self.seat);
        let state = self.gate.enter();
        let mut writer = Writer {
            shared,
            state,
            seat,
        };
        if D::Access::SHARED_WRITES && !weakened("enter_release_fence") {
            fence(Release);
        }
        // Another writer may know of more flushes. What it has stored since then stays.
        if shared.common().flushes.get() < flushes {
            D::flush(&mut writer, flushes);
        }
        writer
    }

    fn reader(&self) -> Option<Self::Reader> {
        D::Access::SHARED_READS.then(|| Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        })
    }

    fn share(&self, worker: usize) -> Option<Self> {
        Some(Owner {
            shared: self.shared.clone(),
            gate: self.gate.share()?,
            seat: self.seat.of_worker(worker),
        })
    }

    fn observe(&mut self, tap: std::sync::Arc<Tap<dyn RemovalObserver>>) {
        let shared = Arc::get_mut(&mut self.shared).expect("the table is not shared yet");
        shared.common_mut().exit.attach(tap);
    }

    fn join(&mut self, batches: &Arc<Batches>, worker: usize) {
        self.seat = Seat::new(batches, worker);
    }

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> Self::Place {
        self.shared.index().place(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, place: Self::Place) {
        self.shared.index().prefetch_bucket(place);
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, place: Self::Place) {
        self.shared.prefetch_item(keyhash, place);
    }

    fn figures(&self) -> Box<dyn TableFigures> {
        Box::new(Figures(self.shared.clone()))
    }
}

impl<S> Clone for Reader<S> {
    fn clone(&self) -> Self {
        Reader {
            shared: self.shared.clone(),
            seat: self.seat.clone(),
        }
    }
}

impl<S: Shared> TableReader for Reader<S> {
    type Place = PlaceIn<S>;

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
            if !shared.common().flushes.is_current(flushes) {
                return Some(Err(Busy));
            }
            let take = |item: &Item<'_>| {
                *bytes_copied += item.value().len();
                take(item)
            };
            (shared.try_read(keyhash, key, now, flushes, take)).map(Ok)
        })??;
        Ok(found.map(|(taken, slot, entry)| {
            shared
                .index()
                .count_read(slot, entry, shared.reads_counted());
            taken
        }))
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.shared.absence(keyhash, key)
    }

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> PlaceIn<S> {
        self.shared.index().place(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, place: PlaceIn<S>) {
        self.shared.index().prefetch_bucket(place);
    }

    #[inline(always)]
    fn prefetch_item(&self, keyhash: Keyhash, place: PlaceIn<S>) {
        self.shared.prefetch_item(keyhash, place);
    }
}

impl<S: Shared> TableFigures for Figures<S> {
    fn counts(&self, flushes: u64) -> Counts {
        let common = self.0.common();
        let mut counts = common.counters.counts();
        if common.flushes.seen() < flushes {
            counts.items = 0;
            counts.bytes = 0;
        }
        counts
    }

    fn ages(&self) -> Ages {
        self.0.ages()
    }

    fn heap_bytes(&self) -> u64 {
        self.0.heap_bytes()
    }

    fn index_bytes(&self) -> u64 {
        self.0.index().bytes()
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        self.0.addresses()
    }
}
