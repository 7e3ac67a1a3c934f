//! Store mode (MICA §4.3.3): a partition that loses nothing. Items lie in a heap of [segregated
//! fits](crate::heap::segregated_fits) under a [lossless index](crate::index::chained); an item
//! goes when a client says so or when it expires, and a store that finds no room is refused.
//!
//! `heap` says which entries are live and where their items lie, `put` stores an item, and `draft`
//! a large one; the other verbs are those of every [`table`]. `room` is what is done before a store
//! is refused, and `relocate` brings free space together. `scan` looks for expired items and for
//! entries that a flush has left, and `name` says how an index entry names an item here. `persist`
//! has a partition in a file go on with the next process, and `recover` after one that was ended by
//! force.
//!
//! # Memory
//!
//! Heap and index share one piece of memory. The heap grows from its beginning, the index from its
//! end, and the one that needs more takes of what lies between. No one has to guess the size of
//! either.
//!
//! # Optimistic readers
//!
//! The chain's version tells a reader of every change to the entries it has seen, and to items that
//! are written in place. Three things lie outside of a version:
//!
//! - *An item's place is given to another.* Its entry was removed first, under the version, and the
//!   release fence of that change lies between it and whatever is written there later; a reader
//!   that has seen any of it sees the version too. Under CRCW the later writer may be another
//!   thread, which runs a fence of its own when it [enters](crate::table::Table::enter).
//!   Before a place is freed, and before a large item is moved or written over, the writer makes
//!   sure that its value is not lent any more: see [`LentValue`](crate::table::LentValue).
//! - *A flush* touches no chain: it makes every entry stale by raising the generation that entries
//!   are compared with, and then runs the fence with which it looks for lent values. A reader looks
//!   at the generation again at the end.
//! - *The index changes its shape.* See [`index::chained`](crate::index::chained).

mod audit;
mod config;
mod draft;
mod heap;
mod name;
mod persist;
mod put;
mod recover;
mod relocate;
mod room;
mod scan;

pub use config::StoreConfig;

use crate::access::Access;
use crate::heap::Put;
use crate::heap::segregated_fits::SegregatedFits;
use crate::index::Entry;
use crate::index::chained::{Border, FreeList};
use crate::memory::Words;
use crate::table::{
    self, Attach, ConfigError, Design, Draft, Ledger, Reservation, Reserved, Step, Stored,
    TableWriter,
};
use glimmer_base::Expiry;
use glimmer_base::limits::UPLOADS_PART;
use glimmer_base::sync::AtomicU64;
use heap::Items;
use std::marker::PhantomData;

/// The design of this kind of table.
pub struct MicaStore<A>(PhantomData<A>);

/// The writing side of a partition.
pub type Owner<A> = table::Owner<MicaStore<A>>;
/// A writer at work.
pub type Writer<'a, A> = table::Writer<'a, MicaStore<A>>;
/// What every core may see of a partition.
type Shared = table::Shared<Items>;
/// Where an item was found.
type Found<'a> = table::Found<'a, Items>;

/// What only the writer has.
pub struct State {
    ledger: Ledger,
    fits: SegregatedFits,
    spares: FreeList,
    border: Border,
    scan: scan::Cursor,
    pending: Option<relocate::Pending>,
    /// Where the writer writes down what it knows of the heap, in a file.
    notes: config::Notes,
}

impl table::State for State {
    #[inline(always)]
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

impl<A: Access> Owner<A> {
    /// An empty partition and its owner.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn new(config: &StoreConfig) -> Result<Self, ConfigError> {
        Owner::mapped(config)?()
    }

    /// The memory of a partition, and what makes its owner of that. Where the memory lies in a file
    /// that was not closed, making the owner takes long, and can be done beside others; memory has
    /// to be had in the same order every time.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn mapped(config: &StoreConfig) -> Result<Attach<Self>, ConfigError> {
        let (mut shared, notes) = config.build()?;
        if let Some((file, number)) = &config.file {
            shared.keep_in(&file.record(*number), file.state())?;
        }
        let state = State {
            ledger: Ledger::default(),
            fits: SegregatedFits::new(shared.space()),
            spares: FreeList::default(),
            border: Border::of(&shared.index),
            scan: scan::Cursor::default(),
            pending: None,
            notes,
        };
        let mut owner = Owner::of(shared, state);
        let file = config.file.clone();
        Ok(Box::new(move || {
            owner.attach(file)?;
            Ok(owner)
        }))
    }
}

impl<A: Access> Design for MicaStore<A> {
    type Access = A;
    type Heap = Items;
    type State = State;

    /// Every entry is stale, and the heap is empty. The scan removes the entries in its own time.
    fn flush(writer: &mut Writer<'_, A>, flushes: u64) {
        let shared = writer.shared;
        shared.common.drafts.wait_for_all();
        writer.take_back_uploads();
        shared.begin_generation();
        // This begins with a fence: a reader that meets a byte of what is stored next sees the
        // generation as well.
        shared.common.loans.give_up_all();
        writer.state.fits.reset();
        writer.state.pending = None;
        writer.keep_uploads();
        shared.common.emptied();
        writer.scan_after_flush();
        // A reader that sees the number sees the generation as well.
        shared.common.flushes.announce(flushes);
    }

    /// If there is no room the old item stays.
    #[inline(always)]
    fn store(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        Some(match writer.put_as(put) {
            true => Stored::Yes(put.cas),
            false => Stored::OutOfMemory,
        })
    }

    fn extend(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        Some(match writer.extend_as(put) {
            true => Stored::Yes(put.cas),
            false => Stored::OutOfMemory,
        })
    }

    fn reserve(writer: &mut Writer<'_, A>, reservation: &mut Reservation<'_>) -> Step {
        writer.reserve(reservation)
    }

    fn place_of(shared: &Shared, place: Reserved) -> Words<'_> {
        shared.place_of(place)
    }

    fn abandon(writer: &mut Writer<'_, A>, place: Reserved) {
        writer.abandon(place);
    }

    fn store_drafted(writer: &mut Writer<'_, A>, put: &Put<'_>, draft: Draft) -> Option<Stored> {
        let is_done = writer.put_drafted(put, draft);
        // If it was not, or another place was taken, the draft is still there.
        writer.bring(None);
        is_done.then_some(Stored::Yes(put.cas))
    }

    fn save(writer: &mut Writer<'_, A>) {
        writer.save();
    }

    fn upload_words_max(writer: &Writer<'_, A>) -> u64 {
        (writer.state.border.open() / UPLOADS_PART) as u64
    }

    #[inline(always)]
    fn may_write_over(_shared: &Shared, _state: &State, _entry: Entry) -> bool {
        true
    }

    /// Whether the old item was fetched says nothing about the new one. All else that the entry
    /// says of the item has not changed.
    #[inline(always)]
    fn written_over(
        shared: &Shared,
        _state: &mut State,
        (cell, _): (&AtomicU64, Entry),
        _words: usize,
    ) {
        let entry = Entry::in_cell(cell);
        (shared.index).set_changed(cell, entry, entry.with_fetched(false));
    }

    #[inline(always)]
    fn free(writer: &mut Writer<'_, A>, found: &Found<'_>) {
        writer.free_place(found.at(), found.item.words());
    }

    #[inline(always)]
    fn cleared(writer: &mut Writer<'_, A>, home: usize) {
        writer.shorten_chain(home);
        writer.shrink_index();
    }

    fn amended(writer: &mut Writer<'_, A>, expiry: Expiry) {
        writer.state.scan.soonest.note(expiry);
    }
}
