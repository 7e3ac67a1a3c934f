//! The table of MemC3 (NSDI'13): an optimistic cuckoo index over slab classes, with CLOCK eviction,
//! and one writer at a time beside any number of readers.
//!
//! `heap` says where items lie, and `put` stores an item; the other verbs are those of every
//! [`table`]. `room` makes room for an item (CLOCK, and slabs that move between classes), and
//! `grow` for its entry in the index. Before a chunk of a large item is given to another one or
//! written over, the writer makes sure that its value is not lent any more: see
//! [`LentValue`](crate::table::LentValue). A large value that arrives has a chunk as an `upload`.
//! `persist` has a table in a file go on with the next process, and `recover` after one that was
//! ended by force.
//!
//! It departs from the paper in these points:
//!
//! - The paper has one table, whose writers take one lock. Here each partition is a table of its
//!   own with one writer at a time, as the access mode has it.
//! - The paper's index has a fixed size, and a full one stops the server. Here segments split while
//!   the index grows, out of the memory that items have. An index that must not grow evicts.
//! - The alternate bucket is found by subtraction instead of exclusive or, so the number of buckets
//!   may be any even number instead of a power of two.
//! - Instead of 8192 version counters by keyhash, apart from the buckets, each line of three
//!   buckets has one.
//! - A lookup validates the lines of both buckets instead of its own key's version: another key's
//!   eviction can hand the memory that is being read to a third key.
//! - A slot has a 1-byte tag and a 30-bit offset instead of an 8-byte pointer, the CLOCK bit, and a
//!   bit that says whether the item was fetched.
//! - Instead of slabs of 1 MiB that stay with their class, pages of 64 KiB go to the class that
//!   needs them.

mod audit;
mod config;
mod grow;
mod heap;
mod persist;
mod put;
mod recover;
mod room;
mod upload;
mod walk;

pub use config::Memc3Config;

use crate::access::Access;
use crate::batches::GracePeriod;
use crate::heap::Put;
use crate::heap::slab::Slabs;
use crate::index::cuckoo::{Breadth, Cell, Slot, SlotAt, Step};
use crate::memory::Words;
use crate::table::{
    self, Attach, ConfigError, Design, Draft, Ledger, Reservation, Reserved, Search, Stored,
};
use glimmer_base::{Expiry, Keyhash};
use heap::Chunks;
use std::marker::PhantomData;

/// The design of this kind of table.
pub struct Memc3<A>(PhantomData<A>);

/// The writing side of a table.
pub type Owner<A> = table::Owner<Memc3<A>>;
/// A writer at work.
pub type Writer<'a, A> = table::Writer<'a, Memc3<A>>;
/// What every core may see of a table.
type Shared = table::Shared<Chunks>;
/// Where an item was found.
type Found<'a> = table::Found<'a, Chunks>;

/// What only the writer has.
pub struct State {
    ledger: Ledger,
    slabs: Slabs,
    search: Breadth,
    /// The search for what has expired.
    expired: Search,
    path: Vec<Step>,
    /// Pages of the index that hold a segment; the others of its pages are from before a flush.
    segments: usize,
    segments_max: usize,
    /// What is waited for before the others are given to items.
    unused: Option<GracePeriod>,
    /// Holds what is in a slab while it is emptied.
    slab_items: Vec<(Keyhash, usize)>,
    slab_slots: Vec<SlotAt>,
    /// For each line of a segment that is being split, the slots that leave it.
    leaving: Vec<u16>,
    /// The walk that is to miss nothing, if there is one.
    walk: Option<Box<walk::Walk>>,
    /// Whether an item of a group that was invalidated has been moved since the sweep began.
    has_moved_dead: bool,
    /// Sweeps that have begun.
    sweeps: u64,
    /// What is kept of the table in a file.
    kept: Option<persist::Kept>,
}

impl table::State for State {
    #[inline(always)]
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

impl<A: Access> Owner<A> {
    /// An empty table and its owner.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn new(config: &Memc3Config) -> Result<Self, ConfigError> {
        Owner::mapped(config)?()
    }

