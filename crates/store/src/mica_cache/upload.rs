//! Uploads: large values that are received where their items are to lie
//! ([`table::upload`](crate::table::Upload)).
//!
//! In the log the place of an upload is a filler that is reserved, as that of a draft is. But the
//! client may take longer than the log takes to go round. So the head that comes to the place keeps
//! it, whatever the eviction rule says. This costs nothing in most cases: the place *stays* where
//! it is, and becomes part of the tail's lap. What lies between the tail and the place is left out
//! of that lap. Only where this is much, or where it is to come together with what lies after the
//! place for a large item, the upload is moved to the tail, as an item that was read is.
//!
//! ```text
//!     tail       head                              tail   head
//! ----+----------+------------+-----    ----+------+------+-----
//!  new|   free   |   upload   | old      new|filler|upload| old       it stays
//! ----+----------+------------+-----    ----+------+------+-----
//!                                           tail   head
//!                                       ----+------+------+-----
//!                                        new|upload| free | old       it is moved
//!                                       ----+------+------+-----
//! ```
//!
//! So an upload always has a place, and none is lost. What its places may take is bounded: a part
//! of the main log, and the same part of the small one. If a store finds that a lap does not bring
//! together what it wants, uploads that are in the way leave the small log for the main one, and
//! come together at the beginning of the main one.
//!
//! # Laps that end early
//!
//! A [`Goal`](super::goal::Goal) may have a lap end before an upload. Then the upload is moved, or
//! else the lap goes on beyond the goal, and the index gets that memory in a later lap.
//!
//! # Flushes
//!
//! memcached stores what arrives after a flush, so uploads survive it. The log begins a new lap
//! with them: they slide to its beginning, one after the other. Offsets of laps are used up so
//! without any item that pays for the scan for stale entries. So after many such flushes the scan
//! is made at once.

use super::Writer;
use super::lookahead::Lookahead;
use super::make_room::Until;
use super::place::{Place, name_of, named};
use crate::access::Access;
use crate::heap::{Offset, write_filler};
use crate::index::{Entry, LogId};
use crate::memory::Words;
use crate::table::{Cell, DRAFT_WORDS_MIN, Heap};
use crate::work;
use glimmer_base::Moment;
use glimmer_base::limits::UPLOADS_PART;
use glimmer_base::sync::{Arc, weakened};

/// After flushes that have used up this part of the laps all stale entries are removed.
const LAPS_UNPAID_PART: u64 = 8;

/// What becomes of an upload at the head.
enum Kept {
    Stays,
    MovesTo(LogId),
}

