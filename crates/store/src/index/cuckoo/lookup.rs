//! What every table does with an index, done with the segments of this one.
//!
//! Walks count lines prefix by prefix of the directory: a segment that serves several prefixes
//! stands for all of them, so a walk goes on after its last. A segment that is split while a walk
//! is under way gives items to prefixes that come later, and no item is left out.

use super::{
    BUCKET_SLOTS, Cell, Directory, HomeBucket, LINE_BUCKETS, Line, Segment, Slot, SlotAt, line_at,
};
use crate::memory::Pool;
use crate::table::{Chain, Fetched, Index};
use crossbeam_utils::CachePadded;
use glimmer_base::Keyhash;
use glimmer_base::counter::Counter;
use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::{AtomicU64, fence, in_program_order, weakened};

/// An index of segments, at the end of a pool that has items at its beginning.
pub struct CuckooIndex {
    pub(crate) pool: Pool,
    pub(crate) directory: Directory,
    /// Pages of the pool that are the index's.
    pub(crate) pages: Counter,
    /// What is not to be stored is stored here.
    pub(crate) nowhere: CachePadded<AtomicU64>,
}

impl CuckooIndex {
    /// The segment that a home lies in.
    #[inline(always)]
    pub fn segment(&self, home: &HomeBucket) -> Segment<'_> {
        self.segment_on(home.page as usize)
    }

    /// The segment on a page.
    #[inline(always)]
    pub fn segment_on(&self, page: usize) -> Segment<'_> {
        self.directory.segment_on(&self.pool, page)
    }

    /// The line of a slot.
    #[inline(always)]
    pub fn line(&self, at: SlotAt) -> Line<'_> {
        line_at(&self.pool, at.line)
    }

    /// The slot that names the item at a word; for the writer.
    #[inline(always)]
    pub fn slot_of(&self, keyhash: Keyhash, at: usize) -> Option<(SlotAt, Slot)> {
        let mut candidates = self.candidates(self.home(keyhash), keyhash);
        candidates.find(|(_, slot)| slot.offset() == at)
    }

    /// Empties the slots of a line that readers may be looking at.
    pub(crate) fn empty_line(&self, line: usize, shared: bool) {
        let empty = |line: Line<'_>| {
            for (bucket, place) in places() {
                line.clear(bucket, place);
            }
        };
        self.change(line, shared, || empty(line_at(&self.pool, line)));
    }
}

/// Every slot of a line.
pub(crate) fn places() -> impl Iterator<Item = (usize, usize)> {
    (0..LINE_BUCKETS).flat_map(|bucket| (0..BUCKET_SLOTS).map(move |place| (bucket, place)))
}

impl Fetched for Slot {
    #[inline(always)]
    fn is_fetched(self) -> bool {
        Slot::is_fetched(self)
    }
}

impl Index for CuckooIndex {
    type HomeBucket = HomeBucket;
    /// The first word of a line.
    type Lock = usize;
    type Slot = SlotAt;
    type Cell<'a> = Cell<'a>;
    type Entry = Slot;

    #[inline(always)]
    fn home(&self, keyhash: Keyhash) -> HomeBucket {
        self.directory.home(keyhash)
    }

    /// The default home, which is no key's, has tag zero.
    #[inline(always)]
    fn home_again(&self, home: HomeBucket, keyhash: Keyhash) -> HomeBucket {
        // All else follows from the keyhash alone; only the segment may have been split since, or
        // been flushed.
        if home.tag != 0 && (weakened("home_recheck") || self.directory.is_home(&home)) {
            return home;
        }
        self.home(keyhash)
    }

    #[inline(always)]
    fn prefetch(&self, home: HomeBucket) {
        let segment = self.segment(&home);
        for bucket in home.buckets {
            self.pool.prefetch(segment.locate(bucket).0);
        }
    }

    #[inline(always)]
    fn seek(&self, home: &mut HomeBucket, mut meet: impl FnMut(Slot)) -> bool {
        let mut candidates = self.segment(home).candidates(home.buckets, home.tag());
        home.place = candidates.place().into();
        candidates.by_ref().for_each(|(_, slot)| meet(slot));
        false
    }

