//! A bound on the work of one request: how many items an eviction rule may keep for it.
//!
//! A rule of the CLOCK kind goes past every item that was used. If all were used, it would go
//! through the whole memory for one store. So every request has one budget, whichever rule and
//! table it meets and however many logs it makes room in; once that is spent, live items leave even
//! if the rule would keep them. Items that are dead cost nothing: each gives back the memory that
//! it took.
//!
//! Room for a large item is made in steps. What a step passes is bounded apart from that, in words
//! and in items, whatever becomes of the items.

use glimmer_base::limits::{
    BYTES_PER_SPARED_ITEM, SPARED_BYTES_MAX, SPARED_BYTES_PER_BYTE, SPARED_ITEMS_MAX,
    SPARED_SLABS_MAX,
};

/// Words of a spared item that are copied in about the time that it takes to pass an item.
const WORDS_PER_PASSED_ITEM: u64 = 64;

/// What is left to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    items: u64,
    words: u64,
    slabs: usize,
    step: StepBudget,
}

/// What one step may pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepBudget {
    /// Words.
    pub words: u64,
    /// Items, beside those in `free_words`.
    pub items: u64,
    /// Words in which items are not counted.
    pub free_words: u64,
}

impl Budget {
    /// The budget of a request that wants this many words.
    #[inline]
    pub fn for_words(words: u64) -> Budget {
        Budget {
            items: SPARED_ITEMS_MAX as u64 + words / (BYTES_PER_SPARED_ITEM / 8) as u64,
            words: (SPARED_BYTES_MAX / 8) as u64 + words * SPARED_BYTES_PER_BYTE as u64,
            slabs: SPARED_SLABS_MAX,
            step: StepBudget::default(),
        }
    }

    /// A step begins.
    pub fn begin_step(&mut self, step: StepBudget) {
        self.step = step;
    }

    /// Pays for something of this many words that is passed in a step.
    #[inline(always)]
    pub fn pass_in_step(&mut self, words: u64) {
        let step = &mut self.step;
        step.words = step.words.saturating_sub(words);
        match step.free_words {
            0 => step.items = step.items.saturating_sub(1),
            free => step.free_words = free.saturating_sub(words),
        }
    }

    /// Pays for the copy of an item that is spared in a step.
    #[inline(always)]
    pub fn copy_in_step(&mut self, words: u64) {
        let step = &mut self.step;
        step.items = step.items.saturating_sub(words / WORDS_PER_PASSED_ITEM);
    }

    /// Whether the step is to pass nothing more.
    #[inline(always)]
    pub fn is_step_over(&self) -> bool {
        self.step.words == 0 || self.step.items == 0
    }

    /// What is left to the step.
    pub fn step(&self) -> StepBudget {
        self.step
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

    #[test]
    fn a_step_ends_after_its_words_or_its_items() {
        let mut budget = Budget::for_words(0);
        let mut pass = |words, items, free_words, each| {
            budget.begin_step(StepBudget {
                words,
                items,
                free_words,
            });
            let mut passed = 0;
            while !budget.is_step_over() {
                budget.pass_in_step(each);
                passed += 1;
            }
            passed
        };
        assert_eq!(pass(100, 1_000, 0, 3), 34);
        assert_eq!(pass(1_000, 5, 0, 3), 5);
        assert_eq!(pass(1_000, 5, 30, 3), 15, "ten of them are not counted");
        budget.begin_step(StepBudget {
            words: 1_000,
            items: 5,
            free_words: 0,
        });
        budget.copy_in_step(5 * WORDS_PER_PASSED_ITEM);
        assert!(budget.is_step_over());
    }
}
