//! Finding an item: both buckets, tag, key.

use super::{Shared, Writer, expired};
use crate::access::Access;
use crate::heap::Item;
use crate::index::cuckoo::{Home, Line, Segment, Slot, SlotAt, line_at};
use crate::table::Absence;
use glimmer_base::{Keyhash, Moment};

/// Where an item was found.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub(super) at: SlotAt,
    pub(super) slot: Slot,
    /// The item itself.
    pub item: Item<'a>,
}

impl Shared {
    #[inline(always)]
    pub(super) fn segment(&self, page: usize) -> Segment<'_> {
        self.directory.segment_on(&self.pool, page as u32)
    }

    #[inline(always)]
    pub(super) fn line(&self, at: SlotAt) -> Line<'_> {
        line_at(&self.pool, at.line)
    }

    /// The item that a slot names, if what lies there can be one.
    #[inline(always)]
    pub(super) fn item(&self, slot: Slot) -> Option<Item<'_>> {
        self.item_at(slot.offset())
    }

    #[inline(always)]
    pub(super) fn item_at(&self, at: usize) -> Option<Item<'_>> {
        Item::read(self.pool.place(at, self.item_words_max))
    }

    /// Finds the key's item in its home, expired or not. Safe to run while a writer works; what it
    /// finds is then to be validated.
    #[inline(always)]
    pub(super) fn find(&self, home: &Home, key: &[u8]) -> Option<Found<'_>> {
        let segment = self.directory.segment(&self.pool, home);
        for (at, slot) in segment.candidates(home.buckets, home.tag) {
            let place = self.pool.place(slot.offset(), self.item_words_max);
            if let Some(item) = Item::of_key(place, key) {
                return Some(Found { at, slot, item });
            }
        }
        None
    }

    /// Why a read has just found nothing. What a flush has passed by is forgotten at once.
    pub(super) fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        match self.find(&self.directory.home(keyhash), key) {
            Some(_) => Absence::Expired,
            None => Absence::Other,
        }
    }

    /// The slot that names the item at a word; for the writer.
    #[inline(always)]
    pub(super) fn slot_of(&self, keyhash: Keyhash, at: usize) -> Option<(SlotAt, Slot)> {
        let home = self.directory.home(keyhash);
        let segment = self.directory.segment(&self.pool, &home);
        segment
            .candidates(home.buckets, home.tag)
            .find(|(_, slot)| slot.offset() == at)
    }

    /// Fetches the lines of both buckets.
    #[inline(always)]
    pub(super) fn prefetch_buckets(&self, home: &Home) {
        let segment = self.directory.segment(&self.pool, home);
        for bucket in home.buckets {
            self.pool.prefetch(segment.locate(bucket).0);
        }
    }

    /// Fetches the lines of every item that bears the key's tag: those that an item of the usual
    /// size has, three at most.
    #[inline(always)]
    pub(super) fn prefetch_item(&self, home: &Home) {
        let last_word = self.usual_words.get().clamp(1, 16) as usize - 1;
        let segment = self.directory.segment(&self.pool, home);
        for (_, slot) in segment.candidates(home.buckets, home.tag) {
            let at = slot.offset();
            self.pool.prefetch(at);
            self.pool.prefetch(at + last_word);
            if last_word > 8 {
                self.pool.prefetch(at + 8);
            }
        }
    }

    /// Empties the slots of a line that readers may be looking at.
    pub(super) fn empty_line(&self, line: usize, shared: bool) {
        use crate::index::cuckoo::{BUCKET_SLOTS, LINE_BUCKETS};
        let line = line_at(&self.pool, line);
        line.write_begin(shared);
        for bucket in 0..LINE_BUCKETS {
            for place in 0..BUCKET_SLOTS {
                line.set(bucket, place, 0, Slot::new(0));
            }
        }
        line.write_end(shared);
    }
}

impl<A: Access> Writer<'_, A> {
    /// Finds the key's item, unless it has expired.
    #[inline(always)]
    pub fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Found<'_>> {
        self.shared
            .find(&self.shared.directory.home(keyhash), key)
            .filter(|found| !expired(&found.item, now))
    }
}
