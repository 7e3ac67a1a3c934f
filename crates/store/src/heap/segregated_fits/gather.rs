//! Gathering free space that is there, but in pieces: the items between some free blocks are slid
//! together. The paper's heap only ever joins free neighbours; filled to nine tenths with items of
//! many sizes it comes to refuse the largest of them, although there is room for hundreds.

use super::block::NONE;
use super::{SegregatedFits, Space};
use crate::heap::Item;

/// Free blocks, from the largest on, that are tried as the beginning of a gathering.
const BEGINNINGS_MAX: usize = 16;
/// Items that are slid for one gathering at most, and words of them: some hundred microseconds.
const ITEMS_MAX: usize = 1 << 10;
/// See [`ITEMS_MAX`].
const WORDS_MAX: usize = 1 << 17;

/// A stretch of the heap that is neither free nor an item's, and grows to the right.
#[derive(Debug)]
pub struct Gathering {
    start: usize,
    end: usize,
    wanted: usize,
}

/// What lies behind a gathering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// An item, to be slid from its position to another, which is further left.
    Item {
        /// Where it lies.
        from: usize,
        /// Where it is to lie.
        to: usize,
    },
    /// Nothing that matters: there is enough.
    Enough,
}

impl SegregatedFits {
    /// Begins to gather `wanted` words, where the fewest words have to be moved for it; `limit` as
    /// in [`allocate`](Self::allocate). None if there is too little free space, or too much in
    /// between.
    pub fn gather(&mut self, space: &Space, wanted: usize, limit: usize) -> Option<Gathering> {
        if self.free_words + limit.saturating_sub(self.top) < wanted {
            return None;
        }
        let link = |at: u32| (at != NONE).then_some(at);
        let blocks = self.not_empty.descending().flat_map(|class| {
            std::iter::successors(link(self.lists[class]), move |&at| link(space.next(at)))
        });
        let (mut start, mut least) = (None, WORDS_MAX);
        for at in blocks.take(BEGINNINGS_MAX).map(|at| at as usize) {
            if let Some(cost) = self.cost(space, at, wanted, limit, least) {
                (start, least) = (Some(at), cost);
            }
        }
        let start = start?;
        let end = start + self.claim(space, start)?;
        Some(Gathering { start, end, wanted })
    }

    /// Words of the items among which `wanted` free words lie from a free block on, if they are
    /// fewer than `least`.
    fn cost(
        &self,
        space: &Space,
        start: usize,
        wanted: usize,
        limit: usize,
        least: usize,
    ) -> Option<usize> {
        let (mut at, mut free, mut cost, mut items) = (start, 0, 0, 0);
        while free < wanted {
            if at == self.top {
                free += limit.saturating_sub(at);
                return (free >= wanted).then_some(cost);
            }
            at += match space.free_words_at(at) {
                Some(words) => {
                    free += words;
                    words
                }
                None => {
                    let words = item_words(space, at);
                    (cost, items) = (cost + words, items + 1);
                    if cost >= least || items > ITEMS_MAX {
                        return None;
                    }
                    words
                }
            };
        }
        Some(cost)
    }

    /// Takes up the free space behind the stretch, and says what comes then.
    pub fn behind(&mut self, space: &Space, gathering: &mut Gathering) -> Behind {
        while gathering.end - gathering.start < gathering.wanted && gathering.end < self.top {
            match self.claim(space, gathering.end) {
                Some(words) => gathering.end += words,
                None => {
                    return Behind::Item {
                        from: gathering.end,
                        to: gathering.start,
                    };
                }
            }
        }
        Behind::Enough
    }

    /// The item behind the stretch lies at its beginning now.
    pub fn slid(&mut self, gathering: &mut Gathering, words: usize) {
        gathering.start += words;
        gathering.end += words;
        self.free_ends.clear(gathering.start);
    }

    /// Frees what has been gathered.
    pub fn finish(&mut self, space: &Space, gathering: Gathering) {
        let words = gathering.end - gathering.start;
        self.free(space, gathering.start, words);
    }

    /// Takes the free block at a place, if there is one, and gives its words.
    fn claim(&mut self, space: &Space, at: usize) -> Option<usize> {
        let words = space.free_words_at(at)?;
        self.unlink(space, at, words);
        self.free_ends.clear(at + words);
        Some(words)
    }
}

fn item_words(space: &Space, at: usize) -> usize {
    let item = Item::read(space.place(at)).expect("an item where none is free");
    item.words()
}