    /// The memory of a table, and what makes its owner of that. Where the memory lies in a file
    /// that was not closed, making the owner takes long, and can be done beside others; memory has
    /// to be had in the same order every time.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn mapped(config: &Memc3Config) -> Result<Attach<Self>, ConfigError> {
        let (shared, mut state) = config.build()?;
        state.keep_in(config, &shared)?;
        let mut owner = Owner::of(shared, state);
        let file = config.file.clone();
        Ok(Box::new(move || {
            owner.attach(file)?;
            Ok(owner)
        }))
    }
}

impl<A: Access> Design for Memc3<A> {
    type Access = A;
    type Heap = Chunks;
    type State = State;

    /// The index begins again with one empty segment, and all slabs are free.
    fn flush(writer: &mut Writer<'_, A>, flushes: u64) {
        let shared = writer.shared;
        writer.take_back_uploads();
        let root = shared.root();
        for line in shared.index.segment_on(root).lines() {
            shared.index.empty_line(line, A::SHARED_READS);
        }
        shared.index.directory.assign_all(root);
        writer.state.segments = 1;
        writer.note_segments();
        // A reader that begins with this number sees the directory as well.
        shared.common.flushes.announce(flushes);
        // Only now is the memory of items given to others. The grace period begins with a fence, so
        // a reader that meets a byte of what comes next sees the number too. The memory of segments
        // is given away when it is over.
        writer.state.unused = Some(writer.seat.grace_period());
        shared.common.loans.give_up_all();
        writer.keep_uploads();
        shared.common.emptied();
    }

    #[inline(always)]
    fn store(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        writer.put_as(put).then_some(Stored::Yes(put.cas))
    }

    fn extend(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        writer.extend_as(put).then_some(Stored::Yes(put.cas))
    }

    fn reserve(writer: &mut Writer<'_, A>, reservation: &mut Reservation<'_>) -> table::Step {
        writer.reserve(reservation)
    }

    fn place_of(shared: &Shared, place: Reserved) -> Words<'_> {
        shared.place_of(place)
    }

    fn abandon(writer: &mut Writer<'_, A>, place: Reserved) {
        writer.abandon(place);
    }

    fn store_drafted(writer: &mut Writer<'_, A>, put: &Put<'_>, draft: Draft) -> Option<Stored> {
        writer.put_drafted(put, draft.place);
        Some(Stored::Yes(put.cas))
    }

    fn save(writer: &mut Writer<'_, A>) {
        writer.save();
    }

    fn upload_words_max(writer: &Writer<'_, A>) -> u64 {
        writer.upload_words_max()
    }

    fn upload_words(writer: &mut Writer<'_, A>) -> u64 {
        writer.upload_words()
    }

    /// An item lies in a chunk of its size's class.
    #[inline(always)]
    fn may_write_over(_shared: &Shared, _state: &State, _entry: Slot) -> bool {
        true
    }

    /// A use of the item.
    #[inline(always)]
    fn written_over(shared: &Shared, state: &mut State, (cell, _): (Cell<'_>, Slot), words: usize) {
        table::learn_size(&shared.common, &mut state.ledger, words);
        cell.set_written_over(&shared.index.nowhere);
    }

    fn walk_on(
        writer: &mut Writer<'_, A>,
        chain: Option<usize>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        writer.walk_on(chain, visit)
    }

    fn begin_sweep(writer: &mut Writer<'_, A>) -> u64 {
        writer.state.has_moved_dead = false;
        writer.state.sweeps += 1;
        writer.state.sweeps
    }

    fn has_swept(writer: &mut Writer<'_, A>, name: u64) -> bool {
        writer.state.sweeps == name && !writer.state.has_moved_dead
    }

    fn amended(writer: &mut Writer<'_, A>, expiry: Expiry) {
        writer.state.expired.soonest.note(expiry);
    }

    #[inline(always)]
    fn free(writer: &mut Writer<'_, A>, found: &Found<'_>) {
        writer.free_chunk_of(found);
    }
}

impl Shared {
    /// The page of the segment that the index begins with: the pool's last, which is never given
    /// to items.
    fn root(&self) -> usize {
        self.pool().pages() - 1
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
