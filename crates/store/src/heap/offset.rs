//! Offsets into a circular log that are wider than the log, so that one which dangles shows (MICA
//! §4.3.2, Figure 7).
//!
//! An [`Offset`] counts in words of eight bytes and consists of a lap number and a position:
//!
//! ```text
//!  offset_bits-1             position_bits 0
//! +------------------------+----------------+
//! |          lap           |    position    |   position < length of the log
//! +------------------------+----------------+
//! ```
//!
//! The place in memory is thus a mask away, and offsets compare by subtraction: an entry is *live*
//! if it lies less than a lap's worth of numbers ahead of the head. When the laps run out the
//! numbers start again; an entry that has fallen back nearly as many laps as there are would look
//! live again, which is why the index is scanned for stale entries more often than that.
//!
//! A lap need not be as long as the one before it: it ends where the tail did not go on. What lies
//! between head and tail crosses at most one such end, so the writer only has to know that one.

/// The name of a place in a log. Only a [`Geometry`] can interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(u64);

impl Offset {
    /// The offset as a number below 2^offset_bits.
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The offset that [`raw`](Offset::raw) gave.
    #[inline(always)]
    pub fn from_raw(raw: u64) -> Offset {
        Offset(raw)
    }
}

/// The arithmetic of one log's offsets. Where they lie and whether they are live is the same for
/// all time; how far one is from another depends on where the lap before the tail's has ended.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Where the head's lap ended, if the tail is in the next; else beyond all positions.
    end: u64,
    position_bits: u32,
    position_mask: u64,
    mask: u64,
}

impl Geometry {
    /// Widest offset: an index entry has 44 bits for it, which count words, so 47 bits of bytes.
    /// The paper has 48.
    pub const OFFSET_BITS_MAX: u32 = 44;
    /// Fewest laps that keep a live, a dangling and a not yet scanned offset apart.
    pub const LAPS_MIN: u64 = 4;

    /// For a log of at most `words_max` words with offsets of `offset_bits` bits, of which head and
    /// tail are in the same lap.
    ///
    /// # Panics
    ///
    /// If the bits do not hold [`LAPS_MIN`](Self::LAPS_MIN) laps.
    pub fn new(words_max: u64, offset_bits: u32) -> Geometry {
        assert!(words_max >= 1 && offset_bits <= Self::OFFSET_BITS_MAX);
        let position_bits = (words_max + 1).next_power_of_two().trailing_zeros();
        assert!(
            offset_bits > position_bits && (1u64 << offset_bits >> position_bits) >= Self::LAPS_MIN,
            "offsets of {offset_bits} bits are too narrow for {words_max} words"
        );
        Geometry {
            end: 1 << position_bits,
            position_bits,
            position_mask: (1 << position_bits) - 1,
            mask: (1 << offset_bits) - 1,
        }
    }

    /// The same where the head's lap has ended at a position, and the tail is in the next.
    pub fn ended_at(self, position: u64) -> Geometry {
        debug_assert!(position >= 1 && position < 1 << self.position_bits);
        Geometry {
            end: position,
            ..self
        }
    }

    /// The same where head and tail are in one lap, of which the end is not known yet.
    pub fn open(self) -> Geometry {
        Geometry {
            end: 1 << self.position_bits,
            ..self
        }
    }

    /// Where the head's lap has ended, unless the tail is in the same.
    pub fn lap_end(self) -> Option<u64> {
        (self.end < 1 << self.position_bits).then_some(self.end)
    }

    /// Number of laps before the offsets start again.
    pub fn laps(self) -> u64 {
        (self.mask + 1) >> self.position_bits
    }

    /// Whether this is an offset at all.
    pub fn is_offset(self, offset: Offset) -> bool {
        offset.0 <= self.mask
    }

    /// The place in memory, in words from the log's beginning.
    #[inline(always)]
    pub fn position(self, offset: Offset) -> usize {
        (offset.0 & self.position_mask) as usize
    }

    /// The offset `words` further on, which is no further than where the lap ends; there the next
    /// one begins.
    #[inline(always)]
    pub fn advance(self, offset: Offset, words: u64) -> Offset {
        let position = self.position(offset) as u64 + words;
        debug_assert!(position <= self.end);
        if position < self.end {
            Offset(offset.0 + words)
        } else {
            self.next_lap(offset)
        }
    }

