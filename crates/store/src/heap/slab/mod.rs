//! Slab classes (MemC3 §2.1, as memcached's): pages are given to classes, and each page, a *slab*,
//! is cut into chunks of the class's size.
//!
//! This is the bookkeeping, of which only the writer knows; what lies in the chunks is not looked
//! at here, save the links between free ones. A free chunk begins with the header of no item, whose
//! upper bits name the next free chunk of its slab.
//!
//! Pages for items grow from the pool's beginning. Its end belongs to the index, page by page as it
//! grows, so that runs of pages for large items are never in its way.

mod classes;
mod free_pages;
mod hand;
mod persist;
mod reserved;

pub use classes::{Size, sizes};
pub use persist::Outline;

use super::Header;
use super::write_filler;
use crate::memory::{Pool, ZeroedSlice};
use crate::work;
use free_pages::FreePages;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use hand::Hand;
use std::ops::Range;

/// A class, by number.
pub type ClassId = u8;

/// No chunk, or no slab.
const NONE: u32 = u32::MAX;

struct Class {
    size: Size,
    /// Its slabs, by first page.
    slabs: Vec<u32>,
    /// Those of them that have free chunks.
    partial: Vec<u32>,
    hand: Hand,
    /// Chunks that are reserved.
    reserved: usize,
}

/// What is known of a page. All but `owner` is kept at a slab's first page.
#[derive(Clone, Copy)]
struct Page {
    owner: Owner,
    /// Chunks in use.
    used: u32,
    /// Those of them that are reserved.
    reserved: u32,
    /// Chunks from this one on were never in use.
    fresh: u32,
    /// First of the free chunks that were in use before, or [`NONE`].
    free: u32,
    /// Its place in its class's list.
    position: u32,
    /// Its place in its class's list of slabs that have free chunks; [`NONE`] if it has none.
    partial_position: u32,
    /// When its class's hand last passed it, in words stored.
    passed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Free,
    /// The slab's first page, and its class.
    Slab(ClassId),
    /// A later page of a slab that begins this many pages before.
    Rest(u32),
}

/// Which chunk of which slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The slab's first page.
    pub slab: usize,
    /// Its first word.
    pub at: usize,
}

/// The classes and the pages.
pub struct Slabs {
    classes: Vec<Class>,
    /// The class of each number of words up to the size of small chunks.
    by_words: Vec<ClassId>,
    pages: Vec<Page>,
    free_pages: FreePages,
    /// Pages from here on are the index's.
    end: usize,
    /// Pages of slabs that have reserved chunks.
    pinned: usize,
    /// Words given out: the clock by which slabs are old.
    stored: u64,
    /// Where it is noted which slab a page belongs to, in a file.
    owners: Option<ZeroedSlice<AtomicU64>>,
}

/// Up to this many words a table names the class. Miri takes long to fill it.
const TABLE_WORDS: usize = if cfg!(miri) { 64 } else { 1024 };

impl Slabs {
    /// For items of up to `item_words_max` words, in the pool's pages before `end`.
    pub fn new(pool: &Pool, end: usize, item_words_max: usize) -> Slabs {
        let sizes = sizes(pool.page_words(), item_words_max);
        assert!(sizes.len() <= ClassId::MAX as usize);
        let by_words = (0..=TABLE_WORDS)
            .map(|words| sizes.partition_point(|size| size.chunk_words < words) as ClassId)
            .collect();
        let page = Page {
            owner: Owner::Free,
            used: 0,
            reserved: 0,
            fresh: 0,
            free: NONE,
            position: 0,
            partial_position: NONE,
            passed: 0,
        };
        Slabs {
            classes: sizes
                .into_iter()
                .map(|size| Class {
                    size,
                    slabs: Vec::new(),
                    partial: Vec::new(),
                    hand: Hand::default(),
                    reserved: 0,
                })
                .collect(),
            by_words,
            pages: vec![page; pool.pages()],
            free_pages: FreePages::new(pool.pages(), end),
            end,
            pinned: 0,
            stored: 0,
            owners: None,
        }
    }

