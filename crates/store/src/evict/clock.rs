//! CLOCK (MemC3 §4.2): least recently used, approximately, with one bit per item.
//!
//! The items of a slab class stand in a circle, and a hand goes round it. A use of an item sets its
//! bit. The hand clears the bit of an item that was used and evicts the first one that was not. The
//! bits lie in the index slots, whose line a use has just looked at.
//!
//! Memory moves between classes by the same idea: every slab knows when its class's hand last
//! passed it, so the class whose hand has been away from its next slab for longest holds the
//! oldest items.

/// Where the hand of a class points: a slab, by its place in the class's list, and a chunk of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hand {
    /// The slab.
    pub slab: usize,
    /// The chunk.
    pub chunk: usize,
}

impl Hand {
    /// The hand one chunk further, where slabs have `chunks` chunks and the class has `slabs` of
    /// them; says whether it has come to another slab.
    #[inline(always)]
    pub fn advance(&mut self, chunks: usize, slabs: usize) -> bool {
        self.chunk += 1;
        if self.chunk < chunks {
            return false;
        }
        self.chunk = 0;
        self.slab = if self.slab + 1 < slabs {
            self.slab + 1
        } else {
            0
        };
        true
    }
}

/// What the hand does with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The item was used: its bit is cleared and the hand goes on.
    Spare,
    /// It goes.
    Evict,
}

/// The fate of an item that the hand points at.
#[inline(always)]
pub fn verdict(recent: bool) -> Verdict {
    if recent {
        Verdict::Spare
    } else {
        Verdict::Evict
    }
}

/// Whether a class whose hand comes back to its slabs after `own` stored words should rather take
/// the slab of another class, to which its hand has not come back for `other`.
pub fn takes_from(own: u64, other: u64) -> bool {
    other / 2 > own
}

/// Whether a slab about to be taken is left alone once, because most of its items were used.
pub fn spares_slab(used: usize, items: usize) -> bool {
    2 * used > items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hand_goes_round() {
        let mut hand = Hand::default();
        let mut seen = Vec::new();
        for _ in 0..7 {
            seen.push((hand.slab, hand.chunk));
            hand.advance(2, 3);
        }
        assert_eq!(
            seen,
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 0)]
        );
    }
}
