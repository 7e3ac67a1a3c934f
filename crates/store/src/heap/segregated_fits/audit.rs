//! Walking the whole heap to see that everything it promises holds.

use super::block::NONE;
use super::classes::{CLASSES, LISTED_WORDS_MIN, class_of};
use super::{SegregatedFits, Space};
use crate::heap::Item;
use std::collections::BTreeMap;

/// What a walk has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Words of each item in use, by its position.
    pub items: BTreeMap<usize, usize>,
    /// Words of each place that is reserved, by its position.
    pub reserved: BTreeMap<usize, usize>,
    /// Words of each free block below the top, by its position.
    pub free: BTreeMap<usize, usize>,
}

impl SegregatedFits {
    /// Walks from the bottom to the top, and through every list.
    ///
    /// # Panics
    ///
    /// If a word is not exactly one of item, reserved place and free block, if free blocks lie side
    /// by side or below the top's edge, if the cursor is inside of one, if a boundary tag is wrong,
    /// or if the lists do not hold every free block once and in its class.
    pub fn audit(&self, space: &Space) -> Usage {
        let mut usage = Usage::default();
        let (mut at, mut after_free, mut cursor_is_met) = (0, false, self.cursor == self.top);
        while at < self.top {
            cursor_is_met |= at == self.cursor;
            assert_eq!(self.free_ends.before(at), after_free, "the tag before {at}");
            let words = match space.free_words_at(at) {
                Some(words) => {
                    assert!(!after_free, "free neighbours at {at}");
                    assert_eq!(space.free_words_before(at + words), words, "tag of {at}");
                    usage.free.insert(at, words);
                    after_free = true;
                    words
                }
                None if let Some(words) = space.reserved_words_at(at) => {
                    usage.reserved.insert(at, words);
                    after_free = false;
                    words
                }
                None => {
                    let item = Item::read(space.place(at)).expect("an item where none is free");
                    let words = item.words();
                    usage.items.insert(at, words);
                    after_free = false;
                    words
                }
            };
            assert!(words > 0, "a block without words at {at}");
            at += words;
        }
        assert_eq!(at, self.top, "the last block ends at the top");
        assert!(cursor_is_met, "nothing begins at {}", self.cursor);
        assert!(!after_free, "a free block lies at the top");
        assert_eq!(self.free_words, usage.free.values().sum::<usize>());
        self.audit_lists(space, &usage);
        usage
    }

    fn audit_lists(&self, space: &Space, usage: &Usage) {
        let mut listed = 0;
        for class in 0..CLASSES {
            let (mut at, mut previous) = (self.lists[class], NONE);
            assert_eq!(at != NONE, self.not_empty.from(class) == Some(class));
            while at != NONE {
                let words = usage.free.get(&(at as usize)).copied();
                let words = words.expect("a list holds free blocks");
                assert_eq!(class_of(words), class, "class of {at}");
                assert_eq!(space.previous(at), previous, "link back from {at}");
                listed += 1;
                assert!(listed <= usage.free.len(), "a list runs in a circle");
                (previous, at) = (at, space.next(at));
            }
        }
        let large_enough = |words: &&usize| **words >= LISTED_WORDS_MIN;
        assert_eq!(listed, usage.free.values().filter(large_enough).count());
    }
}
