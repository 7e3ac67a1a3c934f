//! What every table does with an index, done with the segments of this one.
//!
//! Walks count lines prefix by prefix of the directory: a segment that serves several prefixes
//! stands for all of them, so a walk goes on after its last. A segment that is split while a walk
//! is under way gives items to prefixes that come later, and no item is left out.

use super::Shared;
use super::grow::places;
use crate::index::cuckoo::{BUCKET_SLOTS, Home, LINE_BUCKETS, Slot, SlotAt, line_at};
use crate::table::{Chain, Fetched, Index};
use glimmer_base::Keyhash;
use glimmer_base::sync::weakened;

impl Fetched for Slot {
    #[inline(always)]
    fn is_fetched(self) -> bool {
        Slot::is_fetched(self)
    }
}

impl Index for Shared {
    type Place = Home;
    /// The first word of a line.
    type Lock = usize;
    type Slot = SlotAt;
    type Entry = Slot;

    #[inline(always)]
    fn place(&self, keyhash: Keyhash) -> Home {
        self.directory.home(keyhash)
    }

    /// The default home, which is no key's, has tag zero.
    #[inline(always)]
    fn place_again(&self, home: Home, keyhash: Keyhash) -> Home {
        // All else follows from the keyhash alone; only the segment may have been split since, or
        // been flushed.
        if home.tag != 0 && (weakened("home_recheck") || self.directory.unchanged(&home)) {
            return home;
        }
        self.place(keyhash)
    }

    #[inline(always)]
    fn prefetch_bucket(&self, home: Home) {
        self.prefetch_buckets(&home);
    }

    #[inline(always)]
    fn candidates(&self, home: Home, _keyhash: Keyhash) -> impl Iterator<Item = (SlotAt, Slot)> {
        let segment = self.directory.segment(&self.pool, &home);
        segment.candidates(home.buckets, home.tag)
    }

    #[inline(always)]
    fn lock(&self, _home: Home, at: SlotAt) -> usize {
        at.line
    }

    #[inline(always)]
    fn write_begin(&self, line: usize, is_shared: bool) {
        line_at(&self.pool, line).write_begin(is_shared);
    }

    #[inline(always)]
    fn write_end(&self, line: usize, is_shared: bool) {
        line_at(&self.pool, line).write_end(is_shared);
    }

    #[inline(always)]
    fn clear(&self, at: SlotAt) {
        self.line(at).set(at.bucket, at.place, 0, Slot::new(0));
    }

    #[inline(always)]
    fn count_read(&self, at: SlotAt, slot: Slot, _most: u8) {
        self.line(at).mark_read(at.bucket, at.place, slot);
    }

    #[inline(always)]
    fn count_read_alone(&self, at: SlotAt, _slot: Slot, _most: u8) {
        self.line(at).set_read(at.bucket, at.place);
    }

    fn chain(&self, number: usize) -> Option<Chain<usize, impl Iterator<Item = (SlotAt, Slot)>>> {
        let (directory, pool) = (&self.directory, &self.pool);
        let lines = directory.slots_per_segment() / (LINE_BUCKETS * BUCKET_SLOTS);
        let (prefix, nth) = (number / lines, number % lines);
        let (page, run) = directory.segment_of(prefix)?;
        let line = directory.segment_on(pool, page).lines().nth(nth)?;
        let next = match nth + 1 < lines {
            true => Some(number + 1),
            false => Some(run.end * lines).filter(|_| run.end < directory.prefixes()),
        };
        let it = line_at(pool, line);
        let entries = places().filter_map(move |(bucket, place)| {
            let at = SlotAt {
                line,
                bucket,
                place,
            };
            let in_use = it.tags(bucket).to_le_bytes()[place] != 0;
            in_use.then(|| (at, it.slot(bucket, place)))
        });
        Some(Chain {
            lock: line,
            entries,
            next,
        })
    }

    fn bytes(&self) -> u64 {
        let pages = 8 * self.index_pages.get() * self.pool.page_words() as u64;
        pages + self.directory.bytes() as u64
    }
}
