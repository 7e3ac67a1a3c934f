//! Compaction: the items between free blocks are slid to the left, so that the free space comes
//! together after them. The paper's heap only ever joins free
//! neighbours; filled to nine tenths with items of many sizes it comes to refuse the largest of
//! them, although there is room for hundreds.
//!
//! Where one request can afford it, a gathering begins where it costs least. Where none can, many
//! requests share one that goes through the whole heap: each begins at the *cursor*, where the last
//! one left its free block, and slides the items that follow. A round from the bottom to the top
//! brings all free space together, so that their number is bounded.
//!
//! Between two requests everything is as it always is: what has been gathered is an ordinary free
//! block, which others may take of, and the cursor is only a place where a block or an item begins.

use super::block::NONE;
use super::effort::{Effort, PASSING, sliding};
use super::{SegregatedFits, Space};
use crate::heap::Item;
use crate::work;

/// Free blocks, from the largest on, that are tried as the beginning of a gathering.
const BEGINNINGS_MAX: usize = 16;

/// A stretch of the heap that is neither free nor an item's, and grows to the right.
#[derive(Debug)]
pub struct Gathering {
    began: usize,
    start: usize,
    end: usize,
    wanted: usize,
}

/// What follows a gathering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// An item, to be slid from its position to another, which is further left or the same.
    Item {
        /// Where it lies.
        from: usize,
        /// Where it is to lie.
        to: usize,
    },
    /// Nothing that matters: there is enough, or the heap ends here.
    Enough,
}

impl SegregatedFits {
    /// Words that are free, together or not; `limit` as in [`allocate`](Self::allocate).
    pub fn free_words(&self, limit: usize) -> usize {
        self.free_words + limit.saturating_sub(self.top)
    }

    /// Begins to gather `wanted` words where the least has to be done for it, if that is less than
    /// what `most` allows; `limit` as in [`allocate`](Self::allocate). Looking for it is paid for
    /// of `search`.
    pub fn gather(
        &mut self,
        space: &Space,
        wanted: usize,
        limit: usize,
        most: Effort,
        search: &mut Effort,
    ) -> Option<Gathering> {
        let link = |at: u32| (at != NONE).then_some(at);
        let blocks = self.not_empty.descending().flat_map(|class| {
            std::iter::successors(link(self.lists[class]), move |&at| link(space.next(at)))
        });
        let (mut start, mut least) = (None, most.left());
        for at in blocks.take(BEGINNINGS_MAX).map(|at| at as usize) {
            if let Some(cost) = self.cost(space, at, wanted, limit, least, search) {
                (start, least) = (Some(at), cost);
            }
        }
        Some(Gathering::at(start?, wanted))
    }

    /// What it costs to slide the items among which `wanted` free words lie from a free block on,
    /// if that is less than `least`.
    fn cost(
        &self,
        space: &Space,
        start: usize,
        wanted: usize,
        limit: usize,
        least: usize,
        search: &mut Effort,
    ) -> Option<usize> {
        let (mut at, mut free, mut cost) = (start, 0, 0);
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
                // It cannot be slid.
                None if space.reserved_words_at(at).is_some() => return None,
                None => {
                    let words = item_words(space, at);
                    search.spend(PASSING);
                    cost += sliding(words);
                    if cost >= least || search.is_spent() {
                        return None;
                    }
                    words
                }
            };
        }
        Some(cost)
    }

    /// Goes on with the gathering that all requests share, until `wanted` words are together or the
    /// heap ends.
    pub fn resume(&self, wanted: usize) -> Gathering {
        Gathering::at(self.cursor, wanted)
    }

    /// Passes the block at the cursor, and says where the item lies that it is, if it is one. None
    /// at the top; the cursor then goes back to the bottom.
    pub fn pass(&mut self, space: &Space) -> Option<Option<usize>> {
        let at = self.cursor;
        if at == self.top {
            self.cursor = 0;
            return None;
        }
        let no_item = (space.free_words_at(at)).or_else(|| space.reserved_words_at(at));
        self.cursor += no_item.unwrap_or_else(|| item_words(space, at));
        Some(no_item.is_none().then_some(at))
    }

    /// Takes up the free space after the stretch, and says what comes then.
    pub fn behind(&mut self, space: &Space, gathering: &mut Gathering) -> Behind {
        while gathering.end - gathering.start < gathering.wanted && gathering.end < self.top {
            match self.claim(space, gathering.end) {
                Some(words) => gathering.end += words,
                None if let Some(words) = space.reserved_words_at(gathering.end) => {
                    self.step_over(space, gathering, words);
                }
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

    /// Frees what has been gathered, and goes on after a place that is reserved.
    #[cold]
    fn step_over(&mut self, space: &Space, gathering: &mut Gathering, reserved_words: usize) {
        let (began, start, end) = (gathering.began, gathering.start, gathering.end);
        let next = end + reserved_words;
        if (began..=end).contains(&self.cursor) {
            self.cursor = next;
        }
        if end > start {
            self.free(space, start, end - start);
        }
        *gathering = Gathering::at(next, gathering.wanted);
    }

    /// Where up to `count` items lie from `at` on.
    pub fn items_from<'a>(
        &'a self,
        space: &'a Space,
        at: usize,
        count: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let mut next = at;
        let blocks = std::iter::from_fn(move || {
            let at = next;
            let free = (at < self.top).then(|| space.free_words_at(at))?;
            let no_item = free.or_else(|| space.reserved_words_at(at));
            next += no_item.unwrap_or_else(|| item_words(space, at));
            Some((at, no_item.is_none()))
        });
        let items = blocks.take(count).filter(|&(_, is_item)| is_item);
        items.map(|(at, _)| at)
    }

    /// The item after the stretch lies at its beginning now.
    pub fn slid(&mut self, gathering: &mut Gathering, words: usize) {
        gathering.start += words;
        gathering.end += words;
        self.free_ends.clear(gathering.start);
    }

    /// Frees what has been gathered, and moves the cursor along if the stretch has come over it.
    /// Says whether the heap ends there; the shared gathering then begins at the bottom again.
    pub fn finish(&mut self, space: &Space, gathering: Gathering) -> bool {
        let Gathering {
            began, start, end, ..
        } = gathering;
        let is_shared = (began..=end).contains(&self.cursor);
        if is_shared {
            self.cursor = start;
        }
        let at_top = end == self.top;
        if end > start {
            self.free(space, start, end - start);
        }
        if is_shared && at_top {
            self.cursor = 0;
        }
        at_top
    }

    /// Takes the free block at a place, if there is one, and gives its words.
    fn claim(&mut self, space: &Space, at: usize) -> Option<usize> {
        let words = space.free_words_at(at)?;
        self.unlink(space, at, words);
        self.free_ends.clear(at + words);
        Some(words)
    }
}

impl Gathering {
    fn at(start: usize, wanted: usize) -> Gathering {
        Gathering {
            began: start,
            start,
            end: start,
            wanted,
        }
    }
}

fn item_words(space: &Space, at: usize) -> usize {
    work::examined(1);
    let item = Item::read(space.place(at)).expect("an item where none is free");
    item.words()
}
