//! What slabs are made of, for the next process: where it was written down, and where it is worked
//! out from the items that are left.
//!
//! Which slab a page belongs to is noted whenever that changes, before an item of the slab can be
//! found. What is noted of a page that has become free again does not matter: no item lies there
//! before the page belongs to the next slab.

use super::{Class, ClassId, FreePages, Hand, NONE, Owner, Page, Slabs};
use crate::heap::write_filler;
use crate::memory::{Pool, ZeroedSlice, sum_of_many};
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, in_program_order};

/// The part of [`Slabs`] that fits into a few words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// See [`Slabs`].
    pub end: u64,
    /// See [`Slabs`].
    pub stored: u64,
    /// The sum of the other words.
    pub sum: u64,
}

/// Words that are written down of a page, and of a class.
const PAGE_NOTE_WORDS: usize = 4;

const HALF: u32 = u32::BITS;

fn halves(low: u32, high: u32) -> u64 {
    u64::from(high) << HALF | u64::from(low)
}

impl Owner {
    fn word(self) -> u64 {
        match self {
            Owner::Free => 0,
            Owner::Slab(class) => halves(1, class.into()),
            Owner::Rest(before) => halves(2, before),
        }
    }

    fn of_word(word: u64) -> Option<Owner> {
        let high = (word >> HALF) as u32;
        match word as u32 {
            0 => Some(Owner::Free),
            1 => Some(Owner::Slab(ClassId::try_from(high).ok()?)),
            2 => Some(Owner::Rest(high)),
            _ => None,
        }
    }
}

impl Page {
    fn words(&self) -> [u64; PAGE_NOTE_WORDS] {
        [
            self.owner.word(),
            halves(self.used, self.fresh),
            halves(self.free, self.position),
            halves(self.partial_position, 0) | self.passed << HALF,
        ]
    }

    fn of_words([owner, first, second, third]: [u64; PAGE_NOTE_WORDS]) -> Option<Page> {
        Some(Page {
            owner: Owner::of_word(owner)?,
            used: first as u32,
            reserved: 0,
            fresh: (first >> HALF) as u32,
            free: second as u32,
            position: (second >> HALF) as u32,
            partial_position: third as u32,
            passed: third >> HALF,
        })
    }
}

impl Slabs {
    /// Notes from now on, a word each, which slab a page belongs to.
    pub fn keep_owners_in(&mut self, owners: ZeroedSlice<AtomicU64>) {
        self.owners = Some(owners);
    }

    /// These pages belong to another slab. No item of it can be found so far.
    pub(super) fn note_owners(&self, first: usize, count: usize) {
        if let Some(owners) = &self.owners {
            for page in first..first + count {
                owners[page].store(self.pages[page].owner.word(), Relaxed);
            }
            in_program_order();
        }
    }

    /// Words beside the outline that are written down.
    pub fn note_words(&self) -> usize {
        self.pages.len() * PAGE_NOTE_WORDS + self.classes.len()
    }

    /// Writes down everything, and returns the outline. No chunk is reserved.
    pub fn write_down(&self, notes: &[AtomicU64]) -> Outline {
        // Ages count from the slab that was passed first, so that they are small numbers.
        let of_slabs = self.pages.iter().filter(|page| is_slab(page));
        let first = of_slabs.map(|page| page.passed).min();
        let first = first.unwrap_or(self.stored);
        let age = |passed: u64| ((passed - first) / AGE_UNIT_WORDS).min(u32::MAX.into());
        let pages = self.pages.iter().flat_map(|page| {
            let passed = if is_slab(page) { age(page.passed) } else { 0 };
            Page { passed, ..*page }.words()
        });
        let hands = (self.classes.iter())
            .map(|class| halves(class.hand.slab as u32, class.hand.chunk as u32));
        for (note, word) in notes.iter().zip(pages.chain(hands)) {
            note.store(word, Relaxed);
        }
        Outline {
            end: self.end as u64,
            stored: age(self.stored),
            sum: sum_of_many(notes.iter().map(|note| note.load(Relaxed))),
        }
    }

    /// Takes up what was written down. Says whether it can be; otherwise nothing has changed.
    pub fn read_back(&mut self, notes: &[AtomicU64], outline: &Outline) -> bool {
        let words = || notes.iter().map(|note| note.load(Relaxed));
        let Outline { end, stored, sum } = *outline;
        if sum_of_many(words()) != sum || end > self.pages.len() as u64 {
            return false;
        }
        let all: Vec<u64> = words().collect();
        let (pages, hands) = all.split_at(self.pages.len() * PAGE_NOTE_WORDS);
        let pages = pages.as_chunks().0.iter();
        let pages: Option<Vec<Page>> = pages.map(|words| Page::of_words(*words)).collect();
        let Some(pages) = pages else {
            return false;
        };
        let are_possible = (0..pages.len()).all(|page| self.is_possible(&pages, page));
        let Some(lists) = self.lists_of(&pages).filter(|_| are_possible) else {
            return false;
        };
        for ((class, lists), hand) in self.classes.iter_mut().zip(lists).zip(hands) {
            [class.slabs, class.partial] = lists;
            class.hand = Hand {
                slab: *hand as u32 as usize,
                chunk: (hand >> HALF) as usize,
            };
            if class.hand.slab >= class.slabs.len() || class.hand.chunk >= class.size.chunks {
                class.hand = Hand::default();
            }
        }
        (self.end, self.stored) = (end as usize, stored * AGE_UNIT_WORDS);
        self.pages = pages;
        for page in &mut self.pages {
            page.passed *= AGE_UNIT_WORDS;
        }
        self.free_pages = FreePages::new(self.pages.len(), 0);
        for page in 0..self.end {
            if self.pages[page].owner == Owner::Free {
                self.free_pages.give(page, 1);
            }
        }
        true
    }

