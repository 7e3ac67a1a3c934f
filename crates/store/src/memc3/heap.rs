//! Where items lie.

use super::Shared;
use crate::heap::Item;
use crate::index::cuckoo::{CuckooIndex, Slot};
use crate::memory::{Pool, Words};
use crate::table::Heap;
use glimmer_base::sync::weakened;
use std::ops::Range;

/// The memory of items: a pool's pages from its beginning on. The index has those at the end.
pub struct Chunks {
    pub(super) pool: Pool,
    pub(super) item_words_max: usize,
}

impl Heap for Chunks {
    type Index = CuckooIndex;

    /// A segment may come to lie on the same page again, its lines with the versions that they had.
    const RECHECKS_FLUSHES: bool = true;

    /// A place is called after its first word.
    fn loan_name(&self, slot: Slot) -> u64 {
        slot.offset() as u64
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.item_words_max
    }

    /// A slot with a tag names an item.
    #[inline(always)]
    fn is_live(&self, _slot: Slot) -> bool {
        true
    }

    #[inline(always)]
    fn is_tagged_live(&self, _slot: Slot) -> bool {
        true
    }

    /// The versions of lines cover the items that their slots name.
    #[inline(always)]
    fn is_still_live(&self, _slot: Slot) -> bool {
        true
    }

    #[inline(always)]
    fn words(&self, slot: Slot) -> Words<'_> {
        self.pool.place(slot.offset(), self.item_words_max)
    }

    #[inline(always)]
    fn prefetch(&self, slot: Slot, word: usize) {
        self.pool.prefetch(slot.offset() + word);
    }

    fn bytes(&self, index: &CuckooIndex) -> u64 {
        let pages = self.pool.pages() as u64 - index.pages.get();
        8 * pages * self.pool.page_words() as u64
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        vec![self.pool.addresses()]
    }
}

impl Shared {
    #[inline(always)]
    pub(super) fn pool(&self) -> &Pool {
        &self.heap.pool
    }

    /// Makes the chunk of an item that no slot names any more, or that is being changed, free to be
    /// stored to: its value may be lent (see [`Loans`](crate::table::Loans)).
    #[inline(always)]
    pub(super) fn give_up_chunk(&self, at: usize, words: usize) {
        if !weakened("memc3_loans") {
            self.common.loans.give_up_item(at as u64, words);
        }
    }

    /// The item at a word, if one lies there.
    #[inline(always)]
    pub(super) fn item_at(&self, at: usize) -> Option<Item<'_>> {
        Item::read(self.heap.words(Slot::new(at)))
    }
}
