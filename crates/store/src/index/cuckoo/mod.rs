//! The index of MemC3 (NSDI'13 §3): optimistic concurrent cuckoo hashing with partial keys.
//!
//! An item has two buckets. Both are computed from its keyhash, and each from the other and the
//! item's one-byte tag alone, so that items can be moved without looking at their keys. When both
//! buckets are full, a path of moves to an empty slot is searched for first ([`search`]) and then
//! walked backwards.
//!
//! The paper has one table of fixed size. Here the index is made of *segments*, tables of one page
//! each, under a directory of keyhash bits (extendible hashing): a segment in which an item finds
//! no place is split in two, one page and a fraction of a millisecond at a time. The index thus
//! follows the number of items, whatever their size, and its pages come out of the same pool as the
//! items'. Both buckets of an item lie in one segment, so a path search stays within a page.
//!
//! *Segments that fill one after another.* Keyhashes are spread evenly. If prefixes were, too, all
//! segments would be full at about the same time, and an index that takes 5.6 bytes for a key would
//! take 11.2 a few thousand keys later. So a prefix consists of the first bits not of the keyhash
//! but of the key's [`point`] on a curve, along which keys lie twice as densely at the one end as
//! at the other, as in spiral storage (Martin 1979). At any time segments of all loads between half
//! and full are there, and the index takes about 8 bytes for a key (7.7 to 8.6); with three to
//! twelve segments, up to 9.8.

pub mod line;
mod lookup;
pub mod search;
mod segment;

pub use line::{BUCKET_SLOTS, Cell, LINE_BUCKETS, Line, Slot};
pub use lookup::CuckooIndex;
pub(crate) use lookup::places;
pub use search::{Breadth, Search, Step, Walks};
pub use segment::{Candidates, Segment, SlotAt, alternate, buckets_in, line_at};

use crate::memory::Pool;
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU32, weakened};
use std::ops::Range;

/// Which segment a key belongs to.
pub struct Directory {
    /// The segment of each prefix of keyhash bits: the number of its page. Full length from the
    /// start; a segment that serves several prefixes stands in all of them.
    segments: Box<[AtomicU32]>,
    /// Bits of a prefix.
    depth: u32,
    /// Buckets of a segment.
    buckets: u32,
}

/// Where a key's item can be. Its fields leave no gap, which would be copied in parts that overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeBucket {
    /// The prefix: which entry of the directory.
    pub entry: usize,
    /// The segment's page.
    pub page: u32,
    /// The two buckets, by number in the segment.
    pub buckets: [u32; 2],
    /// The tag, which is never zero.
    tag: u16,
    /// Which of the two buckets' slots, beginning with 1, is looked at first; zero for none.
    place: u16,
}

impl HomeBucket {
    /// The tag.
    #[inline(always)]
    pub fn tag(self) -> u8 {
        self.tag as u8
    }
}

impl Directory {
    /// Longest prefix: keyhashes keep 16 bits for the partition, and 16 for the tag.
    pub const DEPTH_MAX: u32 = 24;

    /// A directory with prefixes of `depth` bits, all in the segment at `root`.
    ///
    /// # Panics
    ///
    /// If the prefix is longer than [`DEPTH_MAX`](Directory::DEPTH_MAX).
    pub fn new(depth: u32, root: usize, page_words: usize) -> Directory {
        assert!(depth <= Self::DEPTH_MAX);
        Directory {
            segments: (0..1usize << depth)
                .map(|_| AtomicU32::new(root as u32))
                .collect(),
            depth,
            buckets: buckets_in(page_words),
        }
    }

    /// Slots of a segment.
    pub fn slots_per_segment(&self) -> usize {
        self.buckets as usize * BUCKET_SLOTS
    }

    /// Which prefix a key has.
    #[inline(always)]
    pub fn entry(&self, keyhash: Keyhash) -> usize {
        (point(keyhash) >> (32 - self.depth)) as usize
    }

    /// Where the key's item can be.
    #[inline(always)]
    pub fn home(&self, keyhash: Keyhash) -> HomeBucket {
        let entry = self.entry(keyhash);
        let page = self.page(entry);
        let (buckets, tag) = spread(keyhash, self.buckets);
        HomeBucket {
            entry,
            page,
            buckets,
            tag: tag.into(),
            place: 0,
        }
    }

