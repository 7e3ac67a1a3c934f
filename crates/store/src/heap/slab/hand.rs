//! The hand of CLOCK (MemC3 §4.2), which goes round the chunks of a slab class.

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
