//! Uploads: large values that are received where their items are to lie
//! ([`table::upload`](crate::table::Upload)).
//!
//! The place of an upload is a chunk of its class that is reserved. It has no index slot, so the
//! hand of CLOCK passes it by, and its slab is not given to another class. What slabs with such
//! chunks may take is bounded: a part of the pages.
//!
//! Uploads move where their pages are wanted, which is rare:
//!
//! - A slab at the end of the items' pages moves as a whole if the index wants its last page.
//! - If a large slab finds no pages in a row without uploads, those that are in the way of the best
//!   place for it slide to the left. As uploads have a part of the pages only, that place is not
//!   much longer than the slab.
//! - A flush leaves them where they are, in slabs of their own.

use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::{Header, Put, write_drafted};
use crate::index::cuckoo::Slot;
use crate::memory::Words;
use crate::removals::Reason;
use crate::table::{Cell, Index, Purpose, Reservation, Reserved, Step};
use glimmer_base::Moment;
use glimmer_base::limits::UPLOADS_PART;
use glimmer_base::sync::Arc;
use glimmer_base::sync::Ordering::Relaxed;

impl Shared {
    /// A place that is reserved.
    pub(super) fn place_of(&self, place: Reserved) -> Words<'_> {
        let (at, words) = (place.at as usize, place.words as usize);
        Words::of(self.pool().place(at, words).range(0, words))
    }
}