    /// Whether a key's home is the one that it was. To be asked before anything is read there.
    #[inline(always)]
    pub fn is_home(&self, home: &HomeBucket) -> bool {
        self.page(home.entry) == home.page
    }

    /// The page of the segment that serves a prefix, and what was written there before it did.
    #[inline(always)]
    fn page(&self, entry: usize) -> u32 {
        let weak = weakened("cuckoo_directory_acquire");
        self.segments[entry].load(if weak { Relaxed } else { Acquire })
    }

    /// Whether the key still belongs to that segment. To be asked after an acquire fence. A reader
    /// that met the old half of a segment after it was split learns it here: the version of the
    /// line that it loaded first was made even after the directory was changed.
    #[inline(always)]
    pub fn unchanged(&self, home: &HomeBucket) -> bool {
        weakened("cuckoo_directory_recheck") || self.segments[home.entry].load(Relaxed) == home.page
    }

    /// The segment on a page.
    #[inline(always)]
    pub fn segment_on<'a>(&self, pool: &'a Pool, page: usize) -> Segment<'a> {
        Segment::at(pool, pool.first_word(page), self.buckets)
    }

    /// Number of prefixes.
    pub fn prefixes(&self) -> usize {
        self.segments.len()
    }

    /// The page of the segment that serves a prefix, if there is such a prefix, and all prefixes
    /// that it serves.
    pub fn segment_of(&self, prefix: usize) -> Option<(u32, Range<usize>)> {
        let page = self.segments.get(prefix)?.load(Relaxed);
        Some((page, self.run(prefix, page)))
    }

    /// All prefixes that the segment on a page serves, which serves this one: a run whose length
    /// and beginning are multiples of one power of two.
    pub fn run(&self, prefix: usize, page: u32) -> Range<usize> {
        let is_mine = |entry: usize| self.segments[entry].load(Relaxed) == page;
        let runs = (0..=self.depth).map(|bits| {
            let len = 1 << (self.depth - bits);
            let first = prefix & !(len - 1);
            first..first + len
        });
        runs.into_iter()
            .find(|run| is_mine(run.start) && is_mine(run.end - 1))
            .expect("a segment serves at least the prefix that it was reached by")
    }

    /// Gives prefixes to the segment on a page, which is filled.
    pub fn assign(&self, entries: Range<usize>, page: usize) {
        let weak = weakened("cuckoo_directory_release");
        let order = if weak { Relaxed } else { Release };
        for entry in &self.segments[entries] {
            entry.store(page as u32, order);
        }
    }

    /// Gives all prefixes to the segment on a page.
    pub fn assign_all(&self, page: usize) {
        self.assign(0..self.segments.len(), page);
    }

    /// Bytes of the directory itself.
    pub fn bytes(&self) -> usize {
        self.segments.len() * size_of::<AtomicU32>()
    }
}

/// A key's point on the curve, below 2^32. For `u` of the keyhash's bits, taken as a fraction, it
/// is `u + u (1 - u) / 3`, whose slope falls from 4/3 to 2/3, because more keys lie near the end.
#[inline(always)]
pub fn point(keyhash: Keyhash) -> u64 {
    const ONE: u64 = 1 << 32;
    let bits = (keyhash.0 >> 16) & (ONE - 1);
    bits + ((bits * (ONE - bits)) >> 32) / 3
}

/// A key's two buckets among `buckets`, and its tag (§3.1).
#[inline(always)]
pub fn spread(keyhash: Keyhash, buckets: u32) -> ([u32; 2], u8) {
    let tag = ((u32::from(keyhash.0 as u16) * 255) >> 16) as u8 + 1;
    // Bits that neither partition nor prefix have used up: all of them, mixed once more.
    let mixed = keyhash.0.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32;
    let first = ((mixed * u64::from(buckets)) >> 32) as u32;
    ([first, alternate(first, tag, buckets)], tag)
}

#[cfg(all(test, not(loom)))]
mod tests;
