//! A bound on the work of one request: how many items an eviction rule may keep for it.
//!
//! A rule of the CLOCK kind goes past every item that was used. If all were used, it would go
//! through the whole memory for one store. So every request has one budget, whichever rule and
//! table it meets and however many logs it makes room in; once that is spent, live items leave even
//! if the rule would keep them. Items that are dead cost nothing: each gives back the memory that
//! it took.

use glimmer_base::limits::{
    BYTES_PER_SPARED_ITEM, SPARED_BYTES_MAX, SPARED_BYTES_PER_BYTE, SPARED_ITEMS_MAX,
    SPARED_SLABS_MAX,
};

/// What is left to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    items: u64,
    words: u64,
    slabs: usize,
}

impl Budget {
    /// The budget of a request that wants this many words.
    #[inline]
    pub fn for_words(words: u64) -> Budget {
        Budget {
            items: SPARED_ITEMS_MAX as u64 + words / (BYTES_PER_SPARED_ITEM / 8) as u64,
            words: (SPARED_BYTES_MAX / 8) as u64 + words * SPARED_BYTES_PER_BYTE as u64,
            slabs: SPARED_SLABS_MAX,
        }
    }

    /// Pays for an item that is spared, which copies `words` words; false if there is too little
    /// left, and the item has to leave.
    #[inline(always)]
    pub fn spare_item(&mut self, words: u64) -> bool {
        let is_enough = self.items > 0 && words <= self.words;
        if is_enough {
            self.items -= 1;
            self.words -= words;
        }
        is_enough
    }

    /// Pays for a slab that is spared; false if there is nothing left, and the slab has to be
    /// taken.
    pub fn spare_slab(&mut self) -> bool {
        let is_enough = self.slabs > 0;
        self.slabs = self.slabs.saturating_sub(1);
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_words_and_slabs_run_out_apart() {
        let mut budget = Budget::for_words(0);
        let spared = (0..).take_while(|_| budget.spare_item(1)).count();
        assert_eq!(spared, SPARED_ITEMS_MAX);
        assert_eq!(
            (0..).take_while(|_| budget.spare_slab()).count(),
            SPARED_SLABS_MAX
        );
        let mut budget = Budget::for_words(1_000);
        let words = (SPARED_BYTES_MAX / 8 + 1_000 * SPARED_BYTES_PER_BYTE) as u64;
        assert!(!budget.spare_item(words + 1));
        assert!(budget.spare_item(words) && !budget.spare_item(1) && budget.spare_item(0));
    }
}
