//! A bounded view of words that others may be changing: what a heap gives out of one item's place.

use glimmer_base::sync::AtomicU64;

/// A run of words somewhere in a heap. All that reads or writes items goes through this, whichever
/// heap they lie in; nothing outside the run can be reached.
#[derive(Clone, Copy)]
pub struct Words<'a>(&'a [AtomicU64]);

impl<'a> Words<'a> {
    /// A view of a slice.
    #[inline(always)]
    pub fn of(words: &'a [AtomicU64]) -> Words<'a> {
        Words(words)
    }

    /// Words in the view.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "no item is without words")]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Where the first word lies in memory.
    pub(crate) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The word at a place below [`len`](Words::len).
    #[inline(always)]
    pub fn word(self, at: usize) -> &'a AtomicU64 {
        &self.0[at]
    }

    /// `count` words from a place on.
    #[inline(always)]
    pub fn range(self, at: usize, count: usize) -> &'a [AtomicU64] {
        &self.0[at..at + count]
    }
}
