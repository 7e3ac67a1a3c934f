//! Cache mode (MICA §4.3.1–4.3.2): a lossy index over one or two circular logs, with one writer at
//! a time.
//!
//! `logs` says which entries are live and where their items lie, `admission` which log an item
//! enters, `put` stores it, and `read` tells the eviction rule of a read; the other verbs are those
//! of every [`table`]. `append` lets an item grow where it lies, and `draft` stores what is large,
//! at a `vacant` `place` if one fits, or where it is received as an `upload`. To store an item
//! takes `make_room` at the head of a log, `lookahead` of that head, `scan` for stale entries,
//! `slots` for entries of chains that are full, `growth` of the index at the log's expense, and a
//! `share` of the memory.

mod admission;
mod ages;
mod append;
mod audit;
mod calendar;
mod config;
mod draft;
mod goal;
mod growth;
mod logs;
mod lookahead;
mod make_room;
mod persist;
mod place;
mod put;
mod read;
mod recover;
mod scan;
mod share;
mod slots;
mod upload;
mod vacant;

pub use config::PartitionConfig;

use crate::access::Access;
use crate::evict::{Pace, Rule};
use crate::heap::{Geometry, Offset, Put};
use crate::index::chained::{Border, FreeList};
use crate::index::{Entry, LogId, Slot};
use crate::memory::Words;
use crate::table::{
    self, Attach, ConfigError, DRAFT_WORDS_MIN, Design, Draft, Heap, Ledger, Reservation, Reserved,
    Search, Step, Stored,
};
use calendar::Calendar;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::{Expiry, Keyhash, Moment};
use logs::Logs;
use lookahead::Lookahead;
use std::marker::PhantomData;
use vacant::Vacant;

/// The design of this kind of table.
pub struct MicaCache<A>(PhantomData<A>);

/// The writing side of a partition.
pub type Owner<A> = table::Owner<MicaCache<A>>;
/// A writer at work.
pub type Writer<'a, A> = table::Writer<'a, MicaCache<A>>;
/// What every core may see of a partition.
type Shared = table::Shared<Logs>;
/// Where an item was found.
type Found<'a> = table::Found<'a, Logs>;

/// What only the writer has.
pub struct State {
    ledger: Ledger,
    tails: [Offset; 2],
    geometry: [Geometry; 2],
    /// Positions that the tails do not cross.
    limits: [u64; 2],
    /// Words that laps have, or will have.
    lap_words: [u64; 2],
    /// What the partition has of the memory.
    share: share::Share,
    lookahead: [Lookahead; 2],
    scan: scan::Cursor,
    spares: FreeList,
    border: Border,
    /// Stores in a row that have found no spare bucket by scanning for one.
    scanned_in_vain: u32,
    growth: growth::Growth,
    /// Where the item lies whose value a request is about to copy: it stays until that is done.
    in_use: Option<(LogId, Offset)>,
    /// Whether items of a log were passed whose values may be lent, since its head was last
    /// published. The other log's head may be published in between.
    passed_large: [bool; 2],
    /// Places that large items have left.
    vacant: Vacant,
    /// Words of the places of drafts and uploads that have not become items.
    reserved_words: u64,
    /// Laps that began by flushes since all stale entries were last removed.
    laps_unpaid: u64,
    /// The search for what has expired.
    search: Search,
    /// How often a number was drawn.
    draws: u32,
    admission: admission::Admission,
    /// How fast the main log's head may go.
    pace: Pace,
    /// When items were appended, by [`LogId`].
    calendars: [Calendar; 2],
    /// The log that an item was evicted from most recently, if one was since ages were last shown.
    evicted_from: Option<LogId>,
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
    pub fn new(config: &PartitionConfig, rule: Rule) -> Result<Self, ConfigError> {
        Owner::mapped(config, rule)?()
    }

    /// The memory of a partition, and what makes its owner of that. Where the memory lies in a file
    /// that was not closed, making the owner takes long, and can be done beside others; memory has
    /// to be had in the same order every time.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the sizes do not fit together or the memory is not to be had.
    pub fn mapped(config: &PartitionConfig, rule: Rule) -> Result<Attach<Self>, ConfigError> {
        let (mut shared, share, limits) = config.build(rule)?;
        if let Some((file, number)) = &config.file {
            shared.keep_in(&file.record(*number), file.state())?;
        }
        let heads = [LogId::Main, LogId::Small].map(|id| shared.log(id).head());
        let state = State {
            ledger: Ledger::default(),
            tails: heads,
            geometry: [LogId::Main, LogId::Small].map(|id| shared.log(id).geometry()),
            limits,
            lap_words: [LogId::Main, LogId::Small]
                .map(|id| share.lap_words(id, limits[id as usize])),
            share,
            lookahead: heads.map(Lookahead::at),
            scan: scan::Cursor::default(),
            spares: FreeList::default(),
            border: Border::of(&shared.index),
            scanned_in_vain: 0,
            growth: growth::Growth::new(config.index_follows),
            in_use: None,
            passed_large: [false; 2],
            vacant: Vacant::default(),
            reserved_words: 0,
            laps_unpaid: 0,
            search: Search::default(),
            draws: 0,
            admission: admission::Admission::new(rule.setting),
            pace: Pace::default(),
            calendars: Default::default(),
            evicted_from: None,
        };
        let mut owner = Owner::of(shared, state);
        let file = config.file.clone();
        Ok(Box::new(move || {
            owner.attach(file)?;
            Ok(owner)
        }))
    }
}

