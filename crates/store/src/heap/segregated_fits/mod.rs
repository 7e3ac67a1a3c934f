//! Segregated fits (MICA §4.3.3): one space for all sizes, a list of free blocks for every size
//! class, the smallest class with space found by a bitmap, remainders put back, and free neighbours
//! joined at once.
//!
//! The heap is two things. The [`Space`] is the memory, which optimistic readers may be looking at
//! while it is given to others: all of it is relaxed atomic words. The [`SegregatedFits`] says what
//! is free, and only the writer has it.
//!
//! Blocks begin at the bottom; what was never used, or has become free up to there again, is
//! *above the top* and in no list. The writer hands in how far the top may rise, so that the memory
//! above it can be put to other use for as long as items do not want it.

mod audit;
mod block;
mod classes;
mod effort;
mod gather;
mod persist;

pub use audit::Usage;
pub use effort::{DROPPING, Effort, PASSING, sliding};
pub use gather::{Behind, Gathering};
pub use persist::Outline;

use crate::memory::{Words, ZeroedSlice};
use block::{FreeEnds, NONE};
use classes::{CLASSES, LISTED_WORDS_MIN, NotEmpty, class_holding, class_of};
use glimmer_base::sync::AtomicU64;
use std::ops::Range;

/// Most words of a heap: positions are kept in 32 bits.
pub const HEAP_WORDS_MAX: usize = u32::MAX as usize;

/// Blocks that are looked at in a class that may or may not hold enough.
const LOOKED_AT_MAX: usize = 8;

/// The memory in which items lie.
pub struct Space {
    words: ZeroedSlice<AtomicU64>,
    item_words_max: usize,
}

impl Space {
    /// A heap's view of `words`, for items of at most `item_words_max` words.
    pub fn new(words: ZeroedSlice<AtomicU64>, item_words_max: usize) -> Space {
        assert!(words.len() <= HEAP_WORDS_MAX && words.len() >= LISTED_WORDS_MIN);
        Space {
            words,
            item_words_max,
        }
    }

    /// Words of the heap.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Words of the largest item.
    #[inline(always)]
    pub fn item_words_max(&self) -> usize {
        self.item_words_max
    }

    /// The place of an item at a position: as long as the largest item or the heap. Any position
    /// will do: a racing reader may take one from memory that no longer is an entry.
    #[inline(always)]
    pub fn place(&self, at: usize) -> Words<'_> {
        let at = at.min(self.words.len() - LISTED_WORDS_MIN);
        let end = (at + self.item_words_max).min(self.words.len());
        Words::of(&self.words[at..end])
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.words.addresses()
    }

    /// Fetches the cache line of a position without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        self.words.prefetch(at);
    }
}

/// What is free.
pub struct SegregatedFits {
    /// The first block of each class.
    lists: Box<[u32; CLASSES]>,
    not_empty: NotEmpty,
    free_ends: FreeEnds,
    /// The end of the last block.
    top: usize,
    /// Words of all free blocks.
    free_words: usize,
    /// Where the shared gathering goes on: an item or a free block begins there, or it is the top.
    cursor: usize,
}

impl SegregatedFits {
    /// Everything in `space` is free.
    pub fn new(space: &Space) -> SegregatedFits {
        SegregatedFits {
            lists: Box::new([NONE; CLASSES]),
            not_empty: NotEmpty::none(),
            free_ends: FreeEnds::new(space.words.len()),
            top: 0,
            free_words: 0,
            cursor: 0,
        }
    }

    /// Everything is free again, in a time that does not depend on how much that is.
    pub fn reset(&mut self) {
        self.lists.fill(NONE);
        self.not_empty = NotEmpty::none();
        self.top = 0;
        self.free_words = 0;
        self.cursor = 0;
    }

    /// The end of the last block in use: from here on the heap needs nothing.
    #[inline(always)]
    pub fn top(&self) -> usize {
        self.top
    }

    /// A place for `words` words that ends before `limit`, if the heap has one.
    ///
    /// Who writes there overwrites what racing readers may be reading: a release fence has to lie
    /// between the removal of the last item from its index and this call.
    #[inline(always)]
    pub fn allocate(&mut self, space: &Space, words: usize, limit: usize) -> Option<usize> {
        let at = match self.not_empty.from(class_holding(words)) {
            Some(class) => self.take(space, self.lists[class], words),
            None => match self.look_among_unsure(space, words) {
                Some(at) => self.take(space, at, words),
                None => {
                    let at = self.top;
                    if at + words > limit {
                        return None;
                    }
                    self.top = at + words;
                    at
                }
            },
        };
        self.free_ends.clear(at + words);
        Some(at)
    }

    /// Whether [`allocate`](Self::allocate) would find a place.
    pub fn has_room(&self, space: &Space, words: usize, limit: usize) -> bool {
        self.top + words <= limit
            || self.not_empty.from(class_holding(words)).is_some()
            || self.look_among_unsure(space, words).is_some()
    }

    /// Takes a block out of its list, and puts back what is more than `words` of it.
    #[inline(always)]
    fn take(&mut self, space: &Space, at: u32, words: usize) -> usize {
        let block = at as usize;
        let whole = space
            .free_words_at(block)
            .expect("a list holds free blocks");
        self.unlink(space, block, whole);
        if whole > words {
            self.put(space, block + words, whole - words);
        }
        block
    }

