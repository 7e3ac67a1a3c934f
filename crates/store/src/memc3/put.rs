//! Storing an item: over the old one if it is of the same size class, else in a chunk of its own,
//! and into the index.

use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{Measured, write_item, write_over};
use crate::index::cuckoo::{Slot, SlotAt};
use crate::table::Shared as _;
use glimmer_base::{Keyhash, Moment};

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
        let (shared, words) = (self.shared, new.words);
        shared.common.counters.stored.add(1);
        self.learn_size(words);
        let class = self.state.slabs.class_of(words);
        match shared.find(shared.directory.home(keyhash), keyhash, new.item.key) {
            Some(found) if self.class_of(&found) == class => self.overwrite(&found, new, cas),
            Some(found) => {
                if new.keeps_value() {
                    // Writing over an item is a use; CLOCK is to know of it before room is made.
                    let line = shared.line(found.slot);
                    line.set_recent(found.slot.bucket, found.slot.place, true);
                }
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
        let at = found.entry.offset();
        self.state.slabs.class_at(&self.shared.pool, at)
    }

    /// Writes an item over the one that is there; a use of it.
    #[inline(always)]
    fn overwrite(&mut self, found: &Found<'_>, new: Measured<'_>, cas: u64) {
        let shared = self.shared;
        let (old_words, words) = (found.item.words(), new.words);
        let line = shared.line(found.slot);
        line.write_begin(A::SHARED_READS);
        let place = shared.pool.place(found.entry.offset(), words);
        write_over(place, new, cas, &found.item);
        line.set_written_over(found.slot.bucket, found.slot.place);
        line.write_end(A::SHARED_READS);
        shared.common.counters.in_place_updates.add(1);
        shared.common.counters.bytes.add(8 * words as u64);
        shared.common.counters.bytes.sub(8 * old_words as u64);
    }

    /// Writes an item to a chunk of another class than its old one's, which it replaces unless
    /// making room has just evicted it. Says whether that was done: an item whose value was to stay
    /// is gone then.
    fn replace(&mut self, keyhash: Keyhash, new: Measured<'_>, cas: u64, at: usize) -> bool {
        let shared = self.shared;
        let home = shared.directory.home(keyhash);
        let words = new.words;
        let old = shared.find(home, keyhash, new.item.key);
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
        shared.common.counters.gone(&old.item);
        self.set_slot(old.slot, home.tag, Slot::new(at).with_recent(true), words);
        self.state.slabs.free(&shared.pool, old.entry.offset());
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
        shared.common.counters.items.add(1);
        shared.common.counters.bytes.add(8 * words as u64);
    }
}
