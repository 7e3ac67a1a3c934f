//! A free slot in a chain, and the spare buckets that make one when the main bucket is full.
//!
//! The paper's lossy index evicts an entry as soon as its 15-entry bucket is full. At the load that
//! saves memory (about 80%) that loses 3% of the items long before the log is full, so overflow
//! goes to spare buckets first, as in the paper's store mode (§4.3.3); only when they are used up
//! the oldest entry goes.

use super::Writer;
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::Item;
use crate::index::{BUCKET_ENTRIES, CHAIN_BUCKETS_MAX, Entry, Index, Slot};

/// Chains that are scanned at most to find a spare bucket for one that needs it.
const SCANNED_FOR_A_SPARE: usize = 16;

/// Spare buckets that are not in any chain.
#[derive(Default)]
pub(super) struct FreeList {
    /// Buckets that were given back, linked by their `next`.
    first: Option<usize>,
    /// How many have ever been taken fresh.
    fresh: usize,
}

impl FreeList {
    fn take(&mut self, index: &Index) -> Option<usize> {
        if let Some(number) = self.first {
            self.first = index.bucket(number).next();
            index.bucket(number).set_next(None);
            return Some(number);
        }
        (self.fresh < index.spares()).then(|| {
            self.fresh += 1;
            index.mains() + self.fresh - 1
        })
    }

    /// Takes back an empty bucket that no chain holds any more.
    pub fn give_back(&mut self, index: &Index, number: usize) {
        debug_assert!(number >= index.mains());
        index.bucket(number).set_next(self.first);
        self.first = Some(number);
    }
}

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// A slot of the chain for a new entry: an empty one, else the one whose item has been gone
    /// longest, else one in a spare bucket, else the oldest item's. The chain is locked.
    #[inline(always)]
    pub(super) fn free_slot(&mut self, home: usize) -> Slot {
        let bucket = self.shared.index.bucket(home);
        // An empty entry's tag is zero, and no item's is.
        if let Some(entry) = bucket.tagged(0).next() {
            return Slot {
                bucket: home,
                entry,
            };
        }
        self.free_slot_in_full_bucket(home)
    }

    #[inline(never)]
    fn free_slot_in_full_bucket(&mut self, home: usize) -> Slot {
        let shared = self.shared;
        let (mut oldest_dead, mut oldest_live, mut last, mut length) = (None, None, home, 0);
        for number in shared.index.chain(home) {
            (last, length) = (number, length + 1);
            for (entry, it) in shared.index.bucket(number).entries().enumerate() {
                let slot = Slot {
                    bucket: number,
                    entry,
                };
                if it.is_empty() {
                    return slot;
                }
                let (log, geometry) = (shared.log(it.log()), shared.log(it.log()).geometry());
                // Logs of different lengths are compared by the part of them that is left.
                let rank = (u128::from(geometry.age_rank(it.offset(), log.head())) << 32)
                    / u128::from(geometry.words());
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
            return slot;
        }
        if length < CHAIN_BUCKETS_MAX
            && let Some(spare) = self.spare_bucket(home)
        {
            shared.index.bucket(last).set_next(Some(spare));
            shared.counters.spares_used.add(1);
            return Slot {
                bucket: spare,
                entry: 0,
            };
        }
        let slot = oldest_live.map(|(_, slot)| slot).unwrap_or(Slot {
            bucket: home,
            entry: 0,
        });
        let victim = shared.index.get(slot);
        let log = shared.log(victim.log());
        if let Some(item) = Item::read(log.place(log.geometry().position(victim.offset()))) {
            shared.counters.index_evictions.add(1);
            shared.counters.gone(&item);
        }
        slot
    }

    /// A bucket from the free list, or else one that some other chain no longer needs: a few chains
    /// are scanned for it before their turn.
    fn spare_bucket(&mut self, home: usize) -> Option<usize> {
        let shared = self.shared;
        for _ in 0..SCANNED_FOR_A_SPARE {
            if let Some(spare) = self.state.spares.take(&shared.index) {
                return Some(spare);
            }
            // The chain that wants the bucket is locked, and has no room anyway.
            self.scan_next(Some(home));
        }
        self.state.spares.take(&shared.index)
    }

    /// Gives the chain's last bucket back if its live entries fit into the others. Dangling ones
    /// give way: a spare bucket is worth more than a memory of who left. The chain is not locked
    /// yet.
    pub(super) fn shorten_chain(&mut self, home: usize) {
        let shared = self.shared;
        let index = &shared.index;
        let Some((before, last)) = last_two(index, home) else {
            return;
        };
        let slots = |bucket: usize| (0..BUCKET_ENTRIES).map(move |entry| Slot { bucket, entry });
        let is_live = |slot: &Slot| {
            let entry = index.get(*slot);
            !entry.is_empty() && shared.log(entry.log()).is_live(entry.offset())
        };
        let others = || index.chain(home).filter(|&number| number != last);
        let places = || others().flat_map(slots).filter(|slot| !is_live(slot));
        let moving = || slots(last).filter(is_live);
        if places().count() < moving().count() {
            return;
        }
        let main = index.bucket(home);
        main.write_begin(A::SHARED_READS);
        for (from, to) in moving().zip(places()) {
            index.bucket(to.bucket).set_entry(to.entry, index.get(from));
        }
        for slot in slots(last) {
            index.bucket(last).set_entry(slot.entry, Entry::EMPTY);
        }
        index.bucket(before).set_next(None);
        main.write_end(A::SHARED_READS);
        self.state.spares.give_back(index, last);
        shared.counters.spares_used.sub(1);
    }
}

/// The last bucket of a chain and the one before it, if there are two.
fn last_two(index: &Index, home: usize) -> Option<(usize, usize)> {
    let mut chain = index.chain(home);
    let mut before = chain.next()?;
    let mut last = chain.next()?;
    for number in chain {
        (before, last) = (last, number);
    }
    Some((before, last))
}

const _: () = assert!(BUCKET_ENTRIES < 32, "places of a bucket fit a mask");
