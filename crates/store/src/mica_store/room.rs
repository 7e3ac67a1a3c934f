//! What is done before a store is refused for want of room: expired items are looked for, the
//! index takes memory that the heap does not need, or gives back what it does not need itself, and
//! free space that is in pieces is brought together.
//!
//! All of this has one budget, as the gate is held meanwhile. What a store cannot finish the next
//! one goes on with: the search for expired items and the gathering of free space both have a
//! cursor, so that a store which there is memory for is refused a bounded number of times.

use super::Writer;
use super::relocate::Pending;
use crate::access::Access;
use crate::heap::Put;
use crate::heap::segregated_fits::Effort;
use crate::index::chained::BUCKET_WORDS;
use crate::table::{Heap, Index};
use glimmer_base::limits::BUCKETS_ADDED_FOR_ROOM_MAX;
use glimmer_base::{Keyhash, Moment};

/// What a store lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanting {
    /// Words in the heap.
    Words,
    /// A spare bucket, as its chain has no free slot.
    Slot,
    /// A slot in a chain that has no free one and may not become longer.
    SlotOfFullChain,
}

/// What one store may do for room: some hundred microseconds.
const EFFORT_MAX: usize = 30_000;
/// What the search for expired items in the index leaves of it: the heap is gone through as well.
const KEPT_BY_SEARCH: usize = EFFORT_MAX / 4 * 3;
/// What merging buckets leaves of it.
const KEPT_BY_MERGES: usize = EFFORT_MAX / 2;

/// Scanning a chain for expired items, and freeing one of them.
const SCANNING: usize = 50;
/// See [`SCANNING`].
const FREEING: usize = 20;
/// Adding a main bucket to the index.
const ADDING: usize = 100;
/// Merging two main buckets.
const MERGING: usize = 15;

