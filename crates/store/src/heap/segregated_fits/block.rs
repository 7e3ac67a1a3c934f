//! A free block as it lies in the heap.
//!
//! ```text
//!              63             32 31             0
//!             +-----------------+----------------+
//! first word  | next of class   |       0        |    a block of one word: 1 in the low half
//! second word | previous        | words          |
//!             ...
//! last word   |                 | words          |    as the second, if there are two
//!             +-----------------+----------------+
//! ```
//!
//! The second byte of the first word is zero, where an item has the length of its key: so the first
//! word tells a free block from an item. A place that is reserved for an item has 255 there, and
//! above it its size where an item has the CAS unique. The last word is the *boundary tag*: an item
//! freed after the block finds the beginning of the block there. Links and sizes lie in unused
//! space, and an item in use has no tag at all; that a free block ends before it is said by a
//! bitmap of the heap's words ([`FreeEnds`]).

use super::Space;
use glimmer_base::sync::Ordering::Relaxed;

/// The second byte of a reserved place: no key is that long.
const RESERVED: u64 = 0xFF;
const _: () = assert!(RESERVED as usize > glimmer_base::limits::KEY_BYTES_MAX);

/// No block.
pub const NONE: u32 = u32::MAX;

const LOW: u64 = u32::MAX as u64;

/// Reading and writing free blocks; positions and sizes in words.
impl Space {
    /// The size of the free block at a place, or none if an item lies there.
    #[inline(always)]
    pub(super) fn free_words_at(&self, at: usize) -> Option<usize> {
        let first = self.load(at);
        if first as u8 == 1 && (first >> 8) as u8 == 0 {
            return Some(1);
        }
        ((first >> 8) as u8 == 0).then(|| (self.load(at + 1) & LOW) as usize)
    }

    /// The size of the reserved place that begins here, if one does.
    #[inline(always)]
    pub(super) fn reserved_words_at(&self, at: usize) -> Option<usize> {
        let first = self.load(at);
        (first >> 8 & 0xFF == RESERVED).then_some((first >> 24) as usize)
    }

    /// Reserves a place in use for an item that is yet to be written: it is neither free nor slid.
    pub fn reserve(&self, at: usize, words: usize) {
        self.store(at, (words as u64) << 24 | RESERVED << 8);
    }

    /// The size of the free block whose last word this is.
    #[inline(always)]
    pub(super) fn free_words_before(&self, end: usize) -> usize {
        (self.load(end - 1) & LOW) as usize
    }

    /// Writes a free block that is in no list yet.
    #[inline(always)]
    pub(super) fn write_free(&self, at: usize, words: usize) {
        if words == 1 {
            self.store(at, 1);
            return;
        }
        self.store(at, u64::from(NONE) << 32);
        self.store(at + words - 1, words as u64);
        self.store(at + 1, u64::from(NONE) << 32 | words as u64);
    }

    #[inline(always)]
    pub(super) fn next(&self, at: u32) -> u32 {
        (self.load(at as usize) >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn previous(&self, at: u32) -> u32 {
        (self.load(at as usize + 1) >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn set_next(&self, at: u32, next: u32) {
        self.store(at as usize, u64::from(next) << 32);
    }

    #[inline(always)]
    pub(super) fn set_previous(&self, at: u32, previous: u32) {
        let words = self.load(at as usize + 1) & LOW;
        self.store(at as usize + 1, u64::from(previous) << 32 | words);
    }

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        self.words[at].load(Relaxed)
    }

    #[inline(always)]
    fn store(&self, at: usize, word: u64) {
        self.words[at].store(word, Relaxed);
    }
}

/// At which words of the heap a free block ends. Only the writer has it: 1/64 of the heap, for
/// which no item needs a tag of its own.
pub struct FreeEnds(Vec<u64>);

impl FreeEnds {
    /// For a heap of `words` words, none of which are in use.
    pub fn new(words: usize) -> FreeEnds {
        FreeEnds(vec![0; words.div_ceil(64)])
    }

    /// The bits, as words.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Those of such words.
    pub fn of_words(words: impl Iterator<Item = u64>) -> FreeEnds {
        FreeEnds(words.collect())
    }

    /// No free block ends anywhere.
    pub fn clear_all(&mut self) {
        self.0.fill(0);
    }

    /// Whether a free block ends right before `at`.
    #[inline(always)]
    pub fn before(&self, at: usize) -> bool {
        at > 0 && self.0[(at - 1) / 64] >> ((at - 1) % 64) & 1 != 0
    }

    /// A free block ends right before `at` now.
    #[inline(always)]
    pub fn set(&mut self, at: usize) {
        self.0[(at - 1) / 64] |= 1 << ((at - 1) % 64);
    }

    /// No free block ends right before `at` any more.
    #[inline(always)]
    pub fn clear(&mut self, at: usize) {
        self.0[(at - 1) / 64] &= !(1 << ((at - 1) % 64));
    }
}
