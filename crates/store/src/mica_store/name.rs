//! How an index entry names an item in store mode.
//!
//! ```text
//!  63        48 47          36 35                4     3      2 .. 0
//! +------------+--------------+-------------------+---------+---------+
//! |    tag     |  generation  | position in words | fetched | expires |
//! +------------+--------------+-------------------+---------+---------+
//! ```
//!
//! Tag and the mark of a fetched item lie where they do in cache mode, so that they are looked for
//! by the same code. The last part says whether the item has an expiry, so that the scan reads no
//! others.

use crate::heap::Offset;
use crate::heap::segregated_fits::HEAP_WORDS_MAX;
use crate::index::{Entry, LogId};

const POSITION_BITS: u32 = 32;
const GENERATION_BITS: u32 = 12;

/// A number that changes with every flush, and starts again after [`COUNT`](Generation::COUNT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

impl Generation {
    /// Generations before they start again: by then no entry of the first may be left.
    pub const COUNT: u64 = 1 << GENERATION_BITS;

    /// The generation as a number below [`COUNT`](Generation::COUNT).
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The generation that [`raw`](Generation::raw) gave.
    #[inline(always)]
    pub fn from_raw(raw: u64) -> Generation {
        Generation(raw)
    }

    /// The generation after this one.
    pub fn next(self) -> Generation {
        Generation((self.0 + 1) % Self::COUNT)
    }
}

/// What an entry says beside the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// When the item was stored, in flushes.
    pub generation: Generation,
    /// Where it lies in the heap, in words.
    pub at: usize,
    /// Whether it has an expiry.
    pub expires: bool,
}

impl Name {
    /// The entry for an item.
    #[inline(always)]
    pub fn entry(self, tag: u16) -> Entry {
        let offset = Offset::from_raw(self.generation.0 << POSITION_BITS | self.at as u64);
        Entry::new(tag, LogId::Main, offset, u8::from(self.expires))
    }

    /// What an entry names.
    #[inline(always)]
    pub fn of(entry: Entry) -> Name {
        let offset = entry.offset().raw();
        Name {
            generation: Generation(offset >> POSITION_BITS),
            at: offset as u32 as usize,
            expires: entry.reads() != 0,
        }
    }
}

const _: () = assert!(
    HEAP_WORDS_MAX <= 1 << POSITION_BITS,
    "a name can say every position of the largest heap"
);
const _: () = assert!(GENERATION_BITS + POSITION_BITS <= crate::heap::Geometry::OFFSET_BITS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let name = Name {
            generation: Generation(Generation::COUNT - 1),
            at: u32::MAX as usize,
            expires: true,
        };
        assert_eq!(Name::of(name.entry(0xBEEF)), name);
        assert_eq!(name.entry(0xBEEF).tag(), 0xBEEF);
        assert_eq!(name.generation.next(), Generation(0));
    }
}