    /// A block that is large enough, in a class of which only some are.
    #[inline(never)]
    fn look_among_unsure(&self, space: &Space, words: usize) -> Option<u32> {
        let class = class_of(words.max(LISTED_WORDS_MIN));
        if class == class_holding(words) {
            return None;
        }
        let mut at = self.lists[class];
        for _ in 0..LOOKED_AT_MAX {
            if at == NONE {
                break;
            }
            if space.free_words_at(at as usize)? >= words {
                return Some(at);
            }
            at = space.next(at);
        }
        None
    }

    /// Frees a place and joins it with what is free on either side.
    #[inline(always)]
    pub fn free(&mut self, space: &Space, at: usize, words: usize) {
        let (start, end) = self.joined(space, at, words);
        if start < at {
            self.unlink(space, start, at - start);
        }
        if end > at + words {
            self.unlink(space, at + words, end - at - words);
        }
        if start < self.cursor && self.cursor <= end {
            self.cursor = start;
        }
        if end == self.top {
            self.top = start;
        } else {
            self.put(space, start, end - start);
        }
    }

    /// Frees all but the first `kept` words of a place.
    #[inline(always)]
    pub fn shorten(&mut self, space: &Space, at: usize, words: usize, kept: usize) {
        self.free_ends.clear(at + kept);
        self.free(space, at + kept, words - kept);
    }

    /// Makes a place in use longer, by what is free right after it; says whether that is enough.
    /// `limit` as in [`allocate`](Self::allocate), and who writes there has to know what is said
    /// there.
    pub fn lengthen(
        &mut self,
        space: &Space,
        (at, words): (usize, usize),
        wanted: usize,
        limit: usize,
    ) -> bool {
        let (old_end, end) = (at + words, at + wanted);
        if old_end == self.top {
            if end > limit {
                return false;
            }
            self.top = end;
        } else {
            let free = space.free_words_at(old_end).unwrap_or(0);
            if free < wanted - words {
                return false;
            }
            self.unlink(space, old_end, free);
            if old_end + free > end {
                self.put(space, end, old_end + free - end);
            }
        }
        self.free_ends.clear(end);
        if (old_end..end).contains(&self.cursor) {
            self.cursor = end;
        }
        true
    }

    /// Takes what is free on either side of a place in use, and says from where to where nothing
    /// else is in use now. Nothing is written: what lies there may be moved within.
    /// [`settle`](Self::settle) has to follow.
    pub fn absorb(&mut self, space: &Space, (at, words): (usize, usize)) -> Range<usize> {
        let (start, end) = self.joined(space, at, words);
        if start < at {
            self.unlink(space, start, at - start);
        }
        if end > at + words {
            self.unlink(space, at + words, end - at - words);
            self.free_ends.clear(end);
        }
        if start < self.cursor && self.cursor <= end {
            self.cursor = start;
        }
        start..end
    }

    /// Ends what [`absorb`](Self::absorb) has begun: the first `words` words are in use, the others
    /// are free. Only the last of the heap may take more than was absorbed, as far as
    /// [`would_hold`](Self::would_hold) has said.
    pub fn settle(&mut self, space: &Space, joined: Range<usize>, words: usize) {
        let end = joined.start + words;
        self.free_ends.clear(end);
        if joined.end == self.top {
            self.top = end;
        } else if end < joined.end {
            self.put(space, end, joined.end - end);
        }
    }

    /// From where to where there would be nothing in use if the place were freed.
    #[inline(always)]
    fn joined(&self, space: &Space, at: usize, words: usize) -> (usize, usize) {
        let mut start = at;
        if self.free_ends.before(at) {
            start -= space.free_words_before(at);
        }
        let mut end = at + words;
        if end < self.top {
            end += space.free_words_at(end).unwrap_or(0);
        }
        (start, end)
    }

    /// Whether freeing the place would leave a free block of `wanted` words there, `limit` as in
    /// [`allocate`](Self::allocate).
    pub fn would_hold(
        &self,
        space: &Space,
        (at, words): (usize, usize),
        wanted: usize,
        limit: usize,
    ) -> bool {
        let (start, end) = self.joined(space, at, words);
        let end = if end == self.top { limit.max(end) } else { end };
        end - start >= wanted
    }

    /// Makes a free block and puts it into its list.
    #[inline(always)]
    fn put(&mut self, space: &Space, at: usize, words: usize) {
        self.free_ends.set(at + words);
        self.free_words += words;
        space.write_free(at, words);
        if words < LISTED_WORDS_MIN {
            return;
        }
        let class = class_of(words);
        let first = self.lists[class];
        if first == NONE {
            self.not_empty.set(class);
        } else {
            space.set_next(at as u32, first);
            space.set_previous(first, at as u32);
        }
        self.lists[class] = at as u32;
    }

    /// Takes a free block out of its list.
    #[inline(always)]
    fn unlink(&mut self, space: &Space, at: usize, words: usize) {
        self.free_words -= words;
        if words < LISTED_WORDS_MIN {
            return;
        }
        let (next, previous) = (space.next(at as u32), space.previous(at as u32));
        if next != NONE {
            space.set_previous(next, previous);
        }
        if previous != NONE {
            space.set_next(previous, next);
            return;
        }
        let class = class_of(words);
        self.lists[class] = next;
        if next == NONE {
            self.not_empty.clear(class);
        }
    }
}
