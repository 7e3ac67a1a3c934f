//! One index entry: a word that names an item.
//!
//! ```text
//!  63        48 47                    4     3      2   1    0
//! +------------+-----------------------+---------+-----+-------+
//! |    tag     |    offset in words    | fetched | log | reads |
//! +------------+-----------------------+---------+-----+-------+
//! ```
//!
//! Items lie on 8-byte boundaries, so a 47-bit byte offset (the paper has 48) leaves four bits. One
//! says whether a client has fetched the item since it was stored, one which log it lies in, and
//! two count uses, so that an eviction rule learns at the head of the log who was used. A read
//! dirties at most the bucket, at most three times. Zero is the empty entry: no tag is zero.

use crate::heap::Offset;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// Which of a partition's logs an item lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogId {
    /// The log that holds nearly everything; the only one under most eviction rules.
    Main = 0,
    /// A small log in front of it, where new items prove themselves.
    Small = 1,
}

/// A copy of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// No item.
    pub const EMPTY: Entry = Entry(0);
    /// Largest count of reads.
    pub const READS_MAX: u8 = 3;
    /// Bits of the offset.
    pub const OFFSET_BITS: u32 = 44;

    const FETCHED: u64 = 1 << 3;
    /// What reads change.
    const USE: u64 = Self::FETCHED | 3;

    /// An entry for an item.
    #[inline(always)]
    pub fn new(tag: u16, log: LogId, offset: Offset, reads: u8) -> Entry {
        debug_assert!(tag != 0 && reads <= Self::READS_MAX);
        debug_assert!(offset.raw() < 1 << Self::OFFSET_BITS);
        Entry(u64::from(tag) << 48 | offset.raw() << 4 | (log as u64) << 2 | u64::from(reads))
    }

    /// The entry as it lies in the bucket.
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// See [`raw`](Entry::raw).
    #[inline(always)]
    pub fn from_raw(raw: u64) -> Entry {
        Entry(raw)
    }

    /// What lies in a bucket's cell now.
    #[inline(always)]
    pub fn in_cell(cell: &AtomicU64) -> Entry {
        Entry(cell.load(Relaxed))
    }

    /// Whether there is no item.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tag; zero only if empty.
    #[inline(always)]
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The tag in the upper half, with bits of the offset in the lower.
    #[inline(always)]
    pub(super) fn tag_and_more(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Where the item lies in its log.
    #[inline(always)]
    pub fn offset(self) -> Offset {
        Offset::from_raw((self.0 >> 4) & ((1 << Self::OFFSET_BITS) - 1))
    }

    /// The offset with bits of the tag above it, which the arithmetic of a log drops.
    #[inline(always)]
    pub fn offset_and_more(self) -> Offset {
        Offset::from_raw(self.0 >> 4)
    }

    /// The log that the item lies in.
    #[inline(always)]
    pub fn log(self) -> LogId {
        if self.0 & 4 == 0 {
            LogId::Main
        } else {
            LogId::Small
        }
    }

    /// Whether the item is known to have been fetched since it was stored.
    #[inline(always)]
    pub fn is_fetched(self) -> bool {
        self.0 & Self::FETCHED != 0
    }

    /// The same entry, of an item that was fetched or not.
    #[inline(always)]
    pub fn with_fetched(self, is_fetched: bool) -> Entry {
        let fetched = if is_fetched { Self::FETCHED } else { 0 };
        Entry(self.0 & !Self::FETCHED | fetched)
    }

    /// The entry after one more read, of which up to `most` are counted; the same if that changes
    /// nothing.
    #[inline(always)]
    pub fn read_again(self, most: u8) -> Entry {
        Entry(self.used_again(most).0 | Self::FETCHED)
    }

    /// The entry after the item was written over, which is a use of it as a read is, although no
    /// client has fetched the new value.
    #[inline(always)]
    pub fn written_over(self, most: u8) -> Entry {
        Entry(self.used_again(most).0 & !Self::FETCHED)
    }

    #[inline(always)]
    fn used_again(self, most: u8) -> Entry {
        Entry(self.0 + u64::from(self.reads() < most))
    }

    /// Uses counted since the item was put where it lies.
    #[inline(always)]
    pub fn reads(self) -> u8 {
        (self.0 & 3) as u8
    }

    /// The same entry with another count.
    #[inline(always)]
    pub fn with_reads(self, reads: u8) -> Entry {
        Entry(self.0 & !3 | u64::from(reads))
    }

    /// Whether both name the same item, whatever their counts.
    #[inline(always)]
    pub fn same_item(self, other: Entry) -> bool {
        (self.0 ^ other.0) & !Self::USE == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let last = (1 << Entry::OFFSET_BITS) - 1;
        let entry = Entry::new(0xBEEF, LogId::Small, Offset::from_raw(last), 2);
        assert_eq!(
            (entry.tag(), entry.log(), entry.reads()),
            (0xBEEF, LogId::Small, 2)
        );
        assert_eq!(entry.offset().raw(), last);
        assert!(!entry.is_fetched() && entry.with_fetched(true).is_fetched());
        assert!(entry.same_item(entry.with_reads(0).with_fetched(true)));
        assert!(!entry.same_item(Entry::new(0xBEEF, LogId::Main, entry.offset(), 2)));
        assert!(!Entry::new(1, LogId::Main, Offset::from_raw(0), 0).is_empty());
    }

    #[test]
    fn a_read_is_counted_up_to_the_most_and_always_noted_once() {
        let stored = Entry::new(7, LogId::Main, Offset::from_raw(9), 0);
        let first = stored.read_again(2);
        assert_eq!((first.reads(), first.is_fetched()), (1, true));
        let second = first.read_again(2);
        assert_eq!((second.reads(), second.read_again(2)), (2, second));
        let uncounted = stored.read_again(0);
        assert_eq!((uncounted.reads(), uncounted.is_fetched()), (0, true));
        assert_eq!(uncounted.read_again(0), uncounted);
        let over = second.written_over(3);
        assert_eq!((over.reads(), over.is_fetched()), (3, false));
        assert_eq!(stored.written_over(0), stored);
    }
}
