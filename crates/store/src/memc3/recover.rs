//! A table after a process that was ended by force.
//!
//! # What may be found
//!
//! As in [cache mode](crate::mica_cache), the process ended between two instructions, and at most
//! one change of the table was underway. Slots with a tag alone say what is stored. Which chunks
//! are free is worked out from the items that they name, so it does not matter what a change has
//! left in the chunks of no item.
//!
//! - *An item is stored that was not there.* It is [written](crate::heap) to a chunk of its own,
//!   the slot that names it comes next, and the slot's tag last.
//! - *An item replaces an old one in another chunk.* It is written, and then one store makes the
//!   slot name it, under the tag that both have. The old chunk is free after that.
//! - *An item is written over*, grows where it lies, or gets another expiry. Its header is marked
//!   as a filler first and written last. In between, its slot names no item. It is cleared, and the
//!   item is counted as lost.
//! - *An item is removed*, by a client, by CLOCK, or because it has expired. The tag goes first.
//!   Only then is its chunk free, and only after that is the removal acknowledged.
//! - *An item goes to its other bucket.* It has two slots for a moment. One of them is cleared.
//! - *A segment is split.* The new one is filled, then the notes say which prefixes it has, then
//!   the record has one more segment, and only then does the old one lose slots. If it still has
//!   some whose keys belong to the new one, they are cleared.
//! - *A slab moves.* It is copied to free pages, the notes say that they belong to it, and slot by
//!   slot names the copy. Both slabs are there until then.
//! - *A slab is given to another class.* Its items leave first. The notes of its pages change
//!   before an item of the new one can be found.
//! - *A flush.* The record has one segment from some moment on, which is emptied. If the number of
//!   flushes was not announced, the flush is carried out again, before anything is served.
//! - *A value is received*, or its place moves. No slot names it, and its chunk is free.
//!
//! *Nothing that was deleted, replaced, evicted or flushed comes back:* only slots with a tag are
//! believed, and the memory of an item is stored to after its tag has gone, or its slot names
//! another item. Segments that a flush has left are not among those of the record.
//!
//! *Nothing foreign is served:* a slot is kept if its item's key belongs to its segment and bucket
//! and has its tag, and if the item lies in a chunk of a slab, which no other slot names.
//!
//! # What is made of it
//!
//! Versions of lines may be odd, and are made even. Each step leaves what the next recovery needs,
//! so a process that is ended while it recovers is followed by one that recovers. The hands of
//! CLOCK begin again; which items were used is in the slots, and stays.

use super::persist::Image;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Begins, Item};
use crate::index::cuckoo::{LINE_BUCKETS, Slot, line_at, places};
use crate::memory::{LINE_WORDS, Record};
use crate::table::Heap;

/// This many lines before a slot's turn, its item is fetched.
const FETCHED_AHEAD: usize = 2;

/// What has been found.
struct Findings<'a> {
    begins: Begins,
    items: u64,
    bytes: u64,
    /// Counts what is lost.
    record: &'a Record,
}

/// What a slot with a tag names.
enum Named<'a> {
    Item(Item<'a>),
    /// An item that another segment has as well.
    Anothers,
    Nothing,
}

impl<A: Access> Writer<'_, A> {
    /// Makes the table whole, and an image of it. The directory is as it was.
    #[cold]
    pub(super) fn recover(&mut self, record: &Record) -> Image {
        let shared = self.shared;
        let pool = shared.pool();
        let segments = self.state.segments;
        let mut found = Findings {
            begins: Begins::none(pool.pages() * pool.page_words()),
            items: 0,
            bytes: 0,
            record,
        };
        self.state.slabs.begin_again(pool.pages() - segments);
        for page in (0..segments).map(|segment| shared.page_of(segment)) {
            let segment = shared.index.segment_on(page);
            let ahead = segment.lines().skip(FETCHED_AHEAD).map(Some);
            for (line, ahead) in segment.lines().zip(ahead.chain(std::iter::repeat(None))) {
                if let Some(ahead) = ahead {
                    shared.fetch_items(ahead);
                }
                self.recover_line(page, line, &mut found);
            }
        }
        let is_kept = |at| found.begins.has(at);
        self.state.slabs.end_keeping(pool, is_kept);
        shared.common.counters.lost.set(record.lost());
        Image {
            usual_words_64: 0,
            items: found.items,
            bytes: found.bytes,
            notes_sum: 0,
        }
    }

    fn recover_line(&mut self, page: usize, line: usize, found: &mut Findings<'_>) {
        let (shared, pool) = (self.shared, self.shared.pool());
        let it = line_at(pool, line);
        it.calm();
        let first_bucket = (line - pool.first_word(page)) / LINE_WORDS * LINE_BUCKETS;
        for (bucket, place) in places() {
            let (tag, slot) = (it.tag(bucket, place), it.slot(bucket, place));
            if tag == 0 {
                continue;
            }
            match shared.named((page, first_bucket + bucket), tag, slot) {
                Named::Item(item) => {
                    let at = slot.offset();
                    let is_new = !found.begins.has(at);
                    if is_new && self.state.slabs.keep(pool, at, item.words()) {
                        found.begins.note(at);
                        found.items += 1;
                        found.bytes += 8 * item.words() as u64;
                        continue;
                    }
                    if is_new {
                        found.record.count_lost();
                    }
                }
                Named::Anothers => {}
                Named::Nothing => found.record.count_lost(),
            }
            it.clear(bucket, place);
        }
    }
}

impl Shared {
    /// Fetches the items of a line without waiting for them.
    fn fetch_items(&self, line: usize) {
        let it = line_at(self.pool(), line);
        let slots = places().filter(|&(bucket, place)| it.tag(bucket, place) != 0);
        slots.for_each(|(bucket, place)| self.heap.prefetch(it.slot(bucket, place), 0));
    }

    /// What a slot of a bucket, on a page of the index, names.
    fn named(&self, (page, bucket): (usize, usize), tag: u8, slot: Slot) -> Named<'_> {
        let (index, pool) = (&self.index, self.pool());
        let is_within = pool.page_of(slot.offset()) < pool.pages();
        let item = is_within.then(|| self.item_at(slot.offset())).flatten();
        let Some(item) = item else {
            return Named::Nothing;
        };
        let home = index.directory.home(self.common.keyhash(&item));
        if home.tag() != tag || !home.buckets.contains(&(bucket as u32)) {
            return Named::Nothing;
        }
        match home.page as usize == page {
            true => Named::Item(item),
            false => Named::Anothers,
        }
    }
}