    /// Bytes of this bookkeeping for each page of a pool: the page itself, its places in the two
    /// lists of its class, and its bit.
    pub const BYTES_PER_PAGE: usize = size_of::<Page>() + 2 * size_of::<u32>() + 1;

    /// The class for items of this many words.
    #[inline(always)]
    pub fn class_of(&self, words: usize) -> ClassId {
        match self.by_words.get(words) {
            Some(&class) => class,
            None => self
                .classes
                .partition_point(|class| class.size.chunk_words < words)
                as ClassId,
        }
    }

    /// Words of a class's chunks.
    pub fn chunk_words(&self, id: ClassId) -> usize {
        self.classes[id as usize].size.chunk_words
    }

    /// Words of the slab that begins on a page.
    pub fn slab_words(&self, pool: &Pool, slab: usize) -> usize {
        let Owner::Slab(id) = self.pages[slab].owner else {
            unreachable!("a slab begins there")
        };
        pool.page_words() * self.classes[id as usize].size.pages
    }

    /// The class of the chunk at a word.
    #[inline(always)]
    pub fn class_at(&self, pool: &Pool, at: usize) -> ClassId {
        match self.pages[self.slab_of(pool, at)].owner {
            Owner::Slab(class) => class,
            _ => unreachable!("an item lies in a slab"),
        }
    }

    /// The first page of the slab that a word lies in.
    #[inline(always)]
    fn slab_of(&self, pool: &Pool, at: usize) -> usize {
        let page = pool.page_of(at);
        match self.pages[page].owner {
            Owner::Rest(before) => page - before as usize,
            _ => page,
        }
    }

    #[inline(always)]
    fn class(&mut self, class: ClassId) -> &mut Class {
        &mut self.classes[class as usize]
    }

    /// A free chunk of a class, if one of its slabs has any.
    #[inline]
    pub fn take(&mut self, pool: &Pool, id: ClassId) -> Option<usize> {
        let class = &mut self.classes[id as usize];
        let slab = *class.partial.last()? as usize;
        let (size, page) = (class.size, &mut self.pages[slab]);
        let chunk = if page.free != NONE {
            let chunk = page.free;
            let at = pool.first_word(slab) + chunk as usize * size.chunk_words;
            page.free = (Header::read(pool.place(at, 2)).filler_words() as u32).wrapping_sub(1);
            chunk
        } else {
            page.fresh += 1;
            page.fresh - 1
        };
        page.used += 1;
        if page.used as usize == size.chunks {
            class.partial.pop();
            page.partial_position = NONE;
        }
        self.stored += size.chunk_words as u64;
        Some(pool.first_word(slab) + chunk as usize * size.chunk_words)
    }

    /// Counts a chunk that changed hands without becoming free in between.
    #[inline(always)]
    pub fn count_reuse(&mut self, id: ClassId) {
        self.stored += self.classes[id as usize].size.chunk_words as u64;
    }

    /// Frees the chunk at a word, which no index slot names any more.
    #[inline]
    pub fn free(&mut self, pool: &Pool, at: usize) {
        let slab = self.slab_of(pool, at);
        let Owner::Slab(id) = self.pages[slab].owner else {
            unreachable!("an item lies in a slab")
        };
        let size = self.classes[id as usize].size;
        let page = &mut self.pages[slab];
        // A free list ends with zero: its links are one more than the chunks that they name.
        write_filler(pool.place(at, 2), u64::from(page.free.wrapping_add(1)));
        page.free = ((at - pool.first_word(slab)) / size.chunk_words) as u32;
        let was_full = page.used as usize == size.chunks;
        page.used -= 1;
        let is_empty = page.used == 0;
        let class = &mut self.classes[id as usize];
        if was_full {
            self.pages[slab].partial_position = class.partial.len() as u32;
            class.partial.push(slab as u32);
        }
        // One partial slab of a page stays, so that a class at the edge does not give and take a
        // page with every item. Longer ones go at once: a value that grows comes through all their
        // classes.
        if is_empty && (class.partial.len() > 1 || size.pages > 1) {
            self.release(slab);
        }
    }

    /// Gives a class a slab of free pages; says whether there were enough in a row.
    pub fn add_slab(&mut self, id: ClassId) -> bool {
        let count = self.classes[id as usize].size.pages;
        let first = self.free_pages.run(count);
        if let Some(first) = first {
            self.put_slab(id, first);
        }
        first.is_some()
    }