    #[inline(always)]
    fn carried(&self, home: HomeBucket, _keyhash: Keyhash) -> Option<((SlotAt, Slot), Cell<'_>)> {
        let nth = usize::from(home.place.checked_sub(1)?);
        let at = self.segment(&home).nth_slot(home.buckets, nth);
        let line = self.line(at);
        let bears_tag = line.tag(at.bucket, at.place) == home.tag();
        let cell = line.cell(at.bucket, at.place);
        bears_tag.then(|| ((at, cell.slot()), cell))
    }

    #[inline(always)]
    fn cell(&self, at: SlotAt) -> Cell<'_> {
        self.line(at).cell(at.bucket, at.place)
    }

    #[inline(always)]
    fn try_read<T>(
        &self,
        home: HomeBucket,
        keyhash: Keyhash,
        read: impl FnOnce(HomeBucket) -> T,
    ) -> Option<T> {
        let home = self.home_again(home, keyhash);
        let segment = self.segment(&home);
        let [first, second] = home
            .buckets
            .map(|bucket| line_at(&self.pool, segment.locate(bucket).0));
        let versions = (first.read_begin()?, second.read_begin()?);
        let taken = read(home);
        if !weakened("cuckoo_acquire_fence") {
            fence(Acquire);
        }
        let unchanged = weakened("cuckoo_version_recheck")
            || first.read_unchanged(versions.0) && second.read_unchanged(versions.1);
        (unchanged && self.directory.unchanged(&home)).then_some(taken)
    }

    #[inline(always)]
    fn candidates(
        &self,
        home: HomeBucket,
        _keyhash: Keyhash,
    ) -> impl Iterator<Item = (SlotAt, Slot)> {
        self.segment(&home).candidates(home.buckets, home.tag())
    }

    #[inline(always)]
    fn lock(&self, _home: HomeBucket, at: SlotAt) -> usize {
        at.line
    }

    #[inline(always)]
    fn begin_change(&self, line: usize, shared: bool) {
        if shared {
            line_at(&self.pool, line).write_begin(true);
        }
        in_program_order();
    }

    #[inline(always)]
    fn end_change(&self, line: usize, shared: bool) {
        if shared {
            line_at(&self.pool, line).write_end(true);
        }
        in_program_order();
    }

    #[inline(always)]
    fn clear(&self, at: SlotAt) {
        self.line(at).clear(at.bucket, at.place);
    }

    #[inline(always)]
    fn count_read(&self, cell: Cell<'_>, slot: Slot, _most: u8) {
        cell.mark_read(slot);
    }

    #[inline(always)]
    fn count_read_alone(&self, cell: Cell<'_>, _slot: Slot, _most: u8) {
        cell.set_read(&self.nowhere);
    }

    fn walk(&self, number: usize) -> Option<Chain<usize, impl Iterator<Item = (SlotAt, Slot)>>> {
        let directory = &self.directory;
        let lines = directory.slots_per_segment() / (LINE_BUCKETS * BUCKET_SLOTS);
        let (prefix, nth) = (number / lines, number % lines);
        let (page, run) = directory.segment_of(prefix)?;
        let line = self.segment_on(page as usize).lines().nth(nth)?;
        let next = match nth + 1 < lines {
            true => Some(number + 1),
            false => Some(run.end * lines).filter(|_| run.end < directory.prefixes()),
        };
        let it = line_at(&self.pool, line);
        let entries = places().filter_map(move |(bucket, place)| {
            let at = SlotAt {
                line,
                bucket,
                place,
            };
            (it.tag(bucket, place) != 0).then(|| (at, it.slot(bucket, place)))
        });
        Some(Chain {
            lock: line,
            entries,
            next,
        })
    }

    fn bytes(&self) -> u64 {
        let pages = 8 * self.pages.get() * self.pool.page_words() as u64;
        pages + self.directory.bytes() as u64
    }
}