    /// Whether what is said of a page names nothing beyond its slab.
    fn is_possible(&self, pages: &[Page], number: usize) -> bool {
        let size_of = |class: ClassId| self.classes.get(class as usize).map(|it| it.size);
        let page = &pages[number];
        match page.owner {
            Owner::Free => true,
            Owner::Slab(class) => size_of(class).is_some_and(|size| {
                number + size.pages <= pages.len()
                    && page.fresh as usize <= size.chunks
                    && page.used <= page.fresh
                    && (page.free == NONE || page.free < page.fresh)
            }),
            Owner::Rest(before) => {
                let slab = number
                    .checked_sub(before as usize)
                    .map(|slab| pages[slab].owner);
                let Some(Owner::Slab(class)) = slab else {
                    return false;
                };
                size_of(class).is_some_and(|size| (before as usize) < size.pages)
            }
        }
    }

    /// The slabs of each class, and those that have free chunks, in the order that pages have.
    fn lists_of(&self, pages: &[Page]) -> Option<Vec<[Vec<u32>; 2]>> {
        let mut lists = vec![[Vec::new(), Vec::new()]; self.classes.len()];
        for (number, page) in pages.iter().enumerate() {
            if let Owner::Slab(class) = page.owner {
                let [slabs, partial] = lists.get_mut(class as usize)?;
                slabs.push((page.position, number as u32));
                if page.partial_position != NONE {
                    partial.push((page.partial_position, number as u32));
                }
            }
        }
        let in_order = |mut list: Vec<(u32, u32)>| {
            list.sort_unstable();
            let mut places = list.iter().enumerate();
            let are_places = places.all(|(nth, &(position, _))| nth as u32 == position);
            are_places.then(|| list.into_iter().map(|(_, page)| page).collect())
        };
        let lists = lists.into_iter().map(|[slabs, partial]| {
            let both: [Vec<u32>; 2] = [in_order(slabs)?, in_order(partial)?];
            Some(both)
        });
        lists.collect()
    }

    /// Nothing is in use, in the pages before `end`, but what [`keep`](Self::keep) is told of.
    pub fn begin_again(&mut self, end: usize) {
        for class in &mut self.classes {
            *class = Class {
                size: class.size,
                slabs: Vec::new(),
                partial: Vec::new(),
                hand: Hand::default(),
                reserved: 0,
            };
        }
        for page in &mut self.pages {
            page.owner = Owner::Free;
        }
        self.end = end;
        self.free_pages = FreePages::new(self.pages.len(), end);
        (self.pinned, self.stored) = (0, 0);
    }

    /// An item of this many words begins at a word. Says whether a chunk can begin there, by what
    /// is noted of its page. [`end_keeping`](Self::end_keeping) has to follow.
    pub fn keep(&mut self, pool: &Pool, at: usize, words: usize) -> bool {
        let Some((slab, id)) = self.noted_slab(pool.page_of(at)) else {
            return false;
        };
        let size = self.classes[id as usize].size;
        let (chunk, rest) = {
            let from = at - pool.first_word(slab);
            (from / size.chunk_words, from % size.chunk_words)
        };
        if rest != 0 || chunk >= size.chunks || words > size.chunk_words {
            return false;
        }
        if self.pages[slab].owner != Owner::Slab(id) {
            let pages = slab..slab + size.pages;
            let are_free = |mut pages: std::ops::Range<usize>| {
                pages.all(|page| self.pages[page].owner == Owner::Free)
            };
            if pages.end > self.end || !are_free(pages) {
                return false;
            }
            self.put_slab(id, slab);
        }
        let page = &mut self.pages[slab];
        page.used += 1;
        page.fresh = page.fresh.max(chunk as u32 + 1);
        true
    }

    /// The slab that a page belongs to, as was noted, and its class.
    fn noted_slab(&self, page: usize) -> Option<(usize, ClassId)> {
        let noted = |page: usize| {
            let owners = self.owners.as_ref()?;
            Owner::of_word(owners.get(page)?.load(Relaxed))
        };
        let slab = match noted(page)? {
            Owner::Free => return None,
            Owner::Slab(_) => page,
            Owner::Rest(before) => page.checked_sub(before as usize)?,
        };
        match noted(slab)? {
            Owner::Slab(id) if (id as usize) < self.classes.len() => Some((slab, id)),
            _ => None,
        }
    }

    /// All items are known: the other chunks are free.
    pub fn end_keeping(&mut self, pool: &Pool, is_kept: impl Fn(usize) -> bool) {
        for slab in 0..self.end {
            let Owner::Slab(id) = self.pages[slab].owner else {
                continue;
            };
            let size = self.classes[id as usize].size;
            let page = &mut self.pages[slab];
            for chunk in 0..page.fresh {
                let at = pool.first_word(slab) + chunk as usize * size.chunk_words;
                if !is_kept(at) {
                    write_filler(pool.place(at, 2), u64::from(page.free.wrapping_add(1)));
                    page.free = chunk;
                }
            }
            if page.used as usize == size.chunks {
                self.unlist(id, slab);
            }
        }
    }
}

/// Ages are written down in these units: half a word holds 16 TiB of them.
const AGE_UNIT_WORDS: u64 = 512;

fn is_slab(page: &Page) -> bool {
    matches!(page.owner, Owner::Slab(_))
}