    /// Gives a class the slab that begins on a page: that and the ones after it are free.
    fn put_slab(&mut self, id: ClassId, first: usize) {
        let count = self.classes[id as usize].size.pages;
        for (before, page) in self.pages[first..first + count].iter_mut().enumerate() {
            work::page_step();
            page.owner = Owner::Rest(before as u32);
        }
        self.free_pages.take(first, count);
        let (stored, class) = (self.stored, &mut self.classes[id as usize]);
        self.pages[first] = Page {
            owner: Owner::Slab(id),
            used: 0,
            reserved: 0,
            fresh: 0,
            free: NONE,
            position: class.slabs.len() as u32,
            partial_position: class.partial.len() as u32,
            passed: stored,
        };
        class.slabs.push(first as u32);
        class.partial.push(first as u32);
        self.note_owners(first, count);
    }

    /// Counts pages that have become free.
    fn give_pages(&mut self, first: usize, count: usize) {
        for page in &mut self.pages[first..first + count] {
            work::page_step();
            page.owner = Owner::Free;
        }
        self.free_pages.give(first, count);
    }

    /// Takes a slab out of its class's list of those that have free chunks, if it is there.
    fn unlist(&mut self, id: ClassId, slab: usize) {
        let position = std::mem::replace(&mut self.pages[slab].partial_position, NONE);
        if position != NONE {
            let partial = &mut self.classes[id as usize].partial;
            partial.swap_remove(position as usize);
            if let Some(&moved) = partial.get(position as usize) {
                self.pages[moved as usize].partial_position = position;
            }
        }
    }

    /// Moves a slab, whatever is in it, to free pages further to the left, and copies it except for
    /// reserved chunks; gives back its new first page. Its old pages are free, but hold what they
    /// held. None if there are no such pages in a row.
    ///
    /// The caller copies what is reserved, and makes the index name the items again: each lies as
    /// far from the slab's beginning as before.
    pub fn relocate(&mut self, pool: &Pool, slab: usize) -> Option<usize> {
        let Owner::Slab(id) = self.pages[slab].owner else {
            unreachable!("only a slab is moved")
        };
        let size = self.classes[id as usize].size;
        let to = self.free_pages.run(size.pages).filter(|&to| to < slab)?;
        for chunk in 0..self.pages[slab].fresh as usize {
            let place = |page| {
                let at = pool.first_word(page) + chunk * size.chunk_words;
                pool.place(at, size.chunk_words)
            };
            let header = Header::read(place(slab));
            if header.is_filler() && header.is_reserved() {
                continue;
            }
            let (old, new) = (place(slab).range(0, size.chunk_words), place(to));
            for (old, new) in old.iter().zip(new.range(0, size.chunk_words)) {
                new.store(old.load(Relaxed), Relaxed);
            }
            work::copied(size.chunk_words);
        }
        for before in 0..size.pages {
            self.pages[to + before] = self.pages[slab + before];
        }
        self.free_pages.take(to, size.pages);
        self.note_owners(to, size.pages);
        let Page {
            position,
            partial_position,
            ..
        } = self.pages[to];
        let class = self.class(id);
        class.slabs[position as usize] = to as u32;
        if partial_position != NONE {
            class.partial[partial_position as usize] = to as u32;
        }
        self.give_pages(slab, size.pages);
        Some(to)
    }

    /// Takes a slab away from its class, whatever is in it.
    pub fn release(&mut self, slab: usize) {
        let Owner::Slab(id) = self.pages[slab].owner else {
            unreachable!("only a slab is released")
        };
        let (position, pages) = (
            self.pages[slab].position as usize,
            self.classes[id as usize].size.pages,
        );
        self.unlist(id, slab);
        let class = self.class(id);
        class.slabs.swap_remove(position);
        if class.hand.slab == position {
            class.hand.chunk = 0;
        }
        if class.hand.slab >= class.slabs.len() {
            class.hand = Hand::default();
        }
        if let Some(&moved) = class.slabs.get(position) {
            self.pages[moved as usize].position = position as u32;
        }
        self.give_pages(slab, pages);
    }

