//! A segment: a cuckoo hash table of its own (MemC3 §3), as many lines as a page of the pool has.

use super::line::{BUCKET_SLOTS, LINE_BUCKETS, Line, Slot, first_empty, matching};
use super::search::{Search, Step, View};
use crate::memory::{LINE_WORDS, Pool};
use crate::work;
use glimmer_base::sync::{in_program_order, weakened};

/// A table of buckets in a row of lines.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    pool: &'a Pool,
    /// The first line's first word.
    first: usize,
    buckets: u32,
}

/// One slot's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAt {
    /// The first word of its line.
    pub line: usize,
    /// Which bucket of the line.
    pub bucket: usize,
    /// Which slot of the bucket.
    pub place: usize,
}

/// How many buckets fit this many words.
pub fn buckets_in(words: usize) -> u32 {
    u32::try_from(words / LINE_WORDS * LINE_BUCKETS).expect("a segment is far smaller")
}

/// The other bucket of an item that lies in `bucket` (§3.1). The paper takes the exclusive or with
/// a hash of the tag; this is an involution as well, and does without a power of two. As the number
/// of buckets is even and the hash odd, the two buckets always differ.
#[inline(always)]
pub fn alternate(bucket: u32, tag: u8, buckets: u32) -> u32 {
    debug_assert!(buckets.is_multiple_of(2) && bucket < buckets);
    let hash = u64::from(u32::from(tag).wrapping_mul(0x9E37_79B1));
    let hash = ((hash * u64::from(buckets)) >> 32) as u32 | 1;
    let other = hash.wrapping_sub(bucket);
    if hash >= bucket {
        other
    } else {
        other.wrapping_add(buckets)
    }
}

impl<'a> Segment<'a> {
    /// The segment of `buckets` buckets whose lines begin at word `first`.
    #[inline(always)]
    pub fn at(pool: &'a Pool, first: usize, buckets: u32) -> Segment<'a> {
        Segment {
            pool,
            first,
            buckets,
        }
    }

    /// Its lines.
    pub fn lines(self) -> impl Iterator<Item = usize> {
        let count = self.buckets as usize / LINE_BUCKETS;
        (0..count).map(move |line| self.first + line * LINE_WORDS)
    }

    /// The first word of a bucket's line, and which of the line's buckets it is.
    #[inline(always)]
    pub fn locate(self, bucket: u32) -> (usize, usize) {
        let (line, bucket) = (bucket / LINE_BUCKETS as u32, bucket % LINE_BUCKETS as u32);
        (self.first + line as usize * LINE_WORDS, bucket as usize)
    }

    #[inline(always)]
    fn slot_at(self, step: Step) -> SlotAt {
        let (line, bucket) = self.locate(step.bucket);
        SlotAt {
            line,
            bucket,
            place: step.place as usize,
        }
    }

    /// The slots of two buckets that bear a tag.
    #[inline(always)]
    pub fn candidates(self, homes: [u32; 2], tag: u8) -> Candidates<'a> {
        let [first, second] = homes.map(|bucket| self.locate(bucket));
        let tags = |(line, bucket)| u64::from(line_at(self.pool, line).tags(bucket));
        Candidates {
            pool: self.pool,
            buckets: [first, second],
            matches: matching(tags(first) | tags(second) << 32, tag),
        }
    }

    /// One of the eight slots of two buckets.
    #[inline(always)]
    pub fn nth_slot(self, homes: [u32; 2], nth: usize) -> SlotAt {
        let (line, bucket) = self.locate(homes[nth / BUCKET_SLOTS]);
        SlotAt {
            line,
            bucket,
            place: nth % BUCKET_SLOTS,
        }
    }

    /// An empty slot of either bucket.
    #[inline(always)]
    pub fn empty(self, homes: [u32; 2]) -> Option<SlotAt> {
        homes.into_iter().find_map(|home| {
            let place = first_empty(self.tags(home))? as u32;
            Some(self.slot_at(Step {
                bucket: home,
                place,
            }))
        })
    }

    /// Makes an empty slot in one of two full buckets by moving items along a cuckoo path, from its
    /// end backwards, so that each is in one of its buckets at every moment (§3.2). None if the
    /// search finds no path. `shared`: whether optimistic readers exist.
    pub fn make_empty(
        self,
        homes: [u32; 2],
        search: &mut impl Search,
        path: &mut Vec<Step>,
        shared: bool,
    ) -> Option<SlotAt> {
        if !search.find(&self, homes, path) {
            return None;
        }
        for hop in path.windows(2).rev() {
            self.relocate(self.slot_at(hop[0]), self.slot_at(hop[1]), shared);
        }
        path.first().map(|&step| self.slot_at(step))
    }

    /// Moves an item to an empty slot of its other bucket. The version of the line that it leaves
    /// covers both: see [`line`](super::line).
    #[inline(always)]
    pub fn relocate(self, from: SlotAt, to: SlotAt, shared: bool) {
        let (old, new) = (line_at(self.pool, from.line), line_at(self.pool, to.line));
        let tag = old.tag(from.bucket, from.place);
        let slot = old.slot(from.bucket, from.place);
        let shared = shared && !weakened("cuckoo_move_version");
        old.write_begin(shared);
        new.set(to.bucket, to.place, tag, slot);
        in_program_order();
        old.clear(from.bucket, from.place);
        old.write_end(shared);
        work::moved(0);
    }
}

impl View for Segment<'_> {
    #[inline(always)]
    fn tags(&self, bucket: u32) -> u32 {
        work::examined(BUCKET_SLOTS);
        let (line, bucket) = self.locate(bucket);
        line_at(self.pool, line).tags(bucket)
    }

    #[inline(always)]
    fn alternate(&self, bucket: u32, tag: u8) -> u32 {
        alternate(bucket, tag, self.buckets)
    }
}

/// The line that begins at a word.
#[inline(always)]
pub fn line_at(pool: &Pool, at: usize) -> Line<'_> {
    Line(pool.line(at))
}

/// See [`Segment::candidates`].
pub struct Candidates<'a> {
    pool: &'a Pool,
    buckets: [(usize, usize); 2],
    matches: u64,
}

impl Candidates<'_> {
    /// Which of the two buckets' slots comes next, beginning with 1; zero for none.
    #[inline(always)]
    pub fn place(&self) -> u8 {
        match self.matches {
            0 => 0,
            matches => (matches.trailing_zeros() / 8) as u8 + 1,
        }
    }
}

impl Iterator for Candidates<'_> {
    type Item = (SlotAt, Slot);

    #[inline(always)]
    fn next(&mut self) -> Option<(SlotAt, Slot)> {
        if self.matches == 0 {
            return None;
        }
        let nth = self.matches.trailing_zeros() as usize / 8;
        self.matches &= self.matches - 1;
        let (line, bucket) = self.buckets[nth / 4];
        let place = nth % 4;
        let slot = line_at(self.pool, line).slot(bucket, place);
        Some((
            SlotAt {
                line,
                bucket,
                place,
            },
            slot,
        ))
    }
}
