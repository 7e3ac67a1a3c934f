//! Chunks that are reserved: in use, without an item, for values that are being received. Slabs
//! with such chunks are *pinned*. They are not taken from their classes; if their pages are wanted,
//! their reserved chunks move.

use super::{ClassId, FreePages, Hand, Owner, Slabs};
use crate::heap::{write_filler, write_reserved};
use crate::memory::Pool;
use std::ops::Range;

impl Slabs {
    /// Marks a chunk that was taken as reserved.
    pub fn reserve(&mut self, pool: &Pool, at: usize) {
        let (slab, id) = (self.slab_of(pool, at), self.class_at(pool, at));
        let class = &mut self.classes[id as usize];
        let words = class.size.chunk_words;
        write_reserved(pool.place(at, words), words as u64);
        class.reserved += 1;
        if self.pages[slab].reserved == 0 {
            self.pinned += class.size.pages;
        }
        self.pages[slab].reserved += 1;
    }

    /// A chunk that was reserved is an item's, or about to be free.
    pub fn end_reservation(&mut self, pool: &Pool, at: usize) {
        let (slab, id) = (self.slab_of(pool, at), self.class_at(pool, at));
        let class = &mut self.classes[id as usize];
        class.reserved -= 1;
        self.pages[slab].reserved -= 1;
        if self.pages[slab].reserved == 0 {
            self.pinned -= class.size.pages;
        }
    }

    /// Whether a class has an item: the chunks in use of one that has none are all reserved.
    /// Only for a class without free chunks.
    pub fn has_items(&self, id: ClassId) -> bool {
        let class = &self.classes[id as usize];
        class.reserved < class.slabs.len() * class.size.chunks
    }

    /// Pages of a slab of a class.
    pub fn slab_pages(&self, id: ClassId) -> usize {
        self.classes[id as usize].size.pages
    }

    /// Pages of slabs that have reserved chunks.
    pub fn pinned_pages(&self) -> usize {
        self.pinned
    }

    /// The reserved chunks of the slab that begins on a page.
    pub fn reserved_in(&self, slab: usize) -> usize {
        self.pages[slab].reserved as usize
    }

    fn is_pinned(&self, page: usize) -> bool {
        let slab = self.slab_on(page);
        slab.is_some_and(|slab| self.reserved_in(slab) > 0)
    }

    /// Whether one of these pages belongs to a slab with reserved chunks.
    pub fn is_pinned_within(&self, pages: Range<usize>) -> bool {
        self.pinned > 0 && pages.into_iter().any(|page| self.is_pinned(page))
    }

    /// The first run of `count` adjacent pages before `end` of which none is pinned.
    pub fn unpinned_run(&self, count: usize, end: usize) -> Option<Range<usize>> {
        let run = self.unpinned(end).find(|run| run.len() >= count)?;
        Some(run.start..run.start + count)
    }

    /// Pages in a row of which `count` are not pinned, and of the others as few as possible. No
    /// pinned slab lies across their ends.
    pub fn least_pinned(&self, count: usize) -> Option<Range<usize>> {
        let runs: Vec<Range<usize>> = self.unpinned(self.end).collect();
        let (mut best, mut begin, mut unpinned) = (None, 0, 0);
        for end in 0..runs.len() {
            unpinned += runs[end].len();
            while unpinned - runs[begin].len() >= count {
                unpinned -= runs[begin].len();
                begin += 1;
            }
            if unpinned >= count {
                let from = runs[begin].start + (unpinned - count);
                let pages = from..runs[end].end;
                let is_less = |best: &Range<usize>| pages.len() < best.len();
                best = best.filter(|best| !is_less(best)).or(Some(pages));
            }
        }
        best
    }

    /// Runs of pages before `end` that are not pinned.
    fn unpinned(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let mut page = 0;
        std::iter::from_fn(move || {
            page += (page..end).take_while(|&page| self.is_pinned(page)).count();
            let first = page;
            page += (page..end)
                .take_while(|&page| !self.is_pinned(page))
                .count();
            (first < page).then_some(first..page)
        })
    }

    /// Moves a slab of which no chunks but these reserved ones are in use, given in their order.
    /// The pages from `to` on, further to the left, are free or its own. The caller copies the
    /// chunks.
    pub fn slide(&mut self, pool: &Pool, (slab, to): (usize, usize), chunks: &[usize]) {
        let id = self.class_at(pool, pool.first_word(slab));
        for &at in chunks {
            self.end_reservation(pool, at);
        }
        self.release(slab);
        self.put_slab(id, to);
        for &at in chunks {
            self.take_chunk(pool, at - pool.first_word(slab) + pool.first_word(to));
        }
    }

    /// Chunks in use of the slab that begins on a page.
    pub fn used_in(&self, slab: usize) -> usize {
        self.pages[slab].used as usize
    }

    /// Takes every slab away from every class, except for these reserved chunks, in their order:
    /// nothing is stored any more.
    pub fn clear_but(&mut self, pool: &Pool, kept: &[usize]) {
        let slab_of = |&at: &usize| (self.slab_of(pool, at), self.class_at(pool, at));
        let slabs: Vec<(usize, ClassId)> = kept.iter().map(slab_of).collect();
        for class in &mut self.classes {
            class.slabs.clear();
            class.partial.clear();
            class.hand = Hand::default();
            class.reserved = 0;
        }
        for page in &mut self.pages[..self.end] {
            page.owner = Owner::Free;
        }
        self.free_pages = FreePages::new(self.pages.len(), self.end);
        self.pinned = 0;
        for (&at, &(slab, id)) in kept.iter().zip(&slabs) {
            if self.slab_on(slab).is_none() {
                self.put_slab(id, slab);
            }
            self.take_chunk(pool, at);
        }
    }

    /// Takes and reserves one chunk of a slab whose chunks from this one on were never in use.
    fn take_chunk(&mut self, pool: &Pool, at: usize) {
        let (slab, id) = (self.slab_of(pool, at), self.class_at(pool, at));
        let size = self.classes[id as usize].size;
        let (first, page) = (pool.first_word(slab), &mut self.pages[slab]);
        let chunk = ((at - first) / size.chunk_words) as u32;
        for before in page.fresh..chunk {
            let at = first + before as usize * size.chunk_words;
            write_filler(pool.place(at, 2), u64::from(page.free.wrapping_add(1)));
            page.free = before;
        }
        page.fresh = chunk + 1;
        page.used += 1;
        if page.used as usize == size.chunks {
            self.unlist(id, slab);
        }
        self.reserve(pool, at);
    }
}
