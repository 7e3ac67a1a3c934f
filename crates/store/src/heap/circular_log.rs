//! The circular log (MICA §4.3.1): append at the tail, evict at the head. The paper maps the log's
//! memory a second time after its end, so that an item may cross it. Here no item does: where one
//! does not fit before the end, the lap ends there.
//!
//! The log itself only knows memory and the head. The head is the one word by which writer and
//! optimistic readers meet:
//!
//! - The writer *publishes* a head beyond the space it is about to overwrite, then a release fence,
//!   and only then writes.
//! - A reader copies, then an acquire fence, then loads the head once more. If what it copied is
//!   still live, no byte of it had been overwritten when it was read: had the reader seen even one
//!   newer byte, the two fences would synchronise and it would see the newer head too.
//!
//! Everything before the head is gone, so publishing the tail as the new head empties the log: that
//! is a flush.

use super::{Geometry, Offset};
use crate::memory::{PagesAhead, Record, Words, ZeroedSlice};
use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, Ordering, fence, in_program_order, weakened};
use std::ops::Range;

/// An item is read from a place of at least this many words.
const PLACE_WORDS_MIN: usize = 2;
/// A log with at least this many words begins at [`FIRST_POSITION`]. Smaller ones have no words to
/// spare.
const LARGE_LOG_WORDS: usize = 1 << 16;
/// Words between the beginning of a page and the first item of a large log. A value is sent by a
/// copy into the kernel's pages, where it begins a few bytes behind the beginning of a page. Some
/// processors copy at half the speed if the source lies just before the destination within a page,
/// and the first item of a log that began with a page would lie so.
const FIRST_POSITION: u64 = 64;

/// One log: its memory, the arithmetic of its offsets, and the published head.
pub struct CircularLog {
    words: ZeroedSlice<AtomicU64>,
    geometry: Geometry,
    /// On lines of its own: the writer changes it, and everything beside it is read by all.
    head: CachePadded<AtomicU64>,
    /// The head is kept there as well, under this number.
    record: Option<(Record, usize)>,
    item_words_max: usize,
    /// Where the last place begins: [`PLACE_WORDS_MIN`] words before the end of the memory.
    last_place: usize,
    /// Words of a place, unless the memory ends before.
    place_words: usize,
}

impl CircularLog {
    /// A log at the beginning of `words`, for items of at most `item_words_max` words;
    /// `offset_bits` as in [`Geometry::new`]. How far the log goes is the writer's affair.
    ///
    /// # Panics
    ///
    /// If there are fewer than two words.
    pub fn new(
        words: ZeroedSlice<AtomicU64>,
        item_words_max: usize,
        offset_bits: u32,
    ) -> CircularLog {
        assert!(words.len() >= PLACE_WORDS_MIN, "the memory holds no item");
        let head = match words.len() {
            LARGE_LOG_WORDS.. => FIRST_POSITION,
            _ => 0,
        };
        CircularLog {
            geometry: Geometry::new(words.len() as u64, offset_bits),
            last_place: words.len() - PLACE_WORDS_MIN,
            place_words: item_words_max.max(PLACE_WORDS_MIN),
            words,
            head: CachePadded::new(AtomicU64::new(head)),
            record: None,
            item_words_max,
        }
    }

    /// Takes the head of log `number` that a record knows. Says whether it can be this log's.
    pub fn take_head_from(&mut self, record: &Record, number: usize) -> bool {
        let head = Offset::from_raw(record.head(number).load(Relaxed));
        let is_possible = self.geometry.is_offset(head)
            && self.geometry.position(head) as u64 <= self.words_max();
        if is_possible {
            self.head.store(head.raw(), Relaxed);
        }
        is_possible
    }

    /// Has the record know the head, as that of log `number`.
    pub fn keep_head_in(&mut self, record: &Record, number: usize) {
        record.head(number).store(self.head().raw(), Relaxed);
        self.record = Some((record.clone(), number));
    }

