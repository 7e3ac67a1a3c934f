//! Making room at the tail by moving the head: dead items are skipped, and live ones are evicted or
//! kept, as the eviction rule says.
//!
//! An item at the head counts as live only if the index holds exactly this offset for it. That one
//! probe, whose bucket was fetched ahead, keeps dead items dead (deleted, overwritten and flushed
//! ones never come back) and makes the figures honest. The entry of an evicted item is left as it
//! is: it dangles, is recognised as such, and serves rules that want to remember who left.

use super::lookahead::Lookahead;
use super::place::name_of;
use super::{Shared, Writer};
use crate::access::Access;
use crate::evict::{Arrival, AtHead, Budget};
use crate::heap::{Geometry, Header, Item, Offset};
use crate::index::{Entry, LogId, Slot};
use crate::removals::Reason;
use crate::table::{DRAFT_WORDS_MIN, Index, LOAN_WORDS_MIN};
use crate::work;
use glimmer_base::sync::{in_program_order, weakened};
use glimmer_base::{Keyhash, Moment};

/// Words that the head runs ahead of what is wanted, so that it is published once for several
/// stores.
const AHEAD_WORDS: u64 = 16;

/// While at least this part of the memory for items is dead, live items stay.
const DEAD_PART: u64 = 8;

/// See [`AHEAD_WORDS`]; small logs are not emptied by it. For an item that is larger it would save
/// next to nothing, and some stores would evict two such items and the next none.
fn ahead(log_words: u64, item_words: u64) -> u64 {
    match item_words > AHEAD_WORDS {
        true => 0,
        false => AHEAD_WORDS.min(log_words / 64),
    }
}