impl<A: Access> Writer<'_, A> {
    /// Words that uploads may take, if there are several.
    pub(super) fn upload_words_max(&self) -> u64 {
        self.lap_words(LogId::Main) / UPLOADS_PART as u64
    }

    /// Whether an upload of this many words may be in a log.
    pub(super) fn takes_upload(&self, id: LogId, words: u64) -> bool {
        if id == LogId::Main {
            return true;
        }
        let places = self.state.ledger.uploads.cells().map(|cell| cell.place());
        let taken: u64 = places
            .filter(|place| named(place.at).0 == id)
            .map(|place| place.words)
            .sum();
        taken == 0 || (taken + words) * UPLOADS_PART as u64 <= self.limit(id)
    }

    /// Whether there is the place of an upload.
    pub(super) fn is_upload(&self, id: LogId, offset: Offset) -> bool {
        let cell = self.state.ledger.uploads.at(name_of(id, offset));
        cell.is_some_and(|cell| !cell.is_given_up())
    }

    /// Passes what is reserved at the head: waits for a copy in progress, and keeps an upload.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_reserved(
        &mut self,
        id: LogId,
        (head, after): (Offset, Offset),
        until: Until,
        now: Moment,
    ) {
        let at = name_of(id, head);
        let Some(cell) = self.state.ledger.uploads.at(at).cloned() else {
            return self.shared.common.drafts.wait_for(at);
        };
        if weakened("upload_kept") {
            return;
        }
        if cell.is_given_up() {
            self.state.ledger.uploads.end(at);
            self.state.reserved_words -= cell.place().words;
            return;
        }
        match self.fate_of_upload(id, head, cell.place().words, until) {
            Kept::Stays => self.leave_in_place(id, (head, after), now),
            Kept::MovesTo(to) => {
                let words = cell.place().words;
                if to != id {
                    self.claim(to, words, now);
                }
                self.set_head(id, after);
                self.move_to_tail(&cell, to);
                let tail = self.tail(to);
                self.appended(to, tail, words, now);
            }
        }
    }

    fn fate_of_upload(&self, id: LogId, head: Offset, words: u64, until: Until) -> Kept {
        let (tail, head, limit) = (
            self.position(id, self.tail(id)),
            self.position(id, head),
            self.limit(id),
        );
        let lead = head - tail;
        // The lap ends here, and what is free before the upload is lost to it anyway.
        let is_last = until.lead == u64::MAX;
        let costs_little = lead == 0 || is_last || lead <= words && !until.gathers;
        match id {
            // It may not fit beside what is wanted, wherever it is.
            LogId::Small if until.gathers && !is_last => Kept::MovesTo(LogId::Main),
            _ if costs_little && head + words <= limit => Kept::Stays,
            _ if tail + words <= limit => Kept::MovesTo(id),
            _ => Kept::Stays,
        }
    }

    /// Has the upload at the head be part of the tail's lap from now on, where it is.
    fn leave_in_place(&mut self, id: LogId, (head, after): (Offset, Offset), now: Moment) {
        let log = self.shared.log(id);
        let from = name_of(id, head);
        let words = self.geometry(id).distance(head, after);
        let tail = self.tail(id);
        let lead = self.position(id, head) - self.position(id, tail);
        // What lies there is given up first. The head may come to the tail's lap by this.
        self.set_head(id, after);
        if lead > 0 {
            write_filler(log.place(log.geometry().position(tail)), lead);
        }
        let to = self.geometry(id).advance(tail, lead);
        self.state.ledger.uploads.rename(from, name_of(id, to));
        self.appended(id, tail, lead + words, now);
        self.owe_scan_for(lead + words);
        // The walk ahead may have come to where the filler begins, which is no boundary for good.
        self.state.lookahead[id as usize] = Lookahead::at(after);
        if lead >= DRAFT_WORDS_MIN as u64 {
            self.state.vacant.add(Place {
                id,
                offset: tail,
                words: lead,
            });
        }
    }

    /// Copies an upload to the tail of a log, which has room for it. The head has passed it.
    fn move_to_tail(&mut self, cell: &Arc<Cell>, to: LogId) {
        let shared = self.shared;
        let place = cell.place();
        let (from, offset) = named(place.at);
        let (from_log, to_log) = (shared.log(from), shared.log(to));
        let at = from_log.geometry().position(offset);
        let tail = self.tail(to);
        let to_at = to_log.geometry().position(tail);
        let copy = |begun_words: usize| {
            if (from, at) != (to, to_at) {
                // In one log the tail lies before the place: the words are copied in their order.
                from_log.copy(at, begun_words, (to_log, to_at));
                work::moved(begun_words);
            }
            Words::of(to_log.place(to_at).range(0, place.words as usize))
        };
        // SAFETY: the place is in the memory of a log of this table.
        unsafe { cell.relocate(copy) };
        let name = name_of(to, tail);
        self.state.ledger.uploads.rename(place.at, name);
        self.owe_scan_for(place.words);
    }

    /// Has each log begin with the uploads that it has. The logs are empty but for them.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_uploads(&mut self) {
        if self.state.ledger.uploads.is_empty() {
            return;
        }
        for id in [LogId::Main, LogId::Small] {
            let cells = self.state.ledger.uploads.cells();
            let is_in_log = |cell: &&Arc<Cell>| named(cell.place().at).0 == id;
            let mut cells: Vec<_> = cells.filter(is_in_log).cloned().collect();
            if cells.is_empty() {
                continue;
            }
            if self.position(id, self.tail(id)) > 0 {
                self.end_lap(id);
                self.state.laps_unpaid += 1;
            }
            let geometry = self.log(id).geometry();
            cells.sort_by_key(|cell| geometry.position(named(cell.place().at).1));
            for cell in &cells {
                self.move_to_tail(cell, id);
                let (tail, words) = (self.tail(id), cell.place().words);
                self.state.tails[id as usize] = self.geometry(id).advance(tail, words);
            }
            if self.state.laps_unpaid * LAPS_UNPAID_PART >= geometry.laps() {
                self.state.laps_unpaid = 0;
                self.remove_stale();
            }
        }
    }

    /// Removes all entries that dangle.
    fn remove_stale(&mut self) {
        let (shared, index) = (self.shared, &self.shared.index);
        for main in 0..index.mains() {
            let is_stale = |entry: Entry| !entry.is_empty() && !shared.heap.is_live(entry);
            let removed = index.clear_if(index.main(main), is_stale, A::SHARED_READS);
            shared.common.counters.stale_removed.add(removed);
        }
    }
}
