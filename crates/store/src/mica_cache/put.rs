//! Storing an item: in place if it fits the space first given to the old one, else at the tail of a
//! log (MICA §4.3.1), and into the index.

use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{Header, Measured, Offset, write_filler, write_item, write_over};
use crate::index::{Entry, LogId, Slot};
use crate::table::Shared as _;
use crate::work;
use glimmer_base::{Keyhash, Moment};

#[cfg(all(test, not(loom)))]
mod tests;

/// An item this near to being evicted, as a part of its log, is stored again instead of being
/// updated in place.
const NEAR_HEAD_PART: u64 = 16;

impl<A: Access> Writer<'_, A> {
    /// Stores an item that is within the limit with a given CAS unique, which is its history's if
    /// that has one. Says whether it was stored: an item whose value was to stay may have left to
    /// make room.
    #[inline]
    pub(super) fn put_as(
        &mut self,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        now: Moment,
    ) -> bool {
        let shared = self.shared;
        let words = new.words as u64;
        shared.common.counters.stored.add(1);
        let home = self.shared.place(keyhash);
        let old = shared.find(home, keyhash, new.item.key);
        if let Some(found) = &old
            && let Some(extent) = self.extent_for_update(found, words)
        {
            self.update_in_place(home, found, extent, new, cas);
            return true;
        }
        let id = self.choose_log(home, keyhash, &old, words);
        let old = old.map(|found| (found.slot, found.entry, found.item.words() as u64));
        self.append(keyhash, new, cas, id, old, now)
    }

    /// Stores an item at the tail of a log, and makes the index name it.
    fn append(
        &mut self,
        keyhash: Keyhash,
        new: Measured<'_>,
        cas: u64,
        id: LogId,
        old: Option<(Slot, Entry, u64)>,
        now: Moment,
    ) -> bool {
        let (shared, words) = (self.shared, new.words as u64);
        if new.keeps_value() {
            self.state.in_use = old.map(|(_, entry, _)| (entry.log(), entry.offset()));
        }
        let (log, tail) = (shared.log(id), self.claim(id, words, now));
        let place = log.place(log.geometry().position(tail));
        if new.keeps_value() {
            self.state.in_use = None;
            // Making room may have moved it.
            let Some(kept) = shared.find(self.shared.place(keyhash), keyhash, new.item.key) else {
                return false;
            };
            write_over(place, new, cas, &kept.item);
        } else {
            write_item(place, new, cas);
        }
        if self.state.calendars[id as usize].note(tail, now) {
            self.show_ages(now);
        }
        self.state.tails[id as usize] = self.geometry(id).advance(tail, words);
        self.index_item(
            keyhash,
            new.item.key,
            Entry::new(keyhash.tag(), id, tail, 0),
            old,
            words,
            now,
        );
        self.scan_after(id, words);
        self.learn_size(words as usize);
        true
    }

    /// The words that an update in place uses, if it is to be one: the item's own and, unless the
    /// new item takes as many, those of the filler that earlier updates left after the item. The
    /// update leaves one filler again, so that no more than one ever lies after an item.
    #[inline(always)]
    fn extent_for_update(&self, found: &Found<'_>, words: u64) -> Option<u64> {
        let (id, offset) = (found.entry.log(), found.entry.offset());
        let limit = self.limit(id);
        let distance = self.geometry(id).distance(offset, self.tail(id));
        if self.words_left(id, offset) < limit / NEAR_HEAD_PART
            || self.shared.rule.reinserts(|| distance, limit)
        {
            return None;
        }
        let own = found.item.words() as u64;
        if own == words {
            return Some(own);
        }
        let extent = own + self.filler_behind(id, offset, own);
        (extent >= words).then_some(extent)
    }

    /// How many words may be appended before the tail comes to a live item.
    #[inline(always)]
    fn words_left(&self, id: LogId, offset: Offset) -> u64 {
        let (geometry, tail) = (self.geometry(id), self.tail(id));
        let lap = match geometry.is_same_lap(offset, tail) {
            true => self.limit(id),
            false => 0,
        };
        (lap + self.position(id, offset)).saturating_sub(self.position(id, tail))
    }

    /// Words of the filler after an item, in the lap of the item. Zero without a filler.
    pub(super) fn filler_behind(&self, id: LogId, offset: Offset, own: u64) -> u64 {
        let (log, geometry, tail) = (self.log(id), self.geometry(id), self.tail(id));
        let at = geometry.advance(offset, own);
        if at == tail || !geometry.is_same_lap(at, offset) {
            return 0;
        }
        work::examined(1);
        let header = Header::read(log.place(geometry.position(at)));
        match header.is_filler() {
            true => header.filler_words(),
            false => 0,
        }
    }

    #[inline(always)]
    fn update_in_place(
        &mut self,
        home: usize,
        found: &Found<'_>,
        extent: u64,
        new: Measured<'_>,
        cas: u64,
    ) {
        let index = &self.shared.index;
        let (old_words, words) = (found.item.words() as u64, new.words as u64);
        let chain = A::SHARED_READS.then(|| index.bucket(home));
        if let Some(main) = chain {
            main.write_begin(true);
        }
        write_over(found.item.place(), new, cas, &found.item);
        if extent > words {
            // At a place of its own: the item's ends where the largest item would.
            let log = self.shared.log(found.entry.log());
            let behind = log.geometry().position(found.entry.offset()) + words as usize;
            write_filler(log.place(behind), extent - words);
        }
        // Readers may have counted since.
        let entry = match A::SHARED_READS {
            true => index.get(found.slot),
            false => found.entry,
        };
        index.change(
            found.slot,
            entry,
            entry.written_over(self.shared.rule.reads_counted),
        );
        if let Some(main) = chain {
            main.write_end(true);
        }
        let counters = &self.shared.common.counters;
        counters.in_place_updates.add(1);
        if words != old_words {
            counters.bytes.add(8 * words);
            counters.bytes.sub(8 * old_words);
        }
    }

    /// The log for an item that is appended.
    #[inline(always)]
    fn choose_log(
        &self,
        home: usize,
        keyhash: Keyhash,
        old: &Option<Found<'_>>,
        words: u64,
    ) -> LogId {
        let small = self.log(LogId::Small);
        if words > small.item_words_max() as u64 {
            return LogId::Main;
        }
        match old {
            // A write is a use: an item that was used before it is stored again has proved itself.
            Some(found) => {
                if found.entry.reads() > 0 {
                    LogId::Main
                } else {
                    found.entry.log()
                }
            }
            None => {
                let (geometry, head) = (small.geometry(), small.head());
                let is_ghost = |entry: Entry| {
                    entry.log() == LogId::Small
                        && !geometry.is_live(entry.offset(), head)
                        && geometry.laps_behind(entry.offset(), head) < self.shared.rule.ghost_laps
                };
                let index = &self.shared.index;
                let mut candidates = index.candidates(home, keyhash.tag());
                let remembered = candidates.any(|(_, entry)| is_ghost(entry));
                (self.shared.rule.admit)(remembered)
            }
        }
    }

    /// Makes the index name an item that has just been written. `old` is the entry it replaces and
    /// that item's words, as found before room was made.
    #[inline(always)]
    fn index_item(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        new: Entry,
        old: Option<(Slot, Entry, u64)>,
        words: u64,
        now: Moment,
    ) {
        let shared = self.shared;
        // Making room may have evicted the old item or moved it to another place; the new one is
        // not in the index yet, so a search finds only the old.
        let old = old.and_then(|(slot, entry, old_words)| {
            if shared.index.get(slot).same_item(entry) {
                let live = shared.is_live(entry);
                return Some((slot, live.then_some(old_words)));
            }
            shared
                .find(self.shared.place(keyhash), keyhash, key)
                .map(|found| (found.slot, Some(old_words)))
        });
        let counters = &shared.common.counters;
        let home = self.shared.place(keyhash);
        shared.index.bucket(home).write_begin(A::SHARED_READS);
        let slot = match old {
            Some((slot, Some(old_words))) => {
                counters.bytes.sub(8 * old_words);
                slot
            }
            Some((slot, None)) => {
                counters.items.add(1);
                slot
            }
            None => {
                counters.items.add(1);
                self.free_slot(home, now)
            }
        };
        counters.bytes.add(8 * words);
        shared.index.bucket(slot.bucket).set_entry(slot.entry, new);
        shared.index.bucket(home).write_end(A::SHARED_READS);
        if self.state.growth.is_wanted {
            self.grow();
        }
    }
}