    /// The arithmetic of this log's offsets, as far as it never changes.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Words of the memory that the log lies in.
    pub fn words_max(&self) -> u64 {
        self.words.len() as u64
    }

    /// The furthest that the log may go, if the memory is all its own: every [`place`](Self::place)
    /// before that is a place.
    pub fn limit_max(&self) -> u64 {
        (self.words.len() - PLACE_WORDS_MIN + 1) as u64
    }

    /// Words of the largest item that this log takes.
    #[inline(always)]
    pub fn item_words_max(&self) -> usize {
        self.item_words_max
    }

    /// The published head. Exact for the writer; for readers, some head that was published.
    #[inline(always)]
    pub fn head(&self) -> Offset {
        Offset::from_raw(self.head.load(Relaxed))
    }

    /// Whether an entry is still in the log, as far as the caller can see.
    #[inline(always)]
    pub fn is_live(&self, offset: Offset) -> bool {
        self.geometry.is_live(offset, self.head())
    }

    /// Gives up everything before `head`, before any of it is overwritten. `shared`: whether
    /// optimistic readers exist.
    #[inline]
    pub fn publish_head(&self, head: Offset, shared: bool) {
        self.head.store(head.raw(), Relaxed);
        if let Some((record, number)) = &self.record {
            record.head(*number).store(head.raw(), Relaxed);
        }
        in_program_order();
        if shared && !weakened("head_release_fence") {
            fence(Ordering::Release);
        }
    }

    /// The place of the entry at a position: as long as the largest item or the memory. Any
    /// position will do: a racing reader may take one from memory that no longer is an entry.
    #[inline(always)]
    pub fn place(&self, at: usize) -> Words<'_> {
        let at = at.min(self.last_place);
        // SAFETY: `last_place` is less than the length of the memory, and neither changes.
        let rest = unsafe { self.words.get_unchecked(at..) };
        let place = &rest[..self.place_words.min(rest.len())];
        // SAFETY: from `last_place` on there are as many words, and `place_words` is no less.
        unsafe { core::hint::assert_unchecked(place.len() >= PLACE_WORDS_MIN) };
        Words::of(place)
    }

    /// Copies `count` words to a position of this log or another whose space is reserved for them.
    /// The two places may overlap if the new one begins before the old one.
    pub fn copy(&self, at: usize, count: usize, (to_log, to): (&CircularLog, usize)) {
        let (old, new) = (&self.words[at..at + count], &to_log.words[to..to + count]);
        for (old, new) in old.iter().zip(new) {
            new.store(old.load(Relaxed), Relaxed);
        }
    }

    /// Fetches the cache line of a position without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        self.words.prefetch(at);
    }

    /// Lets positions that the log may use from now on lie on huge pages, where the memory is
    /// [sparse](ZeroedSlice::sparse).
    pub fn grant(&self, positions: Range<u64>) {
        (self.words).grant(positions.start as usize..positions.end as usize);
    }

    /// Has a thread take the pages of positions that the log may use later, as
    /// [`grant`](Self::grant) lets them lie.
    pub fn take_ahead(&self, positions: Range<u64>, by: &PagesAhead) {
        (self.words).take_ahead(positions.start as usize..positions.end as usize, by);
    }

    /// Gives the kernel back the pages of positions of a [sparse](ZeroedSlice::sparse) memory that
    /// the log does not use any more. Racing readers may read there, and see zeros.
    pub fn withdraw(&self, positions: Range<u64>) {
        (self.words).withdraw(positions.start as usize..positions.end as usize);
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.words.addresses()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::PagePolicy;

    #[test]
    fn the_first_item_of_a_large_log_lies_behind_the_beginning_of_a_page() {
        let begins_at = |words| {
            let memory = ZeroedSlice::new(words, PagePolicy::Small, None).unwrap();
            let log = CircularLog::new(memory, 16, 40);
            log.geometry().position(log.head()) as u64
        };
        assert_eq!(begins_at(LARGE_LOG_WORDS), FIRST_POSITION);
        assert_eq!(begins_at(LARGE_LOG_WORDS - 1), 0);
    }
}
