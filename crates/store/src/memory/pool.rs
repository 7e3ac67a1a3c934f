//! Words from the kernel, cut into pages of one size that can be given to one use or another.

use super::{PagePolicy, Words, ZeroedSlice, prefetch_line};
use glimmer_base::sync::AtomicU64;
use std::io;
use std::ops::Range;

/// Words of a cache line.
pub const LINE_WORDS: usize = 8;

/// A number of pages in a row. Places are named by word, counted from the first page's beginning. A
/// clone is the same memory.
#[derive(Clone)]
pub struct Pool {
    words: ZeroedSlice<AtomicU64>,
    page_shift: u32,
}

impl Pool {
    /// `pages` pages of `page_words` words, all zero. No page is touched.
    ///
    /// # Panics
    ///
    /// Unless `page_words` is a power of two and at least a line.
    pub fn new(
        pages: usize,
        page_words: usize,
        policy: PagePolicy,
        node: Option<u32>,
    ) -> io::Result<Pool> {
        Ok(Pool::of(
            ZeroedSlice::new(pages * page_words, policy, node)?,
            page_words,
        ))
    }

    /// These words, in pages of `page_words`.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn of(words: ZeroedSlice<AtomicU64>, page_words: usize) -> Pool {
        assert!(page_words.is_power_of_two() && page_words >= LINE_WORDS);
        Pool {
            words,
            page_shift: page_words.trailing_zeros(),
        }
    }

    /// The number of pages.
    #[inline(always)]
    pub fn pages(&self) -> usize {
        self.words.len() >> self.page_shift
    }

    /// Words of a page.
    #[inline(always)]
    pub fn page_words(&self) -> usize {
        1 << self.page_shift
    }

    /// The first word of a page.
    #[inline(always)]
    pub fn first_word(&self, page: usize) -> usize {
        page << self.page_shift
    }

    /// The page that a word lies in.
    #[inline(always)]
    pub fn page_of(&self, at: usize) -> usize {
        at >> self.page_shift
    }

    /// The words from `at` on, `most` at most; fewer before the pool's end. Any place will do: a
    /// racing reader may take one from memory that no longer is an index.
    #[inline(always)]
    pub fn place(&self, at: usize, most: usize) -> Words<'_> {
        let at = at.min(self.words.len() - LINE_WORDS);
        Words::of(&self.words[at..(at + most).min(self.words.len())])
    }

    /// The line that begins at a word.
    #[inline(always)]
    pub fn line(&self, at: usize) -> &[AtomicU64; LINE_WORDS] {
        self.words[at..at + LINE_WORDS]
            .as_array()
            .expect("the slice is as long as a line")
    }

    /// Fetches the cache line of a word without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        prefetch_line(self.words.as_ptr().wrapping_add(at));
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.words.addresses()
    }
}