impl<A: Access> Writer<'_, A> {
    /// Makes room for `words` words at the tail of a log, and says where that is.
    #[inline(always)]
    pub(super) fn claim(&mut self, id: LogId, words: u64, now: Moment) -> Offset {
        if self.lacks_room(id, words) {
            self.find_room::<false>(id, words, &mut Budget::for_words(words), now);
        }
        self.tail(id)
    }

    /// One step of [`claim`](Self::claim), for which the head moves a little; says whether there is
    /// room now.
    pub(super) fn make_some_room(
        &mut self,
        id: LogId,
        words: u64,
        budget: &mut Budget,
        now: Moment,
    ) -> bool {
        !self.lacks_room(id, words) || self.find_room::<true>(id, words, budget, now)
    }

    #[inline(always)]
    fn lacks_room(&self, id: LogId, words: u64) -> bool {
        self.free(id) < words || self.state.growth.has_goal(id)
    }

    /// Words that are free at the tail of a log, as far as its lap may go.
    #[inline(always)]
    pub(super) fn free(&self, id: LogId) -> u64 {
        let limit = self.limit(id);
        let end = match self.geometry(id).lap_end() {
            None => limit,
            Some(_) => limit.min(self.position(id, self.log(id).head())),
        };
        end.saturating_sub(self.position(id, self.tail(id)))
    }

    /// Words of a log that lie outside its head and tail. An upload may have taken the tail beyond
    /// the limit.
    #[inline(always)]
    pub(super) fn unused(&self, id: LogId) -> u64 {
        let (head, tail) = (self.log(id).head(), self.tail(id));
        match self.geometry(id).lap_end() {
            None => (self.limit(id)).saturating_sub(self.geometry(id).distance(head, tail)),
            Some(_) => self.position(id, head) - self.position(id, tail),
        }
    }

    /// Passes items at the head, and ends the lap where it does not hold what is wanted. Says
    /// whether there is room now: if this is a step, there may not be yet.
    #[inline(never)]
    fn find_room<const STEP: bool>(
        &mut self,
        id: LogId,
        words: u64,
        budget: &mut Budget,
        now: Moment,
    ) -> bool {
        let mut lap_ended = false;
        loop {
            let (tail, limit) = (self.position(id, self.tail(id)), self.limit(id));
            if self.geometry(id).lap_end().is_none() {
                if tail + words <= limit || self.extend(id, words) {
                    return true;
                }
                self.end_lap(id);
                lap_ended = true;
                continue;
            }
            let lead = self.position(id, self.log(id).head()) - tail;
            let lead_wanted = match tail + words <= limit {
                true if lead >= words + self.gap(id) => return true,
                true => words + self.gap(id) + ahead(limit, words),
                // The lap is to end here, which it can when the one before is gone.
                false => u64::MAX,
            };
            if STEP && budget.is_step_over() {
                return false;
            }
            let until = Until {
                lead: lead_wanted,
                gathers: lap_ended || words >= DRAFT_WORDS_MIN as u64,
            };
            self.pass_items::<STEP>(id, until, budget, now);
        }
    }

    /// Has a log go on at its beginning. Head and tail are in one lap.
    pub(super) fn end_lap(&mut self, id: LogId) {
        let (tail, geometry) = (self.tail(id), self.geometry(id));
        let next = geometry.next_lap(tail);
        if id == LogId::Main {
            let appended = self.position(id, tail);
            self.state.pace.end_lap(appended);
            self.state.admission.probation.end_lap(appended);
        }
        self.state.forget_passed(self.shared);
        self.state.lookahead[id as usize].tail_moved(tail, next);
        self.state.tails[id as usize] = next;
        if self.log(id).head() == tail {
            self.set_head(id, next);
        } else {
            self.state.geometry[id as usize] = geometry.ended_at(self.position(id, tail));
        }
        if id == LogId::Main {
            self.begin_lap();
        }
    }

    /// Passes items until the head is as far before the tail as is wanted, or all of the lap before
    /// the tail's is gone. A step also ends when it has passed as much as it may.
    fn pass_items<const STEP: bool>(
        &mut self,
        id: LogId,
        until: Until,
        budget: &mut Budget,
        now: Moment,
    ) {
        let shared = self.shared;
        let log = shared.log(id);
        let mut head = log.head();
        loop {
            let (geometry, tail) = (self.geometry(id), self.tail(id));
            if geometry.is_same_lap(head, tail)
                || self.position(id, head) - self.position(id, tail) >= until.lead
                || STEP && budget.is_step_over()
            {
                break;
            }
            self.state.lookahead[id as usize].top_up(shared, (log, geometry), tail);
            work::examined(1);
            let after = match shared.at(id, geometry, head) {
                Passing::Filler(after) => after,
                Passing::Reserved(after) => {
                    self.pass_reserved(id, (head, after), until, now);
                    after
                }
                Passing::Item(item, after) => {
                    let keyhash =
                        self.state.lookahead[id as usize].take(shared, head, &item, after);
                    if let Some(mut named) = shared.indexed(keyhash, id, head) {
                        let (_, entry) = named;
                        if self.state.search.soonest.may_be_due(now) {
                            // The search is not to meet what has just been passed.
                            self.set_head(id, head);
                        }
                        let fate = self.fate(id, &item, entry, budget, now);
                        // Only now, as a head may have been published since.
                        self.note_passing(id, &item);
                        match fate {
                            Some((to, reads)) => {
                                let words = item.words() as u64;
                                if to != id && self.lacks_room(to, words) {
                                    self.find_room::<false>(to, words, budget, now);
                                    // That may have moved the entry within its chain.
                                    let again = shared.indexed(keyhash, id, head);
                                    named = again.expect("the head has not passed the item");
                                }
                                if STEP {
                                    budget.copy_in_step(words);
                                }
                                let place = (id, head, after);
                                self.keep(keyhash, place, named, (to, reads));
                            }
                            None => {
                                shared.common.removed(
                                    &item,
                                    entry.is_fetched(),
                                    Reason::Evicted,
                                    now,
                                );
                                if !STEP && shared.lacks_spares() {
                                    self.leave_spare(keyhash, id, after);
                                }
                            }
                        }
                    } else {
                        self.note_passing(id, &item);
                    }
                    after
                }
            };
            if STEP {
                budget.pass_in_step(geometry.distance(head, after));
            }
            head = after;
        }
        self.set_head(id, head);
    }

    /// An item is about to be passed, live or dead: its value may be lent.
    #[inline(always)]
    fn note_passing(&mut self, id: LogId, item: &Item<'_>) {
        self.state.passed_large[id as usize] |= item.words() >= LOAN_WORDS_MIN;
    }

    /// Where a live item at the head goes on, and with which count of reads; none if it goes.
    fn fate(
        &mut self,
        id: LogId,
        item: &Item<'_>,
        entry: Entry,
        budget: &mut Budget,
        now: Moment,
    ) -> Option<(LogId, u8)> {
        if self.shared.common.had_ended(item, now) {
            return None;
        }
        let words = item.words() as u64;
        let has_room = self.position(id, self.tail(id)) + words <= self.limit(id);
        let in_use = self.state.in_use == Some((id, entry.offset()));
        if in_use && has_room && budget.spare_item(words) {
            return Some((id, entry.reads()));
        }
        let at_head = self.shared.heap.rule.at_head;
        let arrival = Arrival {
            log: id,
            reads: entry.reads(),
            words,
            setting: self.state.admission.setting,
            draw: self.draw(),
            ages: self.state.admission.probation.is_short(),
            main_has_room: &mut || self.main_has_room(words, now),
        };
        let kept = match at_head(arrival) {
            AtHead::Keep { log, reads } if log != id || self.keeps_pace(id) => Some((log, reads)),
            _ if self.state.share.grows || self.is_among_dead(id, now) => {
                self.owe_scan_for(words);
                Some((id, entry.reads()))
            }
            _ => None,
        };
        let kept = kept.filter(|&(log, _)| (log != id || has_room) && budget.spare_item(words));
        match kept {
            None => self.state.evicted_from = Some(id),
            Some((LogId::Main, _)) if id == LogId::Main => self.state.pace.spare(words),
            Some(_) => {}
        }
        kept
    }

    /// Whether the head may spare an item that was used, although it has spared others of late.
    fn keeps_pace(&mut self, id: LogId) -> bool {
        let (appended, lap_words) = (self.position(id, self.tail(id)), self.lap_words(id));
        let is_paced = self.shared.heap.rule.is_paced && id == LogId::Main;
        !is_paced || self.state.pace.allows(appended, lap_words)
    }

    /// A number as good as random.
    #[inline(always)]
    fn draw(&mut self) -> u32 {
        self.state.draws = self.state.draws.wrapping_add(1);
        self.state.draws.wrapping_mul(0x9e37_79b9) >> 16
    }

    /// Whether so much dead memory lies ahead of a log's head that live items are moved on for it.
    ///
    /// What was deleted or stored elsewhere is known by the difference between what lies in the
    /// logs and what can be reached. With a part of 1/8, seven words at most are moved for each
    /// word that comes free. What has expired is known as far as the walk ahead has come, and the
    /// search finds the rest.
    #[inline(never)]
    fn is_among_dead(&mut self, id: LogId, now: Moment) -> bool {
        self.state.lookahead[id as usize].meets_expired(now) || self.has_much_dead(id, now)
    }

    /// Whether a good part of the memory is dead, wherever it lies. See
    /// [`is_among_dead`](Self::is_among_dead).
    fn has_much_dead(&mut self, id: LogId, now: Moment) -> bool {
        self.is_much_dead(id) || self.finds_expired(|state| &mut state.search, now)
    }

    /// See [`is_among_dead`](Self::is_among_dead). Where the dead lie in the small log, its head
    /// comes to them soon without any help. An index that is too
    /// small for the items that the log holds leaves many dead, and would soon lose what is kept.
    fn is_much_dead(&self, id: LogId) -> bool {
        id == LogId::Main && !self.index_loses_many() && {
            let memory = [LogId::Main, LogId::Small].map(|id| self.limit(id));
            self.dead_words() >= memory.iter().sum::<u64>() / DEAD_PART
        }
    }

    /// Words between the heads and the tails that no item takes which can be reached, and no draft.
    pub(super) fn dead_words(&self) -> u64 {
        let between = |id| {
            let (head, tail) = (self.log(id).head(), self.tail(id));
            self.geometry(id).distance(head, tail)
        };
        let live = self.shared.common.counters.bytes.get() / 8;
        let taken = live + self.state.reserved_words;
        (between(LogId::Main) + between(LogId::Small)).saturating_sub(taken)
    }

    /// An item of the key has just been evicted: its chain may need one spare bucket less. A step
    /// leaves that to the scan, because the lock is held for as long as a step takes.
    #[inline(never)]
    fn leave_spare(&mut self, keyhash: Keyhash, id: LogId, after: Offset) {
        let index = &self.shared.index;
        let home = index.chain_of(index.home(keyhash));
        if index.bucket(home).next().is_some() {
            // The item is dead once the head has passed it.
            self.set_head(id, after);
            self.shorten_chain(home);
        }
    }

    /// Puts the item between `head` and `after` of log `id` at the tail of log `to`, which has room
    /// for it.
    fn keep(
        &mut self,
        keyhash: Keyhash,
        (id, head, after): (LogId, Offset, Offset),
        (slot, entry): (Slot, Entry),
        (to, reads): (LogId, u8),
    ) {
        let shared = self.shared;
        let (from_log, to_log) = (shared.log(id), shared.log(to));
        let words = self.geometry(id).distance(head, after);
        self.state.passed_large[id as usize] |= words >= LOAN_WORDS_MIN as u64;
        // The space at the tail may be the item's own: in one log the tail lies before the head, so
        // that the words are copied in their order. The head is published first, and the chain
        // stays locked while the item is in neither place.
        let home = shared.index.home(keyhash);
        let is_shared = A::SHARED_READS && !weakened("keep_version");
        let tail = self.tail(to);
        let moved = Entry::new(entry.tag(), to, tail, reads);
        shared.index.note_moves(&[entry, moved]);
        (shared.index).change(shared.index.chain_of(home), is_shared, || {
            if !weakened("kept_item_head") {
                self.set_head(id, after);
            }
            let (at, to_at) = (from_log.geometry(), to_log.geometry().position(tail));
            from_log.copy(at.position(head), words as usize, (to_log, to_at));
            in_program_order();
            (shared.index).set(slot, moved.with_fetched(entry.is_fetched()));
        });
        shared.index.end_rewrite();
        self.state.tails[to as usize] = self.geometry(to).advance(tail, words);
        if self.state.in_use == Some((id, head)) {
            self.state.in_use = Some((to, tail));
        }
        shared.common.counters.reinsertions.add(1);
        work::moved(words as usize);
    }

    /// Whether the main log can take an item of `words` words without giving up one that has proved
    /// itself: dead items at its head are passed. What the head freed ahead of need, and the item
    /// by which it overshot, do not count as room. A single dead item further on does not, either:
    /// the next item that has proved itself needs its place.
    fn main_has_room(&mut self, words: u64, now: Moment) -> bool {
        let (shared, id) = (self.shared, LogId::Main);
        if self.geometry(id).lap_end().is_none() {
            let tail = self.position(id, self.tail(id));
            if tail + words <= self.limit(id) || self.extend(id, words) {
                return true;
            }
            self.end_lap(id);
        }
        let wanted = 2 * words + ahead(self.limit(id), words) + self.gap(id);
        let (geometry, tail) = (self.geometry(id), self.tail(id));
        let start = shared.log(id).head();
        let mut head = start;
        while !geometry.is_same_lap(head, tail)
            && self.position(id, head) - self.position(id, tail) < wanted
        {
            work::examined(1);
            head = match shared.at(id, geometry, head) {
                Passing::Filler(after) => after,
                Passing::Reserved(after) => {
                    if self.is_upload(id, head) {
                        break;
                    }
                    shared.common.drafts.wait_for(name_of(id, head));
                    after
                }
                Passing::Item(item, after) => {
                    self.note_passing(id, &item);
                    let keyhash = shared.common.keyhash(&item);
                    if let Some((_, entry)) = shared.indexed(keyhash, id, head) {
                        if !shared.common.had_ended(&item, now) {
                            break;
                        }
                        shared
                            .common
                            .removed(&item, entry.is_fetched(), Reason::Evicted, now);
                    }
                    after
                }
            };
        }
        if head != start {
            self.set_head(id, head);
            self.state.lookahead[id as usize] = Lookahead::at(head);
        }
        self.unused(id) >= wanted || self.state.share.grows || self.has_much_dead(id, now)
    }

    /// Puts an item at the tail of its log because it was read, if the slot still holds it.
    #[inline(never)]
    pub(super) fn reinsert(&mut self, slot: Slot, entry: Entry, keyhash: Keyhash, now: Moment) {
        let shared = self.shared;
        let (id, log) = (entry.log(), shared.log(entry.log()));
        let at = log.geometry().position(entry.offset());
        let Some(item) = Item::read(log.place(at)) else {
            return;
        };
        let words = item.words();
        let cell = shared.index.cell(slot);
        // The item itself may be next at the head when room is made; counted as read, it is kept
        // there, and there is nothing left to do here.
        shared
            .index
            .count_read(cell, entry, shared.heap.rule.reads_counted);
        let tail = self.claim(id, words as u64, now);
        let still_there = shared.index.get(slot).same_item(entry) && log.is_live(entry.offset());
        if still_there {
            // The head has not come to it, so the claimed place does not overlap the item.
            log.copy(at, words, (log, log.geometry().position(tail)));
            let moved = Entry::new(entry.tag(), id, tail, 0).with_fetched(true);
            let name = || shared.index.set(slot, moved);
            let home = shared.index.chain_of(shared.index.home(keyhash));
            (shared.index).change(home, A::SHARED_READS, name);
            self.state.tails[id as usize] = self.geometry(id).advance(tail, words as u64);
            shared.common.counters.reinsertions.add(1);
            work::moved(words);
            self.scan_after(id, words as u64);
        }
    }
}

