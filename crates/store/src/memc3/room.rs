//! Room for an item: a free chunk, a free page, the chunk of the item that CLOCK gives up (MemC3
//! §4.2), or a slab of a class that holds older items.
//!
//! The items of a slab class stand in a circle, and a hand goes round it. Their bits lie in the
//! index slots, whose line a use has just looked at. Memory moves between classes by the same idea:
//! every slab knows when the hand of its class last passed it, so the class whose hand has been
//! away from its next slab for longest holds the oldest items.

use super::{Found, Writer};
use crate::access::Access;
use crate::evict::Budget;
use crate::heap::slab::ClassId;
use crate::index::cuckoo::SlotAt;
use crate::removals::Reason;
use crate::table::Index;
use crate::work;
use glimmer_base::Moment;
use glimmer_base::limits::MOVED_SLAB_BYTES_MAX;
use glimmer_base::sync::weakened;

/// Whether a class whose hand comes back to its slabs after `own` stored words should rather take
/// the slab of another class, to which its hand has not come back for `other`.
fn takes_from(own: u64, other: u64) -> bool {
    other / 2 > own
}

/// Whether a slab about to be taken is left alone once, because most of its items were used.
fn spares_slab(used: usize, items: usize) -> bool {
    2 * used > items
}

/// How many chunks ahead of the hand keys are hashed and their buckets fetched.
const AHEAD: usize = 8;

