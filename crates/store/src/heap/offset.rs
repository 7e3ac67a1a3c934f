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
//! The offset space is thus a whole number of laps whatever the log's length is, the place in
//! memory is a mask away, and offsets still compare by subtraction: an entry is *live* if it lies
//! less than a lap's worth of numbers ahead of the head. When the laps run out the numbers start
//! again; an entry that has fallen nearly as many laps behind as there are would look live again,
//! which is why the index is scanned for stale entries more often than that.

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

/// The arithmetic of one log's offsets.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    len: u64,
    position_bits: u32,
    mask: u64,
}

impl Geometry {
    /// Widest offset: an index entry has 44 bits for it, which count words, so 47 bits of bytes. The
    /// paper has 48.
    pub const OFFSET_BITS_MAX: u32 = 44;
    /// Fewest laps that keep a live, a dangling and a not yet scanned offset apart.
    pub const LAPS_MIN: u64 = 4;

    /// For a log of `len` words with offsets of `offset_bits` bits.
    ///
    /// # Panics
    ///
    /// If the bits do not hold [`LAPS_MIN`](Self::LAPS_MIN) laps.
    pub fn new(len: u64, offset_bits: u32) -> Geometry {
        assert!(len >= 1 && offset_bits <= Self::OFFSET_BITS_MAX);
        let position_bits = len.next_power_of_two().trailing_zeros();
        let geometry = Geometry {
            len,
            position_bits,
            mask: (1 << offset_bits) - 1,
        };
        assert!(
            offset_bits > position_bits && geometry.laps() >= Self::LAPS_MIN,
            "offsets of {offset_bits} bits are too narrow for {len} words"
        );
        geometry
    }

    /// Length of the log in words.
    #[inline(always)]
    pub fn words(self) -> u64 {
        self.len
    }

    /// Number of laps before the offsets start again.
    pub fn laps(self) -> u64 {
        (self.mask + 1) >> self.position_bits
    }

    /// The place in memory, in words from the log's beginning.
    #[inline(always)]
    pub fn position(self, offset: Offset) -> usize {
        (offset.0 & ((1 << self.position_bits) - 1)) as usize
    }

    /// The offset `words` further on; at most the log's length.
    #[inline(always)]
    pub fn advance(self, offset: Offset, words: u64) -> Offset {
        debug_assert!(words <= self.len);
        let position = self.position(offset) as u64 + words;
        let lap = 1 << self.position_bits;
        let raw = if position < self.len {
            offset.0 + words
        } else {
            offset.0 + words + lap - self.len
        };
        Offset(raw & self.mask)
    }

    /// Whether an entry at `offset` has not yet been passed by the head. Only for offsets that were
    /// once live and are not older than [`laps`](Self::laps) - 1 laps.
    #[inline(always)]
    pub fn is_live(self, offset: Offset, head: Offset) -> bool {
        (offset.0.wrapping_sub(head.0) & self.mask) >> self.position_bits == 0
    }

    /// Words from `head` on to `offset`, which is live or the tail.
    #[inline]
    pub fn distance(self, head: Offset, offset: Offset) -> u64 {
        let laps = ((offset.0 >> self.position_bits).wrapping_sub(head.0 >> self.position_bits))
            & (self.mask >> self.position_bits);
        laps * self.len + self.position(offset) as u64 - self.position(head) as u64
    }

    /// How many laps an offset that is not live lies behind the head, rounded down.
    #[inline]
    pub fn laps_behind(self, offset: Offset, head: Offset) -> u64 {
        (head.0.wrapping_sub(offset.0) & self.mask) >> self.position_bits
    }

    /// A number by which entries of one log sort from oldest to newest, dangling ones first. `head`
    /// is the log's present head.
    #[inline]
    pub fn age_rank(self, offset: Offset, head: Offset) -> u64 {
        // Dangling entries lie behind the head, which in wrapped arithmetic is the upper part of
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
            let geometry = Geometry::new(len, 7 + 3);
            let (mut head, mut head_true) = (Offset::from_raw(0), 0u64);
            let mut entries = Vec::new();
            let (mut at, mut at_true) = (head, 0u64);
            for step in 0..10_000u64 {
                let words = 1 + step * 7 % (len / 2).max(1);
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
        let geometry = Geometry::new(100, 12);
        let mut at = Offset::from_raw((1 << 12) - 150);
        at = geometry.advance(at, 0);
        let (old, head) = (at, geometry.advance(geometry.advance(at, 100), 30));
        let young = geometry.advance(head, 99);
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
