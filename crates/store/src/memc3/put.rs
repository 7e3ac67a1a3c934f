//! Storing an item: over the old one if it is of the same size class, else in a chunk of its own,
//! and into the index.

use super::{Found, Writer};
use crate::access::Access;
use crate::heap::{Put, only_grows, unsettle, write_behind, write_grown, write_item, write_over};
use crate::index::cuckoo::{Slot, SlotAt};
use crate::memory::Words;
use crate::table::Index;
use glimmer_base::sync::weakened;

impl<A: Access> Writer<'_, A> {
    /// Stores an item that is within the limit. Says whether it was stored: an item whose value was
    /// to stay may have left to make room.
    #[inline]
    pub(super) fn put_as(&mut self, put: &Put<'_>) -> bool {
        let shared = self.shared;
        shared.common.counters.stored.add(1);
        self.state.expired.soonest.note(put.item.expiry);
        self.learn_size(put.words);
        let class = self.state.slabs.class_of(put.words);
        let home = self.home(put.keyhash);
        match shared.find(home, put.keyhash, put.item.key) {
            Some(found) if self.class_of(&found) == class => self.overwrite(&found, put),
            Some(found) => {
                if put.keeps_value() {
                    // Writing over an item is a use; CLOCK is to know of it before room is made.
                    let line = shared.index.line(found.slot);
                    line.set_recent(found.slot.bucket, found.slot.place, true);
                }
                let at = self.allocate(class, put.now);
                return self.replace(put, at);
            }
            None => {
                // The slot first: what makes room in the index may give up slabs, and would not
                // know a chunk that no slot names yet.
                self.make_slot(put.keyhash, put.now);
                let at = self.allocate(class, put.now);
                write_item(shared.pool().place(at, put.words), put);
                self.link(put, at);
            }
        }
        true
    }

    /// Stores an item around the value that its key has. Says whether it was stored, as
    /// [`put_as`](Self::put_as) does. If the value is only appended to and the chunk is large
    /// enough, nothing else is copied. What lies after the item in its chunk is seen by no reader.
    #[inline(never)]
    pub(super) fn extend_as(&mut self, put: &Put<'_>) -> bool {
        let shared = self.shared;
        let old = shared.find(self.home(put.keyhash), put.keyhash, put.item.key);
        let class = self.state.slabs.class_of(put.words);
        let Some(found) =
            old.filter(|old| only_grows(put, &old.item) && self.class_of(old) == class)
        else {
            return self.put_as(put);
        };
        shared.common.counters.stored.add(1);
        self.state.expired.soonest.note(put.item.expiry);
        self.learn_size(put.words);
        write_behind(found.item.place(), put, &found.item);
        self.write_over_by(&found, put, |place| {
            let grow = || write_grown(place, put, &found.item);
            let (name, loans) = (found.entry.offset() as u64, &shared.common.loans);
            loans.while_growing(name, (put, &found.item), grow);
        });
        true
    }

    #[inline(always)]
    fn class_of(&self, found: &Found<'_>) -> u8 {
        let at = found.entry.offset();
        self.state.slabs.class_at(self.shared.pool(), at)
    }

    /// Writes an item over the one that is there; a use of it.
    #[inline(always)]
    fn overwrite(&mut self, found: &Found<'_>, put: &Put<'_>) {
        let (shared, at) = (self.shared, found.entry.offset());
        self.write_over_by(found, put, |place| {
            shared.give_up_chunk(at, found.item.words());
            unsettle(place, found.item.words());
            write_over(place, put, &found.item);
        });
    }

    /// Has `write` change the item that is there into another one.
    #[inline(always)]
    fn write_over_by(&mut self, found: &Found<'_>, put: &Put<'_>, write: impl FnOnce(Words<'_>)) {
        let shared = self.shared;
        let old_words = found.item.words();
        let is_shared = A::SHARED_READS && !(put.keeps_value() && weakened("append_version"));
        shared.index.change(found.lock, is_shared, || {
            write(found.item.place());
            found.cell.set_written_over(&shared.index.nowhere);
        });
        let counters = &shared.common.counters;
        counters.in_place_updates.add(1);
        if put.words != old_words {
            counters.bytes.add(8 * put.words as u64);
            counters.bytes.sub(8 * old_words as u64);
        }
    }

    /// Writes an item to a chunk of another class than its old one's, which it replaces unless
    /// making room has just evicted it. Says whether that was done: an item whose value was to stay
    /// is gone then.
    fn replace(&mut self, put: &Put<'_>, at: usize) -> bool {
        let shared = self.shared;
        let home = shared.index.home(put.keyhash);
        let old = shared.find(home, put.keyhash, put.item.key);
        let place = shared.pool().place(at, put.words);
        let Some(old) = old else {
            if put.keeps_value() {
                self.state.slabs.free(shared.pool(), at);
                return false;
            }
            write_item(place, put);
            // Its slot is empty now.
            self.link(put, at);
            if self.state.walk.is_some() {
                self.note_moved(put);
            }
            return true;
        };
        write_over(place, put, &old.item);
        shared.common.counters.gone(&old.item);
        let slot = Slot::new(at).with_recent(true);
        self.set_slot(old.slot, home.tag(), slot, put.words);
        self.free_chunk_of(&old);
        true
    }

    /// Makes the index name an item that has just been written; one of its buckets has an empty
    /// slot.
    #[inline(always)]
    pub(super) fn link(&mut self, put: &Put<'_>, at: usize) {
        let home = self.shared.index.home(put.keyhash);
        let empty = self.shared.index.segment(&home).empty(home.buckets);
        let empty = empty.expect("a slot was made before and nothing has taken it since");
        self.set_slot(empty, home.tag(), Slot::new(at), put.words);
    }

    #[inline(always)]
    pub(super) fn set_slot(&mut self, at: SlotAt, tag: u8, slot: Slot, words: usize) {
        let Self { shared, .. } = self;
        let set = || shared.index.line(at).set(at.bucket, at.place, tag, slot);
        shared.index.change(at.line, A::SHARED_READS, set);
        shared.common.counters.items.add(1);
        shared.common.counters.bytes.add(8 * words as u64);
    }
}
