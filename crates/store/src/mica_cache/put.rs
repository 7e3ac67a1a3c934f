//! Storing an item: in place if it fits the space first given to the old one, else at the tail of a
//! log (MICA §4.3.1), and into the index.

use super::place::name_of;
use super::{Found, Shared, State, Writer};
use crate::access::Access;
use crate::heap::{Header, Offset, Put, unsettle, write_item, write_over};
use crate::index::chained::HomeBucket;
use crate::index::{Entry, LogId, Slot};
use crate::table::{DRAFT_WORDS_MIN, Heap, Index};
use crate::work;
use glimmer_base::Moment;
use glimmer_base::sync::AtomicU64;

#[cfg(all(test, not(loom)))]
mod tests;

/// An item this near to being evicted, as a part of its log, is stored again instead of being
/// updated in place.
const NEAR_HEAD_PART: u64 = 16;

impl State {
    /// Whether an item is so near to being evicted that it is not to be updated in place: few words
    /// may be appended before the tail comes to it.
    #[inline(always)]
    pub(super) fn is_near_head(&self, id: LogId, offset: Offset) -> bool {
        let id = id as usize;
        let (geometry, tail, limit) = (self.geometry[id], self.tails[id], self.lap_words[id]);
        let lap = match geometry.is_same_lap(offset, tail) {
            true => limit,
            false => 0,
        };
        let tail_at = geometry.position(tail) as u64;
        lap + (geometry.position(offset) as u64) < tail_at + limit / NEAR_HEAD_PART
    }
}

impl Shared {
    /// Changes the entry of an item that has been written over; readers may have counted since it
    /// was found.
    #[inline(always)]
    pub(super) fn note_written_over<A: Access>(&self, cell: &AtomicU64, found: Entry) {
        let entry = match A::SHARED_READS {
            true => Entry::in_cell(cell),
            false => found,
        };
        let over = entry.written_over(self.heap.rule.reads_counted);
        self.index.set_changed(cell, entry, over);
    }
}

