//! What is free, written down for the next process, and worked out again where that was not done.

use super::block::FreeEnds;
use super::classes::{CLASSES, NotEmpty};
use super::{NONE, SegregatedFits, Space};
use crate::memory::sum_of_many;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// The part of a [`SegregatedFits`] that fits into a few words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// See [`SegregatedFits`].
    pub top: u64,
    /// See [`SegregatedFits`].
    pub free_words: u64,
    /// See [`SegregatedFits`].
    pub cursor: u64,
    /// The sum of the other words.
    pub sum: u64,
}

/// Words of the lists.
const LIST_WORDS: usize = CLASSES.div_ceil(2);

impl SegregatedFits {
    /// Words beside the outline that are written down for a space of this many words.
    pub fn note_words(space_words: usize) -> usize {
        LIST_WORDS + space_words.div_ceil(64)
    }

    /// Writes down what is free, and returns the outline.
    pub fn write_down(&self, notes: &[AtomicU64]) -> Outline {
        let lists = self.lists.chunks(2).map(|pair| {
            let upper = pair.get(1).copied().unwrap_or(NONE);
            u64::from(upper) << 32 | u64::from(pair[0])
        });
        for (note, word) in notes.iter().zip(lists.chain(self.free_ends.words())) {
            note.store(word, Relaxed);
        }
        Outline {
            top: self.top as u64,
            free_words: self.free_words as u64,
            cursor: self.cursor as u64,
            sum: sum_of_many(notes.iter().map(|note| note.load(Relaxed))),
        }
    }

    /// What was written down of a heap that ends before `limit`. None if that cannot be: then the
    /// notes were damaged.
    pub fn of_notes(
        notes: &[AtomicU64],
        outline: &Outline,
        limit: usize,
    ) -> Option<SegregatedFits> {
        let word = |note: &AtomicU64| note.load(Relaxed);
        let Outline {
            top,
            free_words,
            cursor,
            sum,
        } = *outline;
        if sum_of_many(notes.iter().map(word)) != sum || top > limit as u64 || cursor > top {
            return None;
        }
        let (lists, free_ends) = notes.split_at(LIST_WORDS);
        let firsts = lists.iter().flat_map(|note| {
            let pair = note.load(Relaxed);
            [pair as u32, (pair >> 32) as u32]
        });
        let (mut lists, mut not_empty) = (Box::new([NONE; CLASSES]), NotEmpty::none());
        for (class, first) in firsts.take(CLASSES).enumerate() {
            lists[class] = first;
            if first != NONE {
                if u64::from(first) >= top {
                    return None;
                }
                not_empty.set(class);
            }
        }
        Some(SegregatedFits {
            lists,
            not_empty,
            free_ends: FreeEnds::of_words(free_ends.iter().map(word)),
            top: top as usize,
            free_words: free_words as usize,
            cursor: cursor as usize,
        })
    }

    /// What is free in a heap in which places are in use alone that [`keep`](Self::keep) is told
    /// of.
    pub fn begin_again(&mut self) {
        self.reset();
        self.free_ends.clear_all();
    }

    /// A place is in use, which begins at the top or after it. What lies before it is free.
    pub fn keep(&mut self, space: &Space, at: usize, words: usize) {
        if at > self.top {
            self.put(space, self.top, at - self.top);
        }
        self.top = at + words;
    }
}