/// How a writer tries to store an item.
type TryPut<W> = fn(&mut W, &Put<'_>) -> Result<(), Wanting>;

impl<A: Access> Writer<'_, A> {
    /// Stores an item for which there is no room yet; says whether room was found.
    #[inline(never)]
    pub(super) fn put_in_room_to_be_found(&mut self, put: &Put<'_>) -> bool {
        self.put_in_room(put, Self::try_put)
    }

    /// The same for an item that is stored by `try_put`, unless it wants room.
    ///
    /// Where the chain of the key is full, another one takes the item. Keys that collide in their
    /// keyhashes spread by their second ones over half of all chains, which the full one is not
    /// among. So keys of one bucket are refused only when memory is used up.
    #[inline(never)]
    pub(super) fn put_in_room(&mut self, put: &Put<'_>, try_put: TryPut<Self>) -> bool {
        self.take_back_uploads();
        let common = &self.shared.common;
        let mut effort = Effort::new(EFFORT_MAX);
        let mut growth_left = BUCKETS_ADDED_FOR_ROOM_MAX;
        if self.state.border.is_withheld() {
            self.follow_border();
        }
        let mut stored = self.find_room((put, try_put), &mut growth_left, &mut effort);
        if stored == Err(Wanting::SlotOfFullChain) {
            common.note_overflow();
            let put = put.under(common.second(put.keyhash, put.item.key));
            stored = self.find_room((&put, try_put), &mut growth_left, &mut effort);
            common.counters.overflowed.add(stored.is_ok().into());
        }
        common.counters.refused.add(stored.is_err().into());
        stored.is_ok()
    }

    /// Stores an item as soon as there is room for it, unless nothing can be done for what it wants
    /// in the end.
    fn find_room(
        &mut self,
        (put, try_put): (&Put<'_>, TryPut<Self>),
        growth_left: &mut usize,
        effort: &mut Effort,
    ) -> Result<(), Wanting> {
        let Put { keyhash, now, .. } = *put;
        while let Err(wanting) = try_put(self, put) {
            let is_worth_another_try = !effort.is_spent()
                && match wanting {
                    Wanting::Slot => self.make_room_for_entry(growth_left, effort, now),
                    Wanting::SlotOfFullChain => self.make_room_in_chain(keyhash, effort, now),
                    Wanting::Words => self.make_room_for_words(put.words, effort, now),
                };
            if !is_worth_another_try {
                return Err(wanting);
            }
        }
        Ok(())
    }

    /// Says whether anything was done for a slot in a chain that is full. The index does not grow
    /// for it: where the spare buckets of so long a chain are not lacked elsewhere, its keys
    /// collide, and growth that does not part them would only take memory.
    fn make_room_in_chain(&mut self, keyhash: Keyhash, effort: &mut Effort, now: Moment) -> bool {
        let index = &self.shared.index;
        let freed = self.expire_chain(index.chain_of(index.home(keyhash)), now);
        effort.spend(SCANNING + FREEING * freed as usize);
        self.shared.common.counters.expired_reclaimed.add(freed);
        freed > 0
    }

    /// Says whether anything was done for a slot in the index.
    fn make_room_for_entry(
        &mut self,
        growth_left: &mut usize,
        effort: &mut Effort,
        now: Moment,
    ) -> bool {
        if self.grow_index(growth_left, effort) || self.reclaim(effort, now) {
            return true;
        }
        if *growth_left == 0 {
            return false;
        }
        // The memory that the index wants may be free somewhere else.
        let is_done = self.shared.index.may_grow()
            && self.free_words() >= 2 * BUCKET_WORDS
            && !effort.is_spent();
        if is_done {
            self.state.pending = Some(Pending::to_the_top());
            self.compact(effort, now);
        }
        is_done
    }

    /// Says whether anything was done for a place in the heap.
    fn make_room_for_words(&mut self, words: usize, effort: &mut Effort, now: Moment) -> bool {
        let before = *effort;
        while self.reclaim(effort, now) {
            if self.has_room(words) {
                return true;
            }
        }
        if self.take_from_index(words, effort) {
            return true;
        }
        // All pieces together have to be enough.
        if !self.sweep(words, effort, now) {
            return false;
        }
        let pending = self.state.pending;
        let is_known = pending.is_some_and(|pending| pending.words() <= words);
        if !is_known && self.gather_at_once(words, effort, now) {
            return true;
        }
        self.state.pending = Some(Pending::for_words(words, pending));
        self.compact(effort, now);
        *effort != before
    }

    /// Whether the heap has a place for this many words.
    pub(super) fn has_room(&self, words: usize) -> bool {
        let border = self.state.border.open();
        self.state.fits.has_room(self.shared.space(), words, border)
    }

    /// Words of the heap that are free, together or not.
    pub(super) fn free_words(&self) -> usize {
        self.state.fits.free_words(self.state.border.open())
    }

    /// Adds one main bucket, if there is memory between heap and index and the request may still do
    /// so.
    fn grow_index(&mut self, growth_left: &mut usize, effort: &mut Effort) -> bool {
        if *growth_left == 0 {
            return false;
        }
        let shared = self.shared;
        let kept = self.state.fits.top();
        let is_live = |entry| shared.heap.is_live(entry);
        let grown = shared
            .index
            .grow(kept, &mut self.state.spares, is_live, A::SHARED_READS);
        let Some(spares_freed) = grown else {
            return false;
        };
        *growth_left -= 1;
        effort.spend(ADDING);
        shared.common.counters.spares_used.sub(spares_freed as u64);
        shared.common.counters.buckets_added.add(1);
        self.follow_border();
        true
    }

    /// Lets the heap go as far as it may by now.
    pub(super) fn follow_border(&mut self) {
        let shared = self.shared;
        (self.state.border).follow(&shared.index, self.seat);
    }

    /// Merges idle buckets until there is room for this many words between heap and index. Says
    /// whether the heap may have it already: memory that is withheld is for a later request. What
    /// has been merged stays so.
    fn take_from_index(&mut self, words: usize, effort: &mut Effort) -> bool {
        let end = self.state.fits.top() + words;
        while end > self.shared.index.border() {
            if effort.left() <= KEPT_BY_MERGES || !self.shrink_index() {
                return false;
            }
            effort.spend(MERGING);
        }
        end <= self.state.border.open()
    }

    /// Merges the last main bucket with the one that it was split from, if buckets are idle; says
    /// whether that was done.
    #[inline(always)]
    pub(super) fn shrink_index(&mut self) -> bool {
        self.shared
            .index
            .is_idle(self.shared.common.counters.items.get())
            && self.merge_last_bucket()
    }

    #[inline(never)]
    fn merge_last_bucket(&mut self) -> bool {
        let shared = self.shared;
        let is_live = |entry| shared.heap.is_live(entry);
        let spares = &mut self.state.spares;
        let Some(spares_freed) = shared.index.shrink(spares, is_live, A::SHARED_READS) else {
            return false;
        };
        shared.common.counters.spares_used.sub(spares_freed as u64);
        shared.common.counters.buckets_merged.add(1);
        self.follow_border();
        self.state.scan.soonest.spoil_round();
        true
    }

    /// Scans chains until one has given something back or the search has had its part of the
    /// effort. Where nothing has expired nothing is scanned, so that a store that is refused takes
    /// no longer than one that is not.
    fn reclaim(&mut self, effort: &mut Effort, now: Moment) -> bool {
        while effort.left() > KEPT_BY_SEARCH && self.has_to_scan(now) {
            let freed = self.scan_next(now);
            effort.spend(SCANNING + FREEING * freed);
            if freed > 0 {
                return true;
            }
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::access::Crew;
    use crate::heap::NewItem;
    use crate::heap::segregated_fits::{DROPPING, sliding};
    use crate::index::CHAIN_ENTRIES_MAX;
    use crate::memory::PagePolicy;
    use crate::mica_store::{Owner, StoreConfig};
    use crate::table::{Stored, Table, TableWriter};
    use crate::work;
    use glimmer_base::{Expiry, Seed};

    fn put(owner: &mut Owner<Crew>, key: u32, value: &[u8], expiry: Expiry, ms: u64) -> bool {
        let key = key.to_be_bytes();
        let item = NewItem {
            expiry,
            ..NewItem::new(&key, value)
        };
        let now = Moment {
            ms,
            epoch_unix_ms: 0,
        };
        let keyhash = Seed(0).keyhash(&key);
        matches!(owner.enter(0).put(keyhash, &item, now), Stored::Yes(_))
    }

    /// Keys that collide in all bits that the index goes by fill their chain, and then go where
    /// their second keyhashes say. The index does not grow for them: that would not part them.
    #[test]
    fn what_a_full_chain_does_not_take_goes_to_others() {
        let mut owner = Owner::<Crew>::new(&StoreConfig {
            bytes: 8 << 20,
            roots: Some(16),
            pages: PagePolicy::Small,
            ..StoreConfig::default()
        })
        .unwrap();
        let collides = |key: &u32| {
            let keyhash = Seed(0).keyhash(&key.to_be_bytes());
            keyhash.bucket(16) == 0 && keyhash.tag() & 0xFF == 1
        };
        let mut keys = (0..).filter(collides);
        let stored = keys
            .by_ref()
            .take(CHAIN_ENTRIES_MAX)
            .take_while(|&key| put(&mut owner, key, &[1], Expiry::NEVER, 2_000));
        assert_eq!(stored.count(), CHAIN_ENTRIES_MAX);
        let figures = |owner: &Owner<Crew>| {
            let counts = owner.figures().counts(0);
            (counts.buckets_added, counts.overflowed)
        };
        let (before, _) = figures(&owner);
        for key in keys.take(100) {
            assert!(put(&mut owner, key, &[1], Expiry::NEVER, 2_000));
        }
        assert_eq!(figures(&owner), (before, 100));
        let mut others = (0..5_000).filter(|key| !collides(key));
        assert!(others.all(|key| put(&mut owner, key, &[1], Expiry::NEVER, 2_000)));
        assert_eq!(owner.figures().counts(0).refused, 0);
    }

    /// What has expired in a full chain makes room for those that come.
    #[test]
    fn a_full_chain_takes_new_items_once_old_ones_have_expired() {
        let mut owner = Owner::<Crew>::new(&StoreConfig {
            bytes: 8 << 20,
            roots: Some(16),
            pages: PagePolicy::Small,
            ..StoreConfig::default()
        })
        .unwrap();
        let collides = |key: &u32| {
            let keyhash = Seed(0).keyhash(&key.to_be_bytes());
            keyhash.bucket(16) == 0 && keyhash.tag() & 0xFF == 1
        };
        let mut keys = (0..).filter(collides);
        for key in keys.by_ref().take(CHAIN_ENTRIES_MAX) {
            assert!(put(&mut owner, key, &[1], Expiry::at_ms(3_000), 2_000));
        }
        for key in keys.take(CHAIN_ENTRIES_MAX) {
            assert!(put(&mut owner, key, &[1], Expiry::NEVER, 4_000));
        }
        assert_eq!(owner.figures().counts(0).overflowed, 0);
    }

    /// Chains that give a little back each, and pieces that are never enough: what a store does
    /// before it is refused is bounded by one budget, however often something has been found.
    #[test]
    fn what_a_refused_store_does_is_bounded() {
        let mut owner = Owner::<Crew>::new(&StoreConfig {
            bytes: 8 << 20,
            pages: PagePolicy::Small,
            ..StoreConfig::default()
        })
        .unwrap();
        let mut held = 0;
        let expiry = |n: u32| match n % 4 {
            0 => Expiry::at_ms(5_000),
            _ => Expiry::NEVER,
        };
        while put(&mut owner, held, &[1; 12], expiry(held), 2_000) {
            held += 1;
        }
        let large = vec![2; 1_000 << 10];
        for _ in 0..10 {
            work::take();
            let before = owner.enter(0).shared.common.counters.counts();
            assert!(!put(&mut owner, held, &large, Expiry::NEVER, 5_000));
            let looked_at = work::take().examined;
            let after = owner.enter(0).shared.common.counters.counts();
            let (moved, expired) = (
                (after.moved - before.moved) as usize,
                (after.expired_reclaimed - before.expired_reclaimed) as usize,
            );
            println!("{} looked at, {moved} moved, {expired} expired", looked_at);
            assert!(moved <= EFFORT_MAX / sliding(3));
            assert!(expired <= EFFORT_MAX / FREEING + EFFORT_MAX / DROPPING);
            // The search for a beginning, and a look ahead of every item that is slid.
            assert!(looked_at <= EFFORT_MAX / 4 + EFFORT_MAX / sliding(3) + 64);
            assert!(moved + expired > 0, "there is more to do");
        }
    }
}