impl<A: Access> Writer<'_, A> {
    /// An item is about to be stored.
    #[inline(always)]
    pub(super) fn note_store(&mut self, put: &Put<'_>) {
        self.shared.common.counters.stored.add(1);
        self.state.search.soonest.note(put.item.expiry);
    }

    /// Stores an item that is within the limit. Says whether it was stored: an item whose value was
    /// to stay may have left to make room.
    #[inline]
    pub(super) fn put_as(&mut self, put: &Put<'_>) -> bool {
        let shared = self.shared;
        self.note_store(put);
        let home = self.home(put.keyhash);
        // Beside readers a large item is never written over another one, as readers of the whole
        // bucket would wait.
        let is_large = A::SHARED_READS && put.words >= DRAFT_WORDS_MIN;
        if is_large && self.put_draft(put) {
            return true;
        }
        match shared.carried_item(home, put.keyhash, put.item.key) {
            Some(found) => self.put_over(put, &found),
            None => self.put_searching(home, put),
        }
    }

    /// [`put_as`](Self::put_as) where the home does not carry the key's entry: there may be none.
    #[inline(never)]
    fn put_searching(&mut self, home: HomeBucket, put: &Put<'_>) -> bool {
        self.follow_setting();
        match self.find_or_remember(home, put.keyhash, (put.item.key, put.words as u64)) {
            Ok(found) => self.put_over(put, &found),
            Err(ghost) => self.put_new(put, ghost),
        }
    }

    /// Stores an item over the old one of its key, if that may be, or else elsewhere.
    #[inline(always)]
    fn put_over(&mut self, put: &Put<'_>, found: &Found<'_>) -> bool {
        let is_large = A::SHARED_READS && put.words >= DRAFT_WORDS_MIN;
        if !is_large && let Some(extent) = self.extent_for_update(found, put.words as u64) {
            self.update_in_place(found, extent, put);
            return true;
        }
        self.put_again(put, found)
    }

    /// Stores the item of a key that has none. `ghost` is the entry by which it is remembered, if
    /// it is: the new entry takes its place, so that it is remembered once.
    #[inline(always)]
    fn put_new(&mut self, put: &Put<'_>, ghost: Option<(Slot, Entry)>) -> bool {
        let (id, is_on_probation) = self.log_for_new(put.words as u64, ghost.is_some());
        if is_on_probation {
            self.state.admission.probation.enter(put.words as u64);
        }
        if put.words >= DRAFT_WORDS_MIN && self.put_at_vacant(put, id, None, ghost) {
            return true;
        }
        self.put_at_tail(put, id, None, ghost)
    }

    /// Stores an item at another place than the old one of its key.
    #[inline(never)]
    fn put_again(&mut self, put: &Put<'_>, found: &Found<'_>) -> bool {
        self.follow_setting();
        let id = self.log_for_known(found, put.words as u64, put.keeps_value());
        let old = Some((found.slot, found.entry, found.item.words() as u64));
        if put.words >= DRAFT_WORDS_MIN && self.put_at_vacant(put, id, old, None) {
            return true;
        }
        self.put_at_tail(put, id, old, None)
    }

    /// Stores an item at the tail of a log, and makes the index name it. `old` is the entry it
    /// replaces and that item's words, or `ghost` an entry by which it is remembered.
    #[inline(always)]
    fn put_at_tail(
        &mut self,
        put: &Put<'_>,
        id: LogId,
        old: Option<(Slot, Entry, u64)>,
        ghost: Option<(Slot, Entry)>,
    ) -> bool {
        let shared = self.shared;
        let mut extent = put.words as u64;
        // Of a new key there is no value to keep.
        let keeps_value = old.is_some() && put.keeps_value();
        if keeps_value {
            extent += self.space_to_grow(id, put);
            self.state.in_use = old.map(|(_, entry, _)| (entry.log(), entry.offset()));
        }
        let (log, tail) = (shared.log(id), self.claim(id, extent, put.now));
        let place = log.place(log.geometry().position(tail));
        if keeps_value {
            self.state.in_use = None;
            // Making room may have moved it.
            let home = shared.index.home(put.keyhash);
            let Some(kept) = shared.find(home, put.keyhash, put.item.key) else {
                return false;
            };
            write_over(place, put, &kept.item);
            self.leave_filler((id, tail), put.words as u64, extent);
        } else {
            write_item(place, put);
        }
        self.appended(id, tail, extent, put.now);
        let entry = self.new_entry(put, (id, tail), old.is_none());
        self.index_item(put, entry, old, ghost);
        self.scan_after(id, extent);
        self.learn_size(put.words);
        true
    }

    /// Stores a large item where others have left a place, and makes the index name it. Says
    /// whether there was one. No other item moves or leaves for it.
    #[cold]
    #[inline(never)]
    fn put_at_vacant(
        &mut self,
        put: &Put<'_>,
        id: LogId,
        old: Option<(Slot, Entry, u64)>,
        ghost: Option<(Slot, Entry)>,
    ) -> bool {
        let (shared, words) = (self.shared, put.words as u64);
        let space = self.space_to_grow(id, put);
        let Some(at) = (self.occupy(id, words + space)).or_else(|| self.occupy(id, words)) else {
            return false;
        };
        let (id, log) = (at.id, shared.log(at.id));
        let place = log.place(log.geometry().position(at.offset));
        match shared.find(self.home(put.keyhash), put.keyhash, put.item.key) {
            Some(kept) => write_over(place, put, &kept.item),
            None => write_item(place, put),
        }
        self.leave_filler((id, at.offset), words, at.words);
        let entry = self.new_entry(put, (id, at.offset), old.is_none());
        self.index_item(put, entry, old, ghost);
        self.learn_size(put.words);
        true
    }

    /// Something has been put at the tail of a log.
    #[inline(always)]
    pub(super) fn appended(&mut self, id: LogId, tail: Offset, words: u64, now: Moment) {
        if self.state.calendars[id as usize].note(tail, now) {
            self.show_ages(now);
        }
        self.state.tails[id as usize] = self.geometry(id).advance(tail, words);
    }

    /// The words that an update in place uses, if it is to be one: the item's own and, unless the
    /// new item takes as many, those of the filler that earlier updates left after the item. The
    /// update leaves one filler again, so that no more than one ever lies after an item.
    #[inline(always)]
    fn extent_for_update(&self, found: &Found<'_>, words: u64) -> Option<u64> {
        let (id, offset) = (found.entry.log(), found.entry.offset());
        if !self.stays_when_stored_again(id, offset) {
            return None;
        }
        let own = found.item.words() as u64;
        if own == words {
            return Some(own);
        }
        // The value of a large one may be lent, and would be copied while readers wait.
        if A::SHARED_READS && own >= DRAFT_WORDS_MIN as u64 {
            return None;
        }
        self.extent(found, words)
    }

    /// The words that an item of `words` words has where an item lies: that one's own and those of
    /// the filler after it. None if they are too few.
    pub(super) fn extent(&self, found: &Found<'_>, words: u64) -> Option<u64> {
        let (id, offset) = (found.entry.log(), found.entry.offset());
        let own = found.item.words() as u64;
        let extent = own + self.filler_behind(id, offset, own);
        (extent >= words).then_some(extent)
    }

    /// Whether an item that is stored again may stay at its place, instead of going to the tail.
    #[inline(always)]
    pub(super) fn stays_when_stored_again(&self, id: LogId, offset: Offset) -> bool {
        let distance = || self.distance_to_tail(id, offset);
        !self.state.is_near_head(id, offset)
            && !(self.shared.heap.rule).reinserts(distance, self.lap_words(id))
    }

    /// Words from an item to the tail. Apart, because few rules ask for them.
    #[cold]
    #[inline(never)]
    fn distance_to_tail(&self, id: LogId, offset: Offset) -> u64 {
        self.geometry(id).distance(offset, self.tail(id))
    }

    /// Words of the filler after an item, in the lap of the item. Zero without a filler, or if the
    /// filler is reserved.
    pub(super) fn filler_behind(&self, id: LogId, offset: Offset, own: u64) -> u64 {
        let (log, geometry, tail) = (self.log(id), self.geometry(id), self.tail(id));
        let at = geometry.advance(offset, own);
        if at == tail || !geometry.is_same_lap(at, offset) {
            return 0;
        }
        work::examined(1);
        let header = Header::read(log.place(geometry.position(at)));
        match header.is_filler() && !header.is_reserved() {
            true => header.filler_words(),
            false => 0,
        }
    }

    #[inline(always)]
    fn update_in_place(&mut self, found: &Found<'_>, extent: u64, put: &Put<'_>) {
        let index = &self.shared.index;
        let (old_words, words) = (found.item.words() as u64, put.words as u64);
        let at = (found.entry.log(), found.entry.offset());
        index.change(found.lock, A::SHARED_READS, || {
            let loans = &self.shared.common.loans;
            loans.give_up_item(name_of(at.0, at.1), found.item.words());
            unsettle(found.item.place(), found.item.words());
            write_over(found.item.place(), put, &found.item);
            self.leave_filler(at, words, extent);
            self.shared.note_written_over::<A>(found.cell, found.entry);
        });
        self.end_moved(at, old_words, words);
        self.shared.common.counters.in_place_updates.add(1);
        self.count_bytes(old_words, words);
    }

    /// Counts an item of `to` words instead of one of `from` words.
    #[inline(always)]
    pub(super) fn count_bytes(&self, from: u64, to: u64) {
        let bytes = &self.shared.common.counters.bytes;
        if from != to {
            bytes.add(8 * to);
            bytes.sub(8 * from);
        }
    }

    /// Makes the index name an item that has just been written. `old` is the entry it replaces and
    /// that item's words, as found before room was made.
    #[inline(always)]
    pub(super) fn index_item(
        &mut self,
        put: &Put<'_>,
        new: Entry,
        old: Option<(Slot, Entry, u64)>,
        ghost: Option<(Slot, Entry)>,
    ) {
        let (shared, index) = (self.shared, &self.shared.index);
        let home = index.home(put.keyhash);
        // Making room may have evicted the old item or moved it to another place; the new one is
        // not in the index yet, so a search finds only the old.
        let old = old.and_then(|(slot, entry, old_words)| {
            if index.get(slot).same_item(entry) {
                let live = shared.heap.is_live(entry);
                return Some((slot, live.then_some((entry, old_words))));
            }
            let found = shared.find(home, put.keyhash, put.item.key)?;
            Some((found.slot, Some((found.entry, old_words))))
        });
        let counters = &shared.common.counters;
        let main = index.chain_of(home);
        index.change(main, A::SHARED_READS, || {
            let slot = match old {
                Some((slot, _)) => slot,
                None => match ghost.and_then(|ghost| self.slot_of_ghost(main, ghost)) {
                    Some(slot) => slot,
                    None => self.free_slot(main, put.now),
                },
            };
            index.set(slot, new);
        });
        match old {
            Some((_, Some((_, old_words)))) => counters.bytes.sub(8 * old_words),
            _ => counters.items.add(1),
        }
        if let Some((_, Some((entry, old_words)))) = old
            && old_words >= DRAFT_WORDS_MIN as u64
        {
            self.vacate(entry.log(), entry.offset(), old_words);
        }
        counters.bytes.add(8 * put.words as u64);
        if self.state.growth.is_wanted {
            self.grow();
        }
    }
}
