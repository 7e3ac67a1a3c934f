//! Growth of the index: a slot for a new item, by moving others along a cuckoo path, by splitting
//! the segment, or, where the index may not grow, by eviction.

use super::{Shared, State, Writer};
use crate::access::Access;
use crate::index::cuckoo::{BUCKET_SLOTS, HomeBucket, SlotAt, line_at, places};
use crate::memory::LINE_WORDS;
use crate::removals::Reason;
use crate::table::Index;
use crate::work;
use glimmer_base::limits::SPLIT_SLOTS_MAX;
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};

/// Lines ahead of the one being split whose items are fetched.
const AHEAD: usize = 4;

impl<A: Access> Writer<'_, A> {
    /// Makes sure that one of the key's buckets has an empty slot.
    #[inline(always)]
    pub(super) fn make_slot(&mut self, keyhash: Keyhash, now: Moment) {
        let shared = self.shared;
        let home = shared.index.home(keyhash);
        let segment = shared.index.segment(&home);
        if segment.empty(home.buckets).is_none() {
            self.make_slot_by_moving(keyhash, now);
        }
    }

    #[inline(never)]
    fn make_slot_by_moving(&mut self, keyhash: Keyhash, now: Moment) {
        let shared = self.shared;
        let mut slots_split = 0;
        loop {
            let home = shared.index.home(keyhash);
            let segment = shared.index.segment(&home);
            if segment.empty(home.buckets).is_some() {
                return;
            }
            let State { search, path, .. } = &mut *self.state;
            let made = segment.make_empty(home.buckets, search, path, A::SHARED_READS);
            if made.is_some() && self.state.walk.is_some() {
                self.note_moves(&home);
            }
            if made.is_some() && shared.common.flushes.knows_groups() {
                self.note_moves_of_dead(&home);
            }
            if made.is_some() || self.drop_expired_from(&home, now) {
                return;
            }
            // One segment at least may be split. Where keys collide further splits could be as much
            // in vain as the first.
            let slots = shared.index.directory.slots_per_segment();
            let may_split = slots_split == 0 || slots_split + slots <= SPLIT_SLOTS_MAX;
            if !may_split || !self.split(&home, now) {
                self.evict_from(&home, now);
                return;
            }
            slots_split += slots;
        }
    }

    /// The slots of a home.
    fn slots_of(&self, home: &HomeBucket) -> impl Iterator<Item = SlotAt> {
        let segment = self.shared.index.segment(home);
        home.buckets
            .map(|bucket| segment.locate(bucket))
            .into_iter()
            .flat_map(|(line, bucket)| {
                (0..BUCKET_SLOTS).map(move |place| SlotAt {
                    line,
                    bucket,
                    place,
                })
            })
    }

    /// Removes an expired item from a home whose buckets are full; says whether there was one.
    fn drop_expired_from(&mut self, home: &HomeBucket, now: Moment) -> bool {
        if !self.state.expired.soonest.may_be_due(now) {
            return false;
        }
        let shared = self.shared;
        let is_expired = |&at: &SlotAt| {
            let slot = shared.index.line(at).slot(at.bucket, at.place);
            shared
                .item(slot)
                .is_some_and(|item| shared.common.had_ended(&item, now))
        };
        let found = self.slots_of(home).find(is_expired);
        if let Some(at) = found {
            let at = self.give_up(at, Reason::Expired, now);
            self.state.slabs.free(shared.pool(), at);
        }
        found.is_some()
    }

    /// Gives up one of the items in a home, one that was not used if there is one.
    fn evict_from(&mut self, home: &HomeBucket, now: Moment) {
        let shared = self.shared;
        let mut victim = None;
        for at in self.slots_of(home) {
            let line = shared.index.line(at);
            if !line.slot(at.bucket, at.place).is_recent() {
                victim = Some(at);
                break;
            }
            line.set_recent(at.bucket, at.place, false);
            victim = victim.or(Some(at));
        }
        let victim = victim.expect("both buckets are full");
        let at = self.give_up(victim, Reason::IndexFull, now);
        shared.common.counters.index_evictions.add(1);
        self.state.slabs.free(shared.pool(), at);
    }

    /// Splits a segment in two, by the next bit of the keyhash; false if the index may not grow. An
    /// item keeps its place, on one page or on the other, so nothing has to be searched for.
    ///
    /// Readers go on all the while: the new segment is filled, then the directory names it, and
    /// only then is the old one thinned out, under its lines' versions. A file learns of the new
    /// one when it is filled.
    #[cold]
    fn split(&mut self, home: &HomeBucket, now: Moment) -> bool {
        let shared = self.shared;
        let run = shared.index.directory.run(home.entry, home.page);
        if run.len() < 2 || self.state.segments >= self.state.segments_max {
            return false;
        }
        work::split();
        self.state.expired.soonest.spoil_round();
        let Some(page) = self.index_page(now) else {
            return false;
        };
        let upper = run.start + run.len() / 2..run.end;
        let (old, new) = (shared.index.segment(home), shared.index.segment_on(page));
        let mut leaving = core::mem::take(&mut self.state.leaving);
        leaving.clear();
        let mut ahead = old.lines().skip(AHEAD);
        for (line, copy) in old.lines().zip(new.lines()) {
            if let Some(next) = ahead.next() {
                shared.prefetch_items_of(next);
            }
            leaving.push(shared.copy_leaving(line, copy, upper.start));
        }
        self.note_segment(&upper);
        shared.index.directory.assign(upper, page);
        for (line, &mask) in old.lines().zip(&leaving) {
            shared.clear_leaving(line, mask, A::SHARED_READS);
        }
        self.state.leaving = leaving;
        self.state.segments += 1;
        true
    }

    /// A page for a new segment: one that the index had before a flush, else the last of the
    /// items' pages. What is on that one leaves only if there is no room for it elsewhere. None if
    /// an upload on it has to stay.
    fn index_page(&mut self, now: Moment) -> Option<usize> {
        let shared = self.shared;
        let pages = shared.pool().pages();
        let next = pages - 1 - self.state.segments;
        if next >= self.state.slabs.item_pages() {
            return Some(next);
        }
        if !self.vacate(self.state.slabs.last_page(), now) {
            return None;
        }
        shared.index.pages.add(1);
        Some(self.state.slabs.give_last_page())
    }
}

