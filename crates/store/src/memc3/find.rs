//! Which slots are live, and where their items lie.

use super::Shared;
use super::grow::places;
use crate::heap::Item;
use crate::index::cuckoo::{Home, Line, Segment, Slot, SlotAt, line_at};
use crate::memory::Words;
use crate::table::{self, Common, Taken};
use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::{fence, weakened};
use glimmer_base::{Keyhash, Moment};
use std::ops::Range;

impl Shared {
    #[inline(always)]
    pub(super) fn segment(&self, page: usize) -> Segment<'_> {
        self.directory.segment_on(&self.pool, page as u32)
    }

    #[inline(always)]
    pub(super) fn line(&self, at: SlotAt) -> Line<'_> {
        line_at(&self.pool, at.line)
    }

    #[inline(always)]
    pub(super) fn item_at(&self, at: usize) -> Option<Item<'_>> {
        Item::read(self.pool.place(at, self.item_words_max))
    }

    /// The slot that names the item at a word; for the writer.
    #[inline(always)]
    pub(super) fn slot_of(&self, keyhash: Keyhash, at: usize) -> Option<(SlotAt, Slot)> {
        let home = self.directory.home(keyhash);
        let segment = self.directory.segment(&self.pool, &home);
        segment
            .candidates(home.buckets, home.tag)
            .find(|(_, slot)| slot.offset() == at)
    }

    /// Fetches the lines of both buckets.
    #[inline(always)]
    pub(super) fn prefetch_buckets(&self, home: &Home) {
        let segment = self.directory.segment(&self.pool, home);
        for bucket in home.buckets {
            self.pool.prefetch(segment.locate(bucket).0);
        }
    }

    /// Empties the slots of a line that readers may be looking at.
    pub(super) fn empty_line(&self, line: usize, shared: bool) {
        let line = line_at(&self.pool, line);
        line.write_begin(shared);
        for (bucket, place) in places() {
            line.set(bucket, place, 0, Slot::new(0));
        }
        line.write_end(shared);
    }
}

impl table::Shared for Shared {
    type Index = Self;

    #[inline(always)]
    fn index(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    #[inline(always)]
    fn item_words_max(&self) -> usize {
        self.item_words_max
    }

    /// A slot with a tag names an item.
    #[inline(always)]
    fn words(&self, slot: Slot) -> Option<Words<'_>> {
        Some(self.pool.place(slot.offset(), self.item_words_max))
    }

    #[inline(always)]
    fn prefetch_item(&self, _keyhash: Keyhash, home: Home) {
        let segment = self.directory.segment(&self.pool, &home);
        for (_, slot) in segment.candidates(home.buckets, home.tag) {
            (self.common).prefetch(slot.offset(), |word| self.pool.prefetch(word));
        }
    }

    /// MemC3 §3.2.1 and §4.2. The argument why what it returns is neither torn nor stale nor
    /// another item's stands at [`line`](crate::index::cuckoo::line); why a segment that was split
    /// or given up is noticed, at
    /// [`Directory::unchanged`](crate::index::cuckoo::Directory::unchanged) and in the writer's
    /// `flush`.
    #[inline(always)]
    fn try_read<T>(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        flushes: u64,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<Taken<T, Self>> {
        let home = self.directory.home(keyhash);
        let segment = self.directory.segment(&self.pool, &home);
        let [first, second] = home
            .buckets
            .map(|bucket| line_at(&self.pool, segment.locate(bucket).0));
        let versions = (first.read_begin()?, second.read_begin()?);
        let taken = self.take(home, keyhash, key, now, take);
        if !weakened("cuckoo_acquire_fence") {
            fence(Acquire);
        }
        let unchanged = weakened("cuckoo_version_recheck")
            || first.read_unchanged(versions.0) && second.read_unchanged(versions.1);
        let same_life = self.common.flushes.is_still(flushes);
        (unchanged && same_life && self.directory.unchanged(&home)).then_some(taken)
    }

    fn heap_bytes(&self) -> u64 {
        let pages = self.pool.pages() as u64 - self.index_pages.get();
        8 * pages * self.pool.page_words() as u64
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        vec![self.pool.addresses()]
    }
}
