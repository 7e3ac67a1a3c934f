//! The border between the memory of items and that of the index.

use super::ChainedIndex;
use crate::batches::{GracePeriod, Seat};
use glimmer_base::sync::weakened;

/// Where the memory of items ends, for the writer. When the index
/// shrinks, items have what it leaves only after a [grace period](crate::batches): until then a
/// reader may note a read there.
pub struct Border {
    /// Items may lie before this word. Never beyond where the index begins.
    open: usize,
    /// A grace period, and how far items may go when it is over.
    withheld: Option<(GracePeriod, usize)>,
}

impl Border {
    /// Of an index that no reader has seen yet.
    pub fn of(index: &ChainedIndex) -> Border {
        Border {
            open: index.border(),
            withheld: None,
        }
    }

    /// Items may lie before this word.
    #[inline(always)]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether items have yet to get memory that the index has left.
    #[inline(always)]
    pub fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// Follows the index. To be called whenever it has grown or shrunk, and later from time to time
    /// while memory is [withheld](Self::is_withheld).
    pub fn follow(&mut self, index: &ChainedIndex, seat: &Seat) {
        let border = index.border();
        self.open = self.open.min(border);
        // Where the index has grown again, its memory is not what the grace period was for.
        if let Some((_, to)) = &mut self.withheld {
            *to = border.min(*to);
        }
        loop {
            if let Some((grace, to)) = &mut self.withheld {
                if !grace.is_over(seat) && !weakened("border_withheld") {
                    return;
                }
                self.open = *to;
                self.withheld = None;
            }
            if self.open == border {
                return;
            }
            // The index has shrunk, perhaps further, since the last one began.
            self.withheld = Some((seat.grace_period(), border));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::batches::Batches;
    use crate::index::chained::{BUCKET_WORDS, FreeList};
    use crate::memory::{PagePolicy, ZeroedSlice};

    /// Items do not get the memory of a merged bucket while a batch runs that may have seen it, nor
    /// because an earlier grace period ends after the index has grown there again.
    #[test]
    fn memory_that_the_index_leaves_waits_for_running_batches() {
        let memory = ZeroedSlice::new(16 * BUCKET_WORDS, PagePolicy::Small, None).unwrap();
        let index = ChainedIndex::new(memory, 1, (0, 1));
        let mut border = Border::of(&index);
        let (batches, mut participants) = Batches::new(2);
        let seat = Seat::new(&batches, 2);
        let [first, second] = &mut participants[..] else {
            unreachable!("there are two")
        };
        let mut spares = FreeList::default();
        let all_open = border.open();
        let mut change = |border: &mut Border, grows: bool| {
            let changed = match grows {
                true => index.grow(0, &mut spares, |_| true, true),
                false => index.shrink(&mut spares, |_| true, true),
            };
            assert_eq!(changed, Some(0));
            border.follow(&index, &seat);
        };
        change(&mut border, true);
        let grown = border.open();
        assert!(grown < all_open);

        let batch = first.begin();
        change(&mut border, false);
        assert_eq!(border.open(), grown, "a batch may have seen the bucket");
        change(&mut border, true);
        let later = second.begin();
        change(&mut border, false);
        drop(batch);
        border.follow(&index, &seat);
        assert_eq!(border.open(), grown, "a later batch may have seen it too");
        assert!(border.is_withheld());
        drop(later);
        border.follow(&index, &seat);
        assert_eq!(border.open(), all_open);

        change(&mut border, true);
        change(&mut border, false);
        assert_eq!(border.open(), all_open, "nobody reads");
    }
}
