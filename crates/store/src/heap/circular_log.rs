//! The circular log (MICA §4.3.1): append at the tail, evict at the head.
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
//! Everything behind the head is gone, so publishing the tail as the new head empties the log: that
//! is a flush.

use super::{Geometry, Offset};
use crate::memory::{MirroredWords, PagePolicy, Words};
use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, Ordering, fence};
use std::io;
use std::ops::Range;

/// One log: its memory, the arithmetic of its offsets, and the published head.
pub struct CircularLog {
    words: MirroredWords,
    geometry: Geometry,
    /// On lines of its own: the writer changes it, and everything beside it is read by all.
    head: CachePadded<AtomicU64>,
    item_words_max: usize,
}

impl CircularLog {
    /// A log of `words` words (a multiple of 4 KiB; rounded down to whole huge pages, where those
    /// are used) for items of at most `item_words_max` words; `offset_bits` as in
    /// [`Geometry::new`].
    pub fn new(
        words: usize,
        item_words_max: usize,
        offset_bits: u32,
        policy: PagePolicy,
        node: Option<u32>,
    ) -> io::Result<Self> {
        let words = MirroredWords::new(words, item_words_max.min(words), policy, node)?;
        Ok(CircularLog {
            geometry: Geometry::new(words.len() as u64, offset_bits),
            words,
            head: CachePadded::new(AtomicU64::new(0)),
            item_words_max,
        })
    }

    /// The arithmetic of this log's offsets.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.geometry
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
        if shared && !cfg!(weaken = "head_release_fence") {
            fence(Ordering::Release);
        }
    }

    /// The place of the entry at a position, as long as the largest item.
    #[inline(always)]
    pub fn place(&self, at: usize) -> Words<'_> {
        self.words.view(at, self.item_words_max)
    }

    /// Appends `count` words from a position to `buffer`.
    pub fn copy_out(&self, at: usize, count: usize, buffer: &mut Vec<u64>) {
        buffer.extend(self.words.range(at, count).map(|word| word.load(Relaxed)));
    }

    /// Writes words to a position whose space is reserved for them.
    pub fn copy_in(&self, at: usize, words: &[u64]) {
        for (space, &word) in self.words.range(at, words.len()).zip(words) {
            space.store(word, Relaxed);
        }
    }

    /// Fetches the cache line of a position without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        self.words.prefetch(at);
    }

    /// Where the memory lies.
    pub fn addresses(&self) -> Range<usize> {
        self.words.addresses()
    }
}