impl<A: Access> Writer<'_, A> {
    /// A chunk of a class, which no slot names. Never fails: there are pages for two of the largest
    /// items at least.
    #[inline]
    pub(super) fn allocate(&mut self, class: ClassId, now: Moment) -> usize {
        let pool = self.shared.pool();
        let at = match self.state.slabs.take(pool, class) {
            Some(at) => at,
            None => self.evict_for(class, now),
        };
        let names = at as u64..(at + self.state.slabs.chunk_words(class)) as u64;
        debug_assert!(!self.shared.common.loans.lends_within(names), "it is lent");
        at
    }

    fn evict_for(&mut self, class: ClassId, now: Moment) -> usize {
        let shared = self.shared;
        self.take_back_uploads();
        let mut budget = Budget::for_words(self.state.slabs.chunk_words(class) as u64);
        loop {
            // An item of the class may have been freed with its slab on the way.
            if let Some(at) = self.state.slabs.take(shared.pool(), class) {
                return at;
            }
            if self.state.slabs.add_slab(class) || self.take_unused_index_pages() {
                continue;
            }
            let at_hand = self.state.slabs.at_hand(shared.pool(), class);
            let at_hand = at_hand.filter(|_| self.state.slabs.has_items(class));
            let Some((chunk, begins_slab)) = at_hand else {
                self.take_slab_for(class, 0, &mut budget, now);
                continue;
            };
            if begins_slab {
                let own = self.state.slabs.age(class).map_or(0, |(age, _)| age);
                if self.take_slab_for(class, own, &mut budget, now) {
                    continue;
                }
            }
            work::examined(1);
            self.look_ahead(class);
            self.state.slabs.advance_hand(class);
            if self.is_reserved(chunk.at) {
                continue;
            }
            if self.examine(chunk.at, &mut budget, now) {
                self.state.slabs.count_reuse(class);
                return chunk.at;
            }
        }
    }

    /// Gives the pages that the index had before a flush and has not taken again to the items; says
    /// whether there were any.
    ///
    /// Readers that still look at them learn of the flush before they believe what they read. But
    /// one that has read already may be about to mark the slot that it has seen. So this waits
    /// until every worker has finished the batch in which it may do so: see
    /// [`batches`](crate::batches).
    #[cold]
    pub(super) fn take_unused_index_pages(&mut self) -> bool {
        let shared = self.shared;
        let Some(grace) = &mut self.state.unused else {
            return false;
        };
        if !grace.is_over(self.seat) && !weakened("memc3_pages_withheld") {
            return false;
        }
        self.state.unused = None;
        let index_begins = shared.pool().pages() - self.state.segments;
        if self.state.slabs.item_pages() == index_begins {
            return false;
        }
        self.state.slabs.take_back(index_begins);
        shared.index.pages.set(self.state.segments as u64);
        true
    }

    /// Unlinks the item at a word, which the hand has come to, unless CLOCK keeps the item or
    /// expired ones are found instead. Says whether it did. An item that was used goes too once the
    /// budget is spent.
    #[inline(always)]
    fn examine(&mut self, at: usize, budget: &mut Budget, now: Moment) -> bool {
        let shared = self.shared;
        let item = shared.item_at(at).expect("a full slab has no free chunk");
        let (slot_at, slot) = shared
            .index
            .slot_of(shared.common.keyhash(&item), at)
            .expect("a chunk in use has a slot");
        let dead = shared.common.had_ended(&item, now);
        if !dead && slot.is_recent() && budget.spare_item(0) {
            let line = shared.index.line(slot_at);
            line.set_recent(slot_at.bucket, slot_at.place, false);
            return false;
        }
        if !dead && self.finds_expired(|state| &mut state.expired, now) && budget.spare_item(0) {
            return false;
        }
        shared
            .common
            .removed(&item, slot.is_fetched(), Reason::Evicted, now);
        self.unlink(slot_at, (at, item.words()));
        true
    }

    /// Fetches the buckets of an item that the hand comes to soon.
    #[inline(always)]
    fn look_ahead(&self, class: ClassId) {
        let shared = self.shared;
        let ahead = self.state.slabs.ahead_of_hand(shared.pool(), class, AHEAD);
        if let Some(item) = ahead.and_then(|at| shared.item_at(at)) {
            let keyhash = shared.common.keyhash(&item);
            shared.index.prefetch(shared.index.home(keyhash));
        }
    }

    /// Makes pages free for a slab of a class whose own slabs are `own` words old, if another
    /// class's are much older or the class has no items; says whether it did. Slabs with uploads
    /// are spared, as those are that are in use.
    #[cold]
    fn take_slab_for(
        &mut self,
        class: ClassId,
        own: u64,
        budget: &mut Budget,
        now: Moment,
    ) -> bool {
        let has_none = !self.state.slabs.has_items(class);
        while let Some((age, oldest)) = self.state.slabs.oldest_but(class) {
            if !has_none && !takes_from(own, age) {
                return false;
            }
            let (_, slab) = self
                .state
                .slabs
                .age(oldest)
                .expect("the oldest has slabs, or it would have no age");
            let pages = self.state.slabs.run_near(class, slab);
            let is_pinned = self.state.slabs.is_pinned_within(pages.clone());
            if (is_pinned || self.collect(slab, slab)) && budget.spare_slab() {
                self.clear_bits();
                self.state.slabs.skip_slab(oldest);
                continue;
            }
            if is_pinned {
                break;
            }
            for page in pages {
                self.empty_page(page, now);
            }
            return true;
        }
        if has_none {
            self.free_pages_beside_uploads(self.state.slabs.slab_pages(class), now);
        }
        has_none
    }

    /// Notes what is in a slab and which slots name it, where it lay on `named` when they were
    /// written; says whether most of it was used.
    pub(super) fn collect(&mut self, slab: usize, named: usize) -> bool {
        let (shared, state) = (self.shared, &mut *self.state);
        let (first, named) = (
            shared.pool().first_word(slab),
            shared.pool().first_word(named),
        );
        state.slab_items.clear();
        state.slab_slots.clear();
        for at in state.slabs.chunks(shared.pool(), slab) {
            work::examined(1);
            if let Some(item) = shared.item_at(at) {
                let keyhash = shared.common.keyhash(&item);
                shared.index.prefetch(shared.index.home(keyhash));
                state.slab_items.push((keyhash, at - first + named));
            }
        }
        let mut used = 0;
        for &(keyhash, at) in &state.slab_items {
            if let Some((slot_at, slot)) = shared.index.slot_of(keyhash, at) {
                used += usize::from(slot.is_recent());
                state.slab_slots.push(slot_at);
            }
        }
        spares_slab(used, state.slab_slots.len())
    }

    fn clear_bits(&mut self) {
        for at in &self.state.slab_slots {
            self.shared
                .index
                .line(*at)
                .set_recent(at.bucket, at.place, false);
        }
    }

    /// Makes a page free by giving up the slab on it.
    pub(super) fn empty_page(&mut self, page: usize, now: Moment) {
        let Some(slab) = self.state.slabs.slab_on(page) else {
            return;
        };
        self.collect(slab, slab);
        for i in 0..self.state.slab_slots.len() {
            let slot_at = self.state.slab_slots[i];
            self.give_up(slot_at, Reason::Evicted, now);
        }
        self.state.slabs.release(slab);
    }

    /// Makes a page free by moving the slab on it. If the slab is too large for that, or there are
    /// no free pages for it, its items leave. Says whether it did: uploads may have to stay.
    pub(super) fn vacate(&mut self, page: usize, now: Moment) -> bool {
        let Some(slab) = self.state.slabs.slab_on(page) else {
            return true;
        };
        if self.state.slabs.reserved_in(slab) > 0 {
            return self.move_pinned(slab, now);
        }
        let shared = self.shared;
        let bytes = 8 * self.state.slabs.slab_words(shared.pool(), slab);
        let moved = (bytes <= MOVED_SLAB_BYTES_MAX)
            .then(|| self.state.slabs.relocate(shared.pool(), slab))
            .flatten();
        match moved {
            Some(to) => self.name_anew(slab, to),
            None => self.empty_page(page, now),
        }
        true
    }

    /// Makes the index name the items of a slab where they lie now. Readers may meet the old
    /// ones until then: no writer has written over those yet.
    pub(super) fn name_anew(&mut self, from: usize, to: usize) {
        let shared = self.shared;
        let (old, new) = (shared.pool().first_word(from), shared.pool().first_word(to));
        self.collect(to, from);
        let is_shared = A::SHARED_READS && !weakened("slab_move_version");
        for at in &self.state.slab_slots {
            let line = shared.index.line(*at);
            let (tag, slot) = (
                line.tag(at.bucket, at.place),
                line.slot(at.bucket, at.place),
            );
            let moved = slot.at(slot.offset() - old + new);
            let set = || line.set(at.bucket, at.place, tag, moved);
            shared.index.change(at.line, is_shared, set);
            work::moved(0);
        }
        // The pages that the slab has left are given to others.
        let left = old as u64..(old + self.state.slabs.slab_words(shared.pool(), to)) as u64;
        if !weakened("slab_move_loans") {
            shared.common.loans.give_up(|lent| left.contains(&lent));
        }
        shared
            .common
            .counters
            .moved
            .add(self.state.slab_slots.len() as u64);
    }

    /// Evicts the item that a slot names; its chunk is the caller's.
    pub(super) fn give_up(&mut self, slot_at: SlotAt, reason: Reason, now: Moment) -> usize {
        let shared = self.shared;
        let slot = shared
            .index
            .line(slot_at)
            .slot(slot_at.bucket, slot_at.place);
        let item = shared.item(slot).expect("a slot names an item");
        shared.common.removed(&item, slot.is_fetched(), reason, now);
        self.unlink(slot_at, (slot.offset(), item.words()));
        slot.offset()
    }

    /// Clears a slot: from now on no one finds its item, whose chunk may be stored to.
    #[inline(always)]
    fn unlink(&self, at: SlotAt, (chunk, words): (usize, usize)) {
        let index = &self.shared.index;
        index.change(at.line, A::SHARED_READS, || index.clear(at));
        self.shared.give_up_chunk(chunk, words);
    }

    /// Frees the chunk of an item that no slot names any more.
    #[inline(always)]
    pub(super) fn free_chunk_of(&mut self, found: &Found<'_>) {
        let (shared, at) = (self.shared, found.entry.offset());
        shared.give_up_chunk(at, found.item.words());
        self.state.slabs.free(shared.pool(), at);
    }
}