    /// The chunk that a class's hand points at, and whether it is the first of its slab. None if
    /// the class has no slab.
    #[inline(always)]
    pub fn at_hand(&self, pool: &Pool, id: ClassId) -> Option<(Chunk, bool)> {
        let class = &self.classes[id as usize];
        let slab = *class.slabs.get(class.hand.slab)? as usize;
        let at = pool.first_word(slab) + class.hand.chunk * class.size.chunk_words;
        Some((Chunk { slab, at }, class.hand.chunk == 0))
    }

    /// The word at which the chunk this many places ahead of the hand begins, in the same slab.
    #[inline(always)]
    pub fn ahead_of_hand(&self, pool: &Pool, id: ClassId, ahead: usize) -> Option<usize> {
        let class = &self.classes[id as usize];
        let slab = *class.slabs.get(class.hand.slab)? as usize;
        let chunk = class.hand.chunk + ahead;
        (chunk < self.pages[slab].fresh as usize)
            .then(|| pool.first_word(slab) + chunk * class.size.chunk_words)
    }

    /// Moves a class's hand on by one chunk.
    #[inline(always)]
    pub fn advance_hand(&mut self, id: ClassId) {
        let (stored, class) = (self.stored, &mut self.classes[id as usize]);
        let passed = class.slabs[class.hand.slab] as usize;
        if class.hand.advance(class.size.chunks, class.slabs.len()) {
            self.pages[passed].passed = stored;
        }
    }

    /// Moves a class's hand past the whole slab that it points at.
    pub fn skip_slab(&mut self, id: ClassId) {
        let chunks = self.classes[id as usize].size.chunks;
        self.class(id).hand.chunk = chunks - 1;
        self.advance_hand(id);
    }

    /// How many words ago a class's hand last passed the slab that it points at, and that slab.
    pub fn age(&self, id: ClassId) -> Option<(u64, usize)> {
        let class = &self.classes[id as usize];
        let slab = *class.slabs.get(class.hand.slab)? as usize;
        Some((self.stored - self.pages[slab].passed, slab))
    }

    /// The class, other than this one, whose hand has been away for longest: its age and number.
    pub fn oldest_but(&self, id: ClassId) -> Option<(u64, ClassId)> {
        (0..self.classes.len() as ClassId)
            .filter(|&other| other != id)
            .filter_map(|other| self.age(other).map(|(age, _)| (age, other)))
            .max()
    }

    /// The words at which the chunks of a slab begin that have been in use.
    pub fn chunks(&self, pool: &Pool, slab: usize) -> impl Iterator<Item = usize> + use<> {
        let Owner::Slab(id) = self.pages[slab].owner else {
            unreachable!("only slabs have chunks")
        };
        let (first, words) = (
            pool.first_word(slab),
            self.classes[id as usize].size.chunk_words,
        );
        (0..self.pages[slab].fresh as usize).map(move |chunk| first + chunk * words)
    }

    /// The pages that a slab of a class would take if it were put as near to `page` as it can be.
    pub fn run_near(&self, id: ClassId, page: usize) -> Range<usize> {
        let count = self.classes[id as usize].size.pages;
        let first = page.min(self.end - count);
        first..first + count
    }

    /// The slab that a page belongs to.
    pub fn slab_on(&self, page: usize) -> Option<usize> {
        match self.pages[page].owner {
            Owner::Free => None,
            Owner::Slab(_) => Some(page),
            Owner::Rest(before) => Some(page - before as usize),
        }
    }

    /// The last page before the index's.
    pub fn last_page(&self) -> usize {
        self.end - 1
    }

    /// Gives the last page, which is free, to the index.
    pub fn give_last_page(&mut self) -> usize {
        debug_assert!(self.slab_on(self.last_page()).is_none());
        self.end -= 1;
        self.free_pages.take(self.end, 1);
        self.end
    }

    /// Pages that items may have.
    pub fn item_pages(&self) -> usize {
        self.end
    }

    /// Takes back pages from the index, which has those from `end` on.
    pub fn take_back(&mut self, end: usize) {
        let first = self.end;
        self.end = end;
        self.give_pages(first, end - first);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