impl<A: Access> Writer<'_, A> {
    /// Words that slabs with uploads may take, if there are several. Even if the index takes all
    /// the pages that it may, what is left is enough for the largest item. How much larger than its
    /// item a slab is, a page or an eighth, is not known before.
    pub(super) fn upload_words_max(&self) -> u64 {
        let (state, pool) = (&self.state, self.shared.pool());
        let class = state.slabs.class_of(self.shared.heap.item_words_max);
        let largest = state.slabs.slab_pages(class);
        let least = pool.pages() - state.segments_max;
        let part = (state.slabs.item_pages() / UPLOADS_PART).saturating_sub(1);
        let pages = part.min(least.saturating_sub(largest + largest.div_ceil(8) + 1));
        (pages * pool.page_words()) as u64
    }

    /// Words that they take.
    pub(super) fn upload_words(&self) -> u64 {
        (self.state.slabs.pinned_pages() * self.shared.pool().page_words()) as u64
    }

    /// Reserves a chunk. A value that is there already is copied when it is stored.
    pub(super) fn reserve(&mut self, reservation: &Reservation<'_>) -> Step {
        if reservation.purpose == Purpose::Draft {
            return Step::Never;
        }
        let class = self.state.slabs.class_of(reservation.words as usize);
        let at = self.allocate(class, reservation.now);
        self.state.slabs.reserve(self.shared.pool(), at);
        Step::Reserved(Reserved {
            at: at as u64,
            words: reservation.words,
        })
    }

    /// Whether the chunk at a word is reserved.
    #[inline(always)]
    pub(super) fn is_reserved(&self, at: usize) -> bool {
        let header = Header::read(self.shared.pool().place(at, 2));
        header.is_filler() && header.is_reserved()
    }

    /// Frees a chunk whose value was not stored.
    pub(super) fn abandon(&mut self, place: Reserved) {
        let (pool, at) = (self.shared.pool(), place.at as usize);
        self.state.slabs.end_reservation(pool, at);
        self.state.slabs.free(pool, at);
    }

    /// Makes an item of a value that has arrived.
    pub(super) fn put_drafted(&mut self, put: &Put<'_>, place: Reserved) {
        let (shared, at) = (self.shared, place.at as usize);
        shared.common.counters.stored.add(1);
        self.state.expired.soonest.note(put.item.expiry);
        self.learn_size(put.words);
        let is_there = |writer: &Self| {
            let home = writer.home(put.keyhash);
            shared.find(home, put.keyhash, put.item.key).is_some()
        };
        if !is_there(self) {
            // The chunk is reserved until then, so that it stays where it is.
            self.make_slot(put.keyhash, put.now);
        }
        write_drafted(shared.place_of(place), put);
        self.state.slabs.end_reservation(shared.pool(), at);
        let home = shared.index.home(put.keyhash);
        let Some(old) = shared.find(home, put.keyhash, put.item.key) else {
            return self.link(put, at);
        };
        shared.common.counters.gone(&old.item);
        let slot = Slot::new(at).with_recent(true);
        self.set_slot(old.slot, home.tag(), slot, put.words);
        self.free_chunk_of(&old);
    }

    /// Frees all memory but the chunks of uploads.
    pub(super) fn keep_uploads(&mut self) {
        let uploads = self.state.ledger.uploads.cells();
        let kept: Vec<usize> = uploads.map(|cell| cell.place().at as usize).collect();
        self.state.slabs.clear_but(self.shared.pool(), &kept);
    }

    /// The uploads on a slab.
    fn uploads_on(&mut self, slab: usize) -> Vec<Arc<Cell>> {
        let pool = self.shared.pool();
        let (first, words) = (
            pool.first_word(slab),
            self.state.slabs.slab_words(pool, slab),
        );
        let uploads = &self.state.ledger.uploads;
        uploads.within(first as u64..(first + words) as u64)
    }

    /// Copies what has arrived of an upload to another word.
    fn move_upload(&mut self, cell: &Cell, to: usize) {
        let (shared, place) = (self.shared, cell.place());
        let moved = Reserved {
            at: to as u64,
            ..place
        };
        let copy = |begun_words: usize| {
            let (old, new) = (shared.place_of(place), shared.place_of(moved));
            // In their order: the new place may overlap the old one, and lies before it.
            for (old, new) in old
                .range(0, begun_words)
                .iter()
                .zip(new.range(0, begun_words))
            {
                new.store(old.load(Relaxed), Relaxed);
            }
            crate::work::moved(begun_words);
            new
        };
        // SAFETY: the place is in the memory of this table.
        unsafe { cell.relocate(copy) };
        self.state.ledger.uploads.rename(place.at, moved.at);
    }

    /// Moves a slab with uploads further to the left. Says whether that was done: there may be no
    /// pages for it, or the value on it is just being stored.
    pub(super) fn move_pinned(&mut self, slab: usize, now: Moment) -> bool {
        let pool = self.shared.pool();
        let uploads = self.uploads_on(slab);
        if uploads.len() < self.state.slabs.reserved_in(slab) {
            return false;
        }
        let class = self.state.slabs.class_at(pool, pool.first_word(slab));
        let pages = self.state.slabs.slab_pages(class);
        let mut to = self.state.slabs.relocate(pool, slab);
        if to.is_none()
            && let Some(run) = self.state.slabs.unpinned_run(pages, slab)
        {
            for page in run {
                self.empty_page(page, now);
            }
            to = self.state.slabs.relocate(pool, slab);
        }
        let Some(to) = to else {
            return false;
        };
        let (old, new) = (pool.first_word(slab), pool.first_word(to));
        for cell in uploads {
            let at = cell.place().at as usize;
            self.move_upload(&cell, at - old + new);
        }
        self.name_anew(slab, to);
        true
    }

    /// Frees `count` adjacent pages, and moves the uploads that lie there.
    #[cold]
    pub(super) fn free_pages_beside_uploads(&mut self, count: usize, now: Moment) {
        let pages = self.state.slabs.least_pinned(count);
        let pages = pages.expect("uploads have a part of the pages only");
        let (mut page, mut to) = (pages.start, pages.start);
        while page < pages.end {
            let Some(slab) = self.state.slabs.slab_on(page) else {
                page += 1;
                continue;
            };
            if self.state.slabs.reserved_in(slab) == 0 {
                self.empty_page(page, now);
                continue;
            }
            let pool = self.shared.pool();
            let class = self.state.slabs.class_at(pool, pool.first_word(slab));
            let slab_pages = self.state.slabs.slab_pages(class);
            if slab != to {
                self.slide(slab, to, now);
            }
            (page, to) = (slab + slab_pages, to + slab_pages);
        }
    }

    /// Moves the uploads of a slab, with it, to pages on its left. Its items leave.
    fn slide(&mut self, slab: usize, to: usize, now: Moment) {
        let pool = self.shared.pool();
        self.collect(slab, slab);
        for i in 0..self.state.slab_slots.len() {
            let slot = self.state.slab_slots[i];
            self.give_up(slot, Reason::Evicted, now);
        }
        let cells = self.uploads_on(slab);
        let chunks: Vec<usize> = cells.iter().map(|cell| cell.place().at as usize).collect();
        let (old, new) = (pool.first_word(slab), pool.first_word(to));
        self.state.slabs.slide(pool, (slab, to), &chunks);
        for (cell, &at) in cells.iter().zip(&chunks) {
            self.move_upload(cell, at - old + new);
        }
    }
}
