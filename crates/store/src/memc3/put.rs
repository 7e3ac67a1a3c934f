//! Storing an item: over the old one if it is of the same size class, else in a chunk of its own,
//! and into the index.

use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{Measured, NewItem, write_item, write_over};
use crate::index::cuckoo::{Slot, SlotAt};
use crate::table::Stored;
use glimmer_base::{Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Stores an item under its key, in place of the one that is there.
    #[inline]
    pub fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored {
        let new = item.measured();
        if new.words_with_all > self.shared.item_words_max {
            return Stored::TooLarge;
        }
        let cas = match item.history.cas {
            Some(cas) => cas,
            None => self.next_cas(),
        };
        self.put_as(keyhash, new, cas, now);
        Stored::Yes(cas)
    }

    /// Stores an item whose value is the one that its key has now, with the parts of the item's on either side of it. None if there is
    /// no such item, or if it had to leave to make room.
    pub fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored> {
        let found = self.find(keyhash, item.key, now)?;
        let new = item.measured_around(found.item.value().len());
        if new.words_with_all > self.shared.item_words_max {
            return Some(Stored::TooLarge);
        }
        // Writing over an item is a use; CLOCK is to know of it before room is made.
        let line = self.shared.line(found.at);
        line.set_recent(found.at.bucket, found.at.place, true);
        let cas = item.history.cas.unwrap_or_else(|| self.next_cas());
        self.put_as(keyhash, new, cas, now)
            .then_some(Stored::Yes(cas))
    }

    /// Stores an item that is within the limit with a given CAS unique, which is its history's if
    /// that has one. Says whether it was stored: an item whose value was to stay may have left to make
    /// room.
    #[inline]
    fn put_as(&mut self, keyhash: Keyhash, new: Measured<'_>, cas: u64, now: Moment) -> bool {
        let (shared, words) = (self.shared, new.words);
        shared.counters.stored.add(1);
        self.learn_size(words as u64);
        let class = self.state.slabs.class_of(words);
        match shared.find(&shared.directory.home(keyhash), new.item.key) {
            Some(found) if self.class_of(&found) == class => self.overwrite(&found, new, cas),
            Some(_) => {
                let at = self.allocate(class, now);
                return self.replace(keyhash, new, cas, at);
            }
            None => {
                // The slot first: what makes room in the index may give up slabs, and would not
                // know a chunk that no slot names yet.
                self.make_slot(keyhash, now);
                let at = self.allocate(class, now);
                write_item(shared.pool.place(at, words), new, cas);
                self.link(keyhash, at, words);
            }
        }
        true
    }

    #[inline(always)]
    fn class_of(&self, found: &Found<'_>) -> u8 {
        let at = found.slot.offset();
        self.state.slabs.class_at(&self.shared.pool, at)
    }

    /// Writes an item over the one that is there; a use of it.
    #[inline(always)]
    fn overwrite(&mut self, found: &Found<'_>, new: Measured<'_>, cas: u64) {
        let shared = self.shared;
        let (old_words, words) = (found.item.words(), new.words);
        let line = shared.line(found.at);
        line.write_begin(A::SHARED_READS);
        let place = shared.pool.place(found.slot.offset(), words);
        write_over(place, new, cas, &found.item);
        line.set_written_over(found.at.bucket, found.at.place);
        line.write_end(A::SHARED_READS);
        shared.counters.in_place_updates.add(1);
        shared.counters.bytes.add(8 * words as u64);
        shared.counters.bytes.sub(8 * old_words as u64);
    }

    /// Writes an item to a chunk of another class than its old one's, which it replaces unless
    /// making room has just evicted it. Says whether that was done: an item whose value was to stay is gone then.
    fn replace(&mut self, keyhash: Keyhash, new: Measured<'_>, cas: u64, at: usize) -> bool {
        let shared = self.shared;
        let home = shared.directory.home(keyhash);
        let words = new.words;
        let old = shared.find(&home, new.item.key);
        let place = shared.pool.place(at, words);
        let Some(old) = old else {
            if new.keeps_value() {
                self.state.slabs.free(&shared.pool, at);
                return false;
            }
            write_item(place, new, cas);
            // Its slot is empty now.
            self.link(keyhash, at, words);
            return true;
        };
        write_over(place, new, cas, &old.item);
        shared.counters.gone(&old.item);
        self.set_slot(old.at, home.tag, Slot::new(at).with_recent(true), words);
        self.state.slabs.free(&shared.pool, old.slot.offset());
        true
    }

    /// Makes the index name an item that has just been written; one of its buckets has an empty
    /// slot.
    #[inline(always)]
    fn link(&mut self, keyhash: Keyhash, at: usize, words: usize) {
        let shared = self.shared;
        let home = shared.directory.home(keyhash);
        let segment = shared.directory.segment(&shared.pool, &home);
        let empty = segment
            .empty(home.buckets)
            .expect("a slot was made before and nothing has taken it since");
        self.set_slot(empty, home.tag, Slot::new(at), words);
    }

    #[inline(always)]
    fn set_slot(&mut self, slot_at: SlotAt, tag: u8, slot: Slot, words: usize) {
        let shared = self.shared;
        let line = shared.line(slot_at);
        line.write_begin(A::SHARED_READS);
        line.set(slot_at.bucket, slot_at.place, tag, slot);
        line.write_end(A::SHARED_READS);
        shared.counters.items.add(1);
        shared.counters.bytes.add(8 * words as u64);
    }

    /// Follows the usual size of items, by which the pipeline knows how much of one to fetch.
    #[inline(always)]
    fn learn_size(&mut self, words: u64) {
        let usual = &mut self.state.usual_words_64;
        *usual = *usual - *usual / 64 + words;
        let usual = *usual / 64;
        if usual != self.shared.usual_words.get() {
            self.shared.usual_words.set(usual);
        }
    }
}