/// How far items are passed.
#[derive(Clone, Copy)]
pub(super) struct Until {
    /// Words by which the head is to be before the tail.
    pub lead: u64,
    /// Whether what is passed has to come together, because a large item is to lie there, or
    /// because it has not in the lap before.
    pub gathers: bool,
}

/// What lies at a place of a log, and where the next thing begins.
enum Passing<'a> {
    Filler(Offset),
    Reserved(Offset),
    Item(Item<'a>, Offset),
}

impl Shared {
    /// What lies at a place between head and tail, which the head is about to pass; only for the
    /// writer.
    #[inline(always)]
    fn at(&self, id: LogId, geometry: Geometry, offset: Offset) -> Passing<'_> {
        let log = self.log(id);
        let at = geometry.position(offset);
        match Item::read(log.place(at)) {
            Some(item) => Passing::Item(item, geometry.advance(offset, item.words() as u64)),
            None => {
                let header = Header::read(log.place(at));
                assert!(
                    header.is_filler() && header.filler_words() > 0,
                    "a log holds items and fillers without a gap"
                );
                let after = geometry.advance(offset, header.filler_words());
                match header.is_reserved() {
                    true => Passing::Reserved(after),
                    false => Passing::Filler(after),
                }
            }
        }
    }

    /// The index entry that names exactly this place.
    #[inline(always)]
    fn indexed(&self, keyhash: Keyhash, id: LogId, offset: Offset) -> Option<(Slot, Entry)> {
        let mut candidates = self.index.candidates(self.index.home(keyhash), keyhash);
        candidates.find(|(_, entry)| entry.log() == id && entry.offset() == offset)
    }
}
