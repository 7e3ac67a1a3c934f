//! A free slot in a chain, and the spare buckets that make one when the main bucket is full.
//!
//! The paper's lossy index evicts an entry as soon as its 15-entry bucket is full. At the load that
//! saves memory (about 80%) that loses 3% of the items long before the log is full, so overflow
//! goes to spare buckets first, as in the paper's store mode (§4.3.3); only when they are used up
//! the oldest entry goes.

use super::Writer;
use crate::access::Access;
use crate::heap::Item;
use crate::index::chained::ChainedIndex;
use crate::index::{CHAIN_BUCKETS_MAX, LogId, Slot};
use crate::removals::Reason;
use crate::table::Heap;
use glimmer_base::Moment;
use glimmer_base::sync::in_program_order;

/// Chains that are scanned at most to find a spare bucket for one that needs it,
const SCANNED_FOR_A_SPARE: usize = 16;
/// unless this many stores in a row have scanned in vain: then one chain is scanned.
const SCANNED_IN_VAIN_MAX: u32 = 64;

impl<A: Access> Writer<'_, A> {
    /// A slot of the chain for a new entry: an empty one, else the one whose item has been gone
    /// longest, else one in a spare bucket, else the oldest item's. The chain is locked.
    #[inline(always)]
    pub(super) fn free_slot(&mut self, home: usize, now: Moment) -> Slot {
        match self.shared.index.empty_slot(home) {
            Some(slot) => slot,
            None => self.free_slot_in_full_bucket(home, now),
        }
    }

    #[inline(never)]
    fn free_slot_in_full_bucket(&mut self, home: usize, now: Moment) -> Slot {
        let shared = self.shared;
        let (mut oldest_dead, mut oldest_live, mut last, mut length) = (None, None, home, 0);
        for number in shared.index.chain(home) {
            (last, length) = (number, length + 1);
            let count = ChainedIndex::entries_of(home, number);
            for (entry, it) in shared.index.bucket(number).entries(count).enumerate() {
                let slot = Slot {
                    bucket: number,
                    entry,
                };
                if it.is_empty() {
                    return slot;
                }
                let log = shared.log(it.log());
                // Logs of different lengths are compared by the part of them that is left.
                let rank = log.geometry().age_rank(it.offset(), log.head());
                let rank = (u128::from(rank) << 32) / u128::from(self.lap_words(it.log()));
                let oldest = if log.is_live(it.offset()) {
                    &mut oldest_live
                } else {
                    &mut oldest_dead
                };
                if oldest.is_none_or(|(other, _)| rank < other) {
                    *oldest = Some((rank, slot));
                }
            }
        }
        if let Some((_, slot)) = oldest_dead {
            if self.has_room_for_ghosts() {
                let ghost = shared.index.get(slot);
                let is_remembered = ghost.log() == LogId::Small && !shared.is_forgotten(ghost);
                self.state.growth.is_for_ghosts |= is_remembered;
                self.state.growth.is_wanted |= is_remembered;
            }
            return slot;
        }
        if length < CHAIN_BUCKETS_MAX
            && let Some(spare) = self.spare_bucket(home)
        {
            in_program_order();
            shared.index.bucket(last).set_next(Some(spare));
            in_program_order();
            shared.common.counters.spares_used.add(1);
            self.state.growth.is_wanted = true;
            return Slot {
                bucket: spare,
                entry: 0,
            };
        }
        self.state.growth.is_wanted = true;
        let slot = oldest_live.map(|(_, slot)| slot).unwrap_or(Slot {
            bucket: home,
            entry: 0,
        });
        let victim = shared.index.get(slot);
        let log = shared.log(victim.log());
        if let Some(item) = Item::read(log.place(log.geometry().position(victim.offset()))) {
            let is_evicted = !shared.common.had_ended(&item, now);
            shared
                .common
                .counters
                .index_evictions
                .add(is_evicted.into());
            shared
                .common
                .removed(&item, victim.is_fetched(), Reason::IndexFull, now);
        }
        slot
    }

    /// A bucket from the free list, or else one that some other chain no longer needs: a few chains
    /// are scanned for it before their turn.
    fn spare_bucket(&mut self, home: usize) -> Option<usize> {
        let shared = self.shared;
        let mut spare = self.state.spares.take(&shared.index, home);
        let is_vain = self.state.scanned_in_vain >= SCANNED_IN_VAIN_MAX;
        for _ in 0..if is_vain { 1 } else { SCANNED_FOR_A_SPARE } {
            if spare.is_some() {
                break;
            }
            // The chain that wants the bucket is locked, and has no room anyway.
            self.scan_next(Some(home));
            spare = self.state.spares.take(&shared.index, home);
        }
        self.state.scanned_in_vain = match spare {
            Some(_) => 0,
            None => self.state.scanned_in_vain.saturating_add(1),
        };
        spare
    }

    /// Gives back the spare buckets that a chain's live entries do not need. Dangling ones give
    /// way: a spare bucket is worth more than a memory of who left. The chain is not locked yet.
    pub(super) fn shorten_chain(&mut self, home: usize) {
        let shared = self.shared;
        let is_live = |entry| shared.heap.is_live(entry);
        let spares = &mut self.state.spares;
        let freed = (shared.index).shorten(home, spares, is_live, A::SHARED_READS);
        shared.common.counters.spares_used.sub(freed as u64);
    }
}
