//! Where items begin, as a recovery finds them out: it meets them in the index's order, and wants
//! them in the heap's.

/// A bit for each word of a heap.
pub(crate) struct Begins(Vec<u64>);

impl Begins {
    /// An empty bitmap for a heap of this many words.
    pub fn none(heap_words: usize) -> Begins {
        Begins(vec![0; heap_words.div_ceil(64)])
    }

    /// An item begins at a word. Says whether that is news.
    pub fn note(&mut self, at: usize) -> bool {
        let (word, bit) = (&mut self.0[at / 64], 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// No item begins at a word after all.
    pub fn forget(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    /// Whether an item begins at a word.
    pub fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 != 0
    }

    /// The words at which items begin, in order.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(nth, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * nth + bit)
            })
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_come_in_order() {
        let mut begins = Begins::none(200);
        for at in [199, 0, 64, 63, 7] {
            assert!(begins.note(at) && !begins.note(at) && begins.has(at));
        }
        begins.forget(7);
        assert!(!begins.has(7) && !begins.has(8));
        assert!(begins.places().eq([0, 63, 64, 199]));
    }
}