impl Shared {
    fn prefetch_items_of(&self, line: usize) {
        let line = line_at(self.pool(), line);
        for (bucket, place) in places() {
            if line.tag(bucket, place) != 0 {
                self.pool().prefetch(line.slot(bucket, place).offset());
            }
        }
    }

    /// Fills a line of a new segment with the slots of the old one's whose keys have prefixes from
    /// `upper` on; gives back which those are.
    fn copy_leaving(&self, line: usize, copy: usize, upper: usize) -> u16 {
        debug_assert!(line.is_multiple_of(LINE_WORDS));
        let (old, new) = (line_at(self.pool(), line), line_at(self.pool(), copy));
        new.format();
        let mut leaving = 0;
        for (nth, (bucket, place)) in places().enumerate() {
            work::examined(1);
            let (tag, slot) = (old.tag(bucket, place), old.slot(bucket, place));
            if tag == 0 {
                continue;
            }
            let item = self.item(slot).expect("a slot names an item");
            if self.index.directory.entry(self.common.keyhash(&item)) >= upper {
                new.set(bucket, place, tag, slot);
                leaving |= 1 << nth;
            }
        }
        leaving
    }

    fn clear_leaving(&self, line: usize, leaving: u16, shared: bool) {
        if leaving == 0 {
            return;
        }
        let shared = shared && !weakened("cuckoo_split_version");
        self.index.change(line, shared, || {
            let line = line_at(self.pool(), line);
            for (nth, (bucket, place)) in places().enumerate() {
                if leaving & (1 << nth) != 0 {
                    line.clear(bucket, place);
                }
            }
        });
    }
}
