//! Size classes: which list a free block is in, and which lists are not empty.
//!
//! Blocks below [`EXACT_WORDS`] have a class for every size, 8 bytes apart as in the paper. Above
//! that the paper's exact classes would cost more memory than they save (an item limit of 1 MiB
//! would want 131,072 lists in every partition), so 64 classes share each doubling: a block there
//! is at most 1.6% larger than its class says.

/// Words from which on classes are ranges of sizes.
const EXACT_WORDS: usize = 1 << EXACT_BITS;
const EXACT_BITS: u32 = 10;
/// Classes to a doubling of the size, as a power of two.
const STEP_BITS: u32 = 6;
/// The smallest block that is in a list. A block of one word has no room for the links.
pub const LISTED_WORDS_MIN: usize = 2;

const EXACT: usize = EXACT_WORDS - LISTED_WORDS_MIN;
/// Number of classes; sizes go up to 2^32 - 1 words.
pub const CLASSES: usize = EXACT + ((u32::BITS - EXACT_BITS) << STEP_BITS) as usize;

/// The class whose list a block of this size is in.
#[inline(always)]
pub fn class_of(words: usize) -> usize {
    debug_assert!(words >= LISTED_WORDS_MIN);
    if words < EXACT_WORDS {
        return words - LISTED_WORDS_MIN;
    }
    let doubling = words.ilog2();
    let step = (words >> (doubling - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    EXACT + (((doubling - EXACT_BITS) as usize) << STEP_BITS) + step
}

/// The first class in which every block has at least this size.
#[inline(always)]
pub fn class_holding(words: usize) -> usize {
    let words = words.max(LISTED_WORDS_MIN);
    if words < EXACT_WORDS {
        return words - LISTED_WORDS_MIN;
    }
    let below_step = (1 << (words.ilog2() - STEP_BITS)) - 1;
    class_of(words + below_step)
}

/// Which classes have a free block: a bit for each, and a bit for each word of bits, so that the
/// smallest one is found in two steps however many there are.
pub struct NotEmpty {
    bits: [u64; CLASSES.div_ceil(64)],
    words: u64,
}

impl NotEmpty {
    /// All lists are empty.
    pub const fn none() -> NotEmpty {
        NotEmpty {
            bits: [0; CLASSES.div_ceil(64)],
            words: 0,
        }
    }

    /// The list of a class has a block.
    #[inline(always)]
    pub fn set(&mut self, class: usize) {
        self.bits[class / 64] |= 1 << (class % 64);
        self.words |= 1 << (class / 64);
    }

    /// The list of a class has run empty.
    #[inline(always)]
    pub fn clear(&mut self, class: usize) {
        self.bits[class / 64] &= !(1 << (class % 64));
        if self.bits[class / 64] == 0 {
            self.words &= !(1 << (class / 64));
        }
    }

    /// The classes whose lists have a block, largest first.
    pub fn descending(&self) -> impl Iterator<Item = usize> + '_ {
        let places = |word: u64| (0..64).rev().filter(move |at| word >> at & 1 != 0);
        let words = places(self.words);
        words.flat_map(move |word| places(self.bits[word]).map(move |at| word * 64 + at))
    }

    /// The smallest class from `class` on whose list has a block.
    #[inline(always)]
    pub fn from(&self, class: usize) -> Option<usize> {
        let word = class / 64;
        let here = *self.bits.get(word)? & (u64::MAX << (class % 64));
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let later = self.words & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
        (later != 0).then(|| {
            let word = later.trailing_zeros() as usize;
            word * 64 + self.bits[word].trailing_zeros() as usize
        })
    }
}

const _: () = assert!(
    CLASSES.div_ceil(64) <= 64,
    "one word says which words of bits are not zero"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_with_sizes_and_hold_what_they_promise() {
        let mut last = 0;
        for words in LISTED_WORDS_MIN..1 << 18 {
            let (class, holding) = (class_of(words), class_holding(words));
            assert!(class == last || class == last + 1, "{words} words");
            last = class;
            assert!(holding == class || holding == class + 1 && words > EXACT_WORDS);
            assert!(holding == class || class_of(words - 1) == class);
        }
        assert_eq!(class_of(u32::MAX as usize), CLASSES - 1);
        assert_eq!(class_holding(1), class_of(2));
    }

    #[test]
    fn the_smallest_class_with_space_is_found() {
        let mut not_empty = NotEmpty::none();
        assert_eq!(not_empty.from(0), None);
        for class in [3, 64, 700, CLASSES - 1] {
            not_empty.set(class);
        }
        for (from, found) in [(0, 3), (3, 3), (4, 64), (65, 700), (701, CLASSES - 1)] {
            assert_eq!(not_empty.from(from), Some(found));
        }
        let all: Vec<_> = not_empty.descending().collect();
        assert_eq!(all, [CLASSES - 1, 700, 64, 3]);
        not_empty.clear(CLASSES - 1);
        assert_eq!(not_empty.from(701), None);
        assert_eq!(not_empty.from(CLASSES + 500), None);
    }
}
