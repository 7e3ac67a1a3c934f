//! One index entry: a word that names an item.
//!
//! ```text
//!  63        48 47                           3   2   1    0
//! +------------+------------------------------+-----+-------+
//! |    tag     |       offset in words        | log | reads |
//! +------------+------------------------------+-----+-------+
//! ```
//!
//! Items lie on 8-byte boundaries, so a 48-bit byte offset leaves three bits. One says which log;
//! two count reads, so that an eviction rule learns at the head of the log who was read, and a read
//! dirties at most the bucket, at most three times. Zero is the empty entry: no tag is zero.

use crate::heap::Offset;

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

    /// An entry for an item.
    #[inline(always)]
    pub fn new(tag: u16, log: LogId, offset: Offset, reads: u8) -> Entry {
        debug_assert!(tag != 0 && reads <= Self::READS_MAX);
        Entry(u64::from(tag) << 48 | offset.raw() << 3 | (log as u64) << 2 | u64::from(reads))
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

    /// Where the item lies in its log.
    #[inline(always)]
    pub fn offset(self) -> Offset {
        Offset::from_raw((self.0 >> 3) & ((1 << 45) - 1))
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

    /// Reads counted since the item was put where it lies.
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
        (self.0 ^ other.0) & !3 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let entry = Entry::new(0xBEEF, LogId::Small, Offset::from_raw((1 << 45) - 1), 2);
        assert_eq!(
            (entry.tag(), entry.log(), entry.reads()),
            (0xBEEF, LogId::Small, 2)
        );
        assert_eq!(entry.offset().raw(), (1 << 45) - 1);
        assert!(entry.same_item(entry.with_reads(0)));
        assert!(!entry.same_item(Entry::new(0xBEEF, LogId::Main, entry.offset(), 2)));
        assert!(!Entry::new(1, LogId::Main, Offset::from_raw(0), 0).is_empty());
    }
}