    /// Where the next lap begins.
    #[inline(always)]
    pub fn next_lap(self, offset: Offset) -> Offset {
        let lap = offset.0 >> self.position_bits;
        Offset((lap + 1) << self.position_bits & self.mask)
    }

    /// Whether two offsets are in one lap.
    #[inline(always)]
    pub fn is_same_lap(self, one: Offset, other: Offset) -> bool {
        one.0 ^ other.0 <= self.position_mask
    }

    /// Whether an entry at `offset` has not yet been passed by the head. Only for offsets that were
    /// once live and are not older than [`laps`](Self::laps) - 1 laps.
    #[inline(always)]
    pub fn is_live(self, offset: Offset, head: Offset) -> bool {
        offset.0.wrapping_sub(head.0) & self.mask <= self.position_mask
    }

    /// Words from `head` on to `offset`, which is live or the tail.
    #[inline]
    pub fn distance(self, head: Offset, offset: Offset) -> u64 {
        let laps = ((offset.0 >> self.position_bits).wrapping_sub(head.0 >> self.position_bits))
            & (self.mask >> self.position_bits);
        laps * self.end + self.position(offset) as u64 - self.position(head) as u64
    }

    /// How many laps an offset that is not live lies before the head, rounded down.
    #[inline]
    pub fn laps_behind(self, offset: Offset, head: Offset) -> u64 {
        (head.0.wrapping_sub(offset.0) & self.mask) >> self.position_bits
    }

    /// A number by which entries of one log sort from oldest to newest, dangling ones first. `head`
    /// is the log's present head.
    #[inline]
    pub fn age_rank(self, offset: Offset, head: Offset) -> u64 {
        // Dangling entries lie before the head, which in wrapped arithmetic is the upper part of
        // the space: turn it so that they come first.
        let half = (self.mask >> 1) + 1;
        offset.0.wrapping_sub(head.0).wrapping_add(half) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks through many wraps of a narrow offset space beside a counter that never wraps.
    #[test]
    fn agrees_with_offsets_that_never_wrap() {
        for len in [5, 8, 12, 100] {
            let geometry = Geometry::new(len, 7 + 3).ended_at(len);
            let (mut head, mut head_true) = (Offset::from_raw(0), 0u64);
            let mut entries = Vec::new();
            let (mut at, mut at_true) = (head, 0u64);
            for step in 0..10_000u64 {
                let to_end = len - geometry.position(at) as u64;
                let words = (1 + step * 7 % (len / 2).max(1)).min(to_end);
                while at_true + words - head_true > len {
                    head = geometry.advance(head, 1);
                    head_true += 1;
                }
                entries.push((at, at_true));
                at = geometry.advance(at, words);
                at_true += words;
                entries
                    .retain(|&(_, t)| head_true - t.min(head_true) < (geometry.laps() - 1) * len);
                for &(offset, t) in &entries {
                    assert_eq!(geometry.position(offset) as u64, t % len);
                    assert_eq!(geometry.is_live(offset, head), t >= head_true);
                    if t >= head_true {
                        assert_eq!(geometry.distance(head, offset), t - head_true);
                    }
                }
                assert_eq!(geometry.distance(head, at), at_true - head_true);
            }
            assert!(
                at_true / len > 3 * geometry.laps(),
                "the offset space wrapped several times"
            );
        }
    }

    #[test]
    fn ranks_sort_by_age() {
        let geometry = Geometry::new(100, 12).ended_at(100);
        let old = Offset::from_raw((1 << 12) - 128);
        let head = geometry.advance(geometry.next_lap(old), 30);
        let young = geometry.advance(geometry.next_lap(head), 29);
        assert!(geometry.age_rank(old, head) < geometry.age_rank(head, head));
        assert!(geometry.age_rank(head, head) < geometry.age_rank(young, head));
        assert_eq!(geometry.laps_behind(old, head), 1);
    }

    #[test]
    #[should_panic(expected = "too narrow")]
    fn too_narrow_offsets_are_refused() {
        Geometry::new(1000, 11);
    }
}
