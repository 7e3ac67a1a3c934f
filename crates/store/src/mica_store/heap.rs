//! Where items lie, and which entries are live.

use super::name::{Generation, Name};
use super::{Found, Shared};
use crate::heap::segregated_fits::Space;
use crate::index::Entry;
use crate::index::chained::ChainedIndex;
use crate::memory::Words;
use crate::table::Heap;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, in_program_order, weakened};
use std::ops::Range;

/// The memory of items. The index lies at the end of the same memory.
pub struct Items {
    pub(super) space: Space,
    /// Entries of another generation name nothing.
    pub(super) generation: AtomicU64,
}

impl Items {
    #[inline(always)]
    pub(super) fn generation(&self) -> Generation {
        Generation::from_raw(self.generation.load(Relaxed))
    }
}

impl Heap for Items {
    type Index = ChainedIndex;

    const OVERFLOWS: bool = true;

    /// A place is called after its first word.
    fn loan_name(&self, entry: Entry) -> u64 {
        Name::of(entry).at as u64
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.space.item_words_max()
    }

    /// No flush has come over a live item.
    #[inline(always)]
    fn is_live(&self, entry: Entry) -> bool {
        !entry.is_empty() && self.is_tagged_live(entry)
    }

    #[inline(always)]
    fn is_tagged_live(&self, entry: Entry) -> bool {
        Name::of(entry).generation == self.generation()
    }

    #[inline(always)]
    fn is_still_live(&self, entry: Entry) -> bool {
        weakened("generation_recheck") || Name::of(entry).generation == self.generation()
    }

    #[inline(always)]
    fn words(&self, entry: Entry) -> Words<'_> {
        self.space.place(Name::of(entry).at)
    }

    #[inline(always)]
    fn prefetch(&self, entry: Entry, word: usize) {
        self.space.prefetch(Name::of(entry).at + word);
    }

    fn bytes(&self, index: &ChainedIndex) -> u64 {
        8 * index.border() as u64
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        vec![self.space.addresses()]
    }
}

impl Shared {
    /// Nothing that was stored before is live any more. A file knows of that before the memory is
    /// stored to again.
    pub(super) fn begin_generation(&self) {
        let generation = self.heap.generation().next().raw();
        self.heap.generation.store(generation, Relaxed);
        if let Some(record) = self.index.record() {
            record.generation().store(generation, Relaxed);
            in_program_order();
        }
    }

    #[inline(always)]
    pub(super) fn space(&self) -> &Space {
        &self.heap.space
    }

    /// Makes the place of an item that has left the index, or is being changed, free to be stored
    /// to: its value may be lent (see [`Loans`](crate::table::Loans)).
    #[inline(always)]
    pub(super) fn give_up(&self, at: usize, words: usize) {
        if !weakened("store_loans") {
            self.common.loans.give_up_item(at as u64, words);
        }
    }
}

impl Found<'_> {
    /// Where in the heap the item lies.
    #[inline(always)]
    pub(super) fn at(&self) -> usize {
        Name::of(self.entry).at
    }
}