impl<A: Access> Design for MicaCache<A> {
    type Access = A;
    type Heap = Logs;
    type State = State;

    /// Everything that is stored lies before the new head, and is gone.
    fn flush(writer: &mut Writer<'_, A>, flushes: u64) {
        let shared = writer.shared;
        shared.common.drafts.wait_for_all();
        writer.take_back_uploads();
        for id in [LogId::Main, LogId::Small] {
            writer.state.passed_large[id as usize] = true;
            let tail = writer.state.tails[id as usize];
            let head = shared.log(id).head();
            shared.heap.flushed_from[id as usize].store(head.raw(), Relaxed);
            shared.heap.flushed_to[id as usize].store(tail.raw(), Relaxed);
            writer.set_head(id, tail);
            writer.state.lookahead[id as usize] = Lookahead::at(tail);
        }
        writer.restart_lap();
        writer.keep_uploads();
        writer.give_back_all();
        shared.common.emptied();
        shared.heap.learner.clear();
        // A reader that sees the number sees the heads as well.
        shared.common.flushes.announce(flushes);
    }

    #[inline(always)]
    fn store(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        writer.put_as(put).then_some(Stored::Yes(put.cas))
    }

    fn extend(writer: &mut Writer<'_, A>, put: &Put<'_>) -> Option<Stored> {
        writer.extend_as(put).then_some(Stored::Yes(put.cas))
    }

    fn reserve(writer: &mut Writer<'_, A>, reservation: &mut Reservation<'_>) -> Step {
        writer.reserve(reservation)
    }

    fn place_of(shared: &Shared, place: Reserved) -> Words<'_> {
        shared.place_of(place)
    }

    fn abandon(writer: &mut Writer<'_, A>, place: Reserved) {
        let (id, offset) = place::named(place.at);
        writer.state.reserved_words -= place.words;
        writer.vacate(id, offset, place.words);
    }

    fn store_drafted(writer: &mut Writer<'_, A>, put: &Put<'_>, draft: Draft) -> Option<Stored> {
        writer.note_store(put);
        let is_done = writer.put_drafted(put, draft.place);
        is_done.then_some(Stored::Yes(put.cas))
    }

    fn save(writer: &mut Writer<'_, A>) {
        writer.save();
    }

    fn upload_words_max(writer: &Writer<'_, A>) -> u64 {
        writer.upload_words_max()
    }

    #[inline(always)]
    fn free(writer: &mut Writer<'_, A>, found: &Found<'_>) {
        if found.item.words() >= DRAFT_WORDS_MIN {
            let words = found.item.words() as u64;
            writer.vacate(found.entry.log(), found.entry.offset(), words);
        }
    }

    fn count_read_or_move(
        writer: &mut Writer<'_, A>,
        keyhash: Keyhash,
        named: (Slot, Entry),
        now: Moment,
    ) {
        writer.count_read_or_reinsert(keyhash, named, now);
    }

    #[inline(always)]
    fn may_write_over(shared: &Shared, state: &State, entry: Entry) -> bool {
        !shared.heap.moves_what_is_read() && !state.is_near_head(entry.log(), entry.offset())
    }

    #[inline(always)]
    fn written_over(
        shared: &Shared,
        _state: &mut State,
        (cell, entry): (&AtomicU64, Entry),
        _words: usize,
    ) {
        shared.note_written_over::<A>(cell, entry);
    }

    fn amended(writer: &mut Writer<'_, A>, expiry: Expiry) {
        writer.state.search.soonest.note(expiry);
    }

    fn stored_s(writer: &Writer<'_, A>, found: &Found<'_>) -> Option<u32> {
        let id = found.entry.log();
        let (log, calendar) = (writer.log(id), &writer.state.calendars[id as usize]);
        calendar.second_of(found.entry.offset(), log.head(), log.geometry())
    }
}
