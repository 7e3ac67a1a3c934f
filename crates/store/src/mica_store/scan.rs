//! The incremental scan: it frees items that have expired without being asked for, and clears
//! entries that a flush has left.
//!
//! Stores pay for it. After a flush every store scans a chain, so that the chains are clean long
//! before they fill again. Generations start again after some thousand flushes; so every flush
//! scans a share as well, large enough that a whole round lies between the first and the last.

use super::Found;
use super::Writer;
use super::name::{Generation, Name};
use crate::access::Access;
use crate::heap::{Item, Put};
use crate::index::{BUCKET_ENTRIES, Entry};
use crate::table::{Heap, Soonest};
use crate::work;
use glimmer_base::Moment;

/// Where the scan stands.
#[derive(Default)]
pub(super) struct Cursor {
    main: usize,
    /// Chains that have not been looked at since the last flush.
    after_flush: usize,
    inserts: u8,
    /// When there is something to be found again.
    pub soonest: Soonest,
}

impl Cursor {
    /// Where it stands, as two words.
    pub fn words(&self) -> [u64; 2] {
        [self.main as u64, self.after_flush as u64]
    }

    /// Goes on from where another one stood.
    pub fn resume(&mut self, [main, after_flush]: [u64; 2]) {
        self.main = main as usize;
        self.after_flush = after_flush as usize;
        self.soonest.spoil_round();
    }
}

/// Inserts that pay for one chain.
const INSERTS_PER_CHAIN: u8 = 8;

/// A whole round of the scan lies in as many flushes.
const FLUSHES_PER_ROUND: u64 = Generation::COUNT / 2;

impl<A: Access> Writer<'_, A> {
    /// Scans what an insert pays for.
    #[inline(always)]
    pub(super) fn scan_after_insert(&mut self, now: Moment) {
        let cursor = &mut self.state.scan;
        cursor.inserts += 1;
        if cursor.inserts >= INSERTS_PER_CHAIN || cursor.after_flush > 0 {
            cursor.inserts = 0;
            self.scan_next(now);
            // After a flush, or where items expire.
            self.shrink_index();
            if self.state.pending.is_some() {
                self.compact_after_insert(now);
            }
        }
    }

    /// Scans what a flush pays for.
    pub(super) fn scan_after_flush(&mut self) {
        let mains = self.shared.index.shape().mains();
        self.state.scan.after_flush = mains;
        for _ in 0..mains.div_ceil(FLUSHES_PER_ROUND as usize) {
            let home = self.next_chain();
            work::examined(BUCKET_ENTRIES);
            self.clear_stale(home);
        }
    }

    fn next_chain(&mut self) -> usize {
        let mains = self.shared.index.shape().mains();
        let cursor = &mut self.state.scan;
        // The index may have changed since.
        let main = if cursor.main < mains { cursor.main } else { 0 };
        if main == 0 {
            cursor.soonest.begin_round();
        }
        cursor.main = main + 1;
        cursor.after_flush = cursor.after_flush.saturating_sub(1);
        self.shared.index.main(main)
    }

    /// Whether the scan may find anything that can be freed.
    pub(super) fn has_to_scan(&self, now: Moment) -> bool {
        self.state.scan.after_flush > 0
            || self.state.scan.soonest.may_be_due(now)
            || self.shared.common.flushes.knows_groups()
    }

    /// Scans the chain whose turn it is; says how many items and entries that has freed.
    #[inline(never)]
    pub(super) fn scan_next(&mut self, now: Moment) -> usize {
        let home = self.next_chain();
        work::examined(BUCKET_ENTRIES);
        let cleared = self.clear_stale(home);
        let freed = self.expire_chain(home, now);
        self.shared.common.counters.expired_reclaimed.add(freed);
        freed as usize + cleared
    }

    /// Frees the items of a chain that have expired, and says how many.
    pub(super) fn expire_chain(&mut self, home: usize, now: Moment) -> u64 {
        let shared = self.shared;
        work::examined(BUCKET_ENTRIES);
        let any = shared.common.flushes.knows_groups();
        let expiring = |&(_, entry): &(_, Entry)| {
            shared.heap.is_live(entry) && (any || Name::of(entry).expires)
        };
        for (_, entry) in shared.index.slots(home).filter(expiring) {
            shared.space().prefetch(Name::of(entry).at);
        }
        let mut freed = 0;
        for (slot, entry) in shared.index.slots(home).filter(expiring) {
            let at = Name::of(entry).at;
            let item = Item::read(shared.space().place(at)).expect("an entry names an item");
            if shared.common.had_ended(&item, now) {
                self.remove_expired(shared.found(home, (slot, entry), item), now);
                freed += 1;
            } else {
                self.state.scan.soonest.meet(item.expiry());
            }
        }
        self.shorten_chain(home);
        freed
    }

    /// Whether the old item of a key is not there for the one that is put.
    #[inline(always)]
    pub(super) fn is_gone(&self, found: &Found<'_>, put: &Put<'_>) -> bool {
        self.shared.common.had_ended(&found.item, put.now)
    }

    /// Frees an item that has expired and that a request came upon. The chain keeps its buckets.
    pub(super) fn reclaim_expired(&mut self, found: Found<'_>, now: Moment) {
        self.shared.common.counters.expired_reclaimed.add(1);
        self.remove_expired(found, now);
    }

    /// Gives back the spare buckets that a chain no longer needs.
    #[inline(always)]
    pub(super) fn shorten_chain(&mut self, home: usize) {
        let shared = self.shared;
        if shared.index.bucket(home).next().is_some() {
            let spares = &mut self.state.spares;
            let is_live = |entry| shared.heap.is_live(entry);
            let freed = shared.index.shorten(home, spares, is_live, A::SHARED_READS);
            shared.common.counters.spares_used.sub(freed as u64);
        }
    }

    /// Clears the entries of a chain that name nothing; says how many there were.
    fn clear_stale(&mut self, home: usize) -> usize {
        let shared = self.shared;
        let is_stale = |entry: Entry| !entry.is_empty() && !shared.heap.is_live(entry);
        let cleared = shared.index.clear_if(home, is_stale, A::SHARED_READS);
        shared.common.counters.stale_removed.add(cleared);
        cleared as usize
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::access::Erew;
    use crate::heap::{History, NewItem};
    use crate::memory::PagePolicy;
    use crate::mica_store::{Owner, StoreConfig};
    use crate::table::{Stored, Table, TableWriter};
    use glimmer_base::{Expiry, Moment, Seed};

    const EXPIRY_MS: u64 = 5_000;

    fn at(ms: u64) -> Moment {
        Moment {
            ms,
            epoch_unix_ms: 0,
        }
    }

    /// A full partition in which this many items expire.
    fn full(expiring: u32) -> (Owner<Erew>, u32) {
        let config = StoreConfig {
            bytes: 4 << 20,
            pages: PagePolicy::Small,
            ..StoreConfig::default()
        };
        let mut owner = Owner::new(&config).unwrap();
        let mut stored = 0;
        loop {
            let expiry = if stored < expiring {
                Expiry::at_ms(EXPIRY_MS)
            } else {
                Expiry::NEVER
            };
            let mut keys = stored..stored + 32;
            if !keys.any(|key| put(&mut owner, key, expiry, 2_000)) {
                return (owner, stored);
            }
            stored = keys.start;
        }
    }

    fn put(owner: &mut Owner<Erew>, number: u32, expiry: Expiry, now_ms: u64) -> bool {
        let key = number.to_be_bytes();
        let item = NewItem {
            key: &key,
            value: [&[7; 40], &[]],
            flags: 0,
            expiry,
            history: History::NEW,
        };
        let keyhash = Seed(0).keyhash(&key);
        let stored = owner.enter(0).put(keyhash, &item, at(now_ms));
        matches!(stored, Stored::Yes(_))
    }

    /// The chain whose turn it is before and after some stores, and how many of them were refused.
    fn turns(owner: &mut Owner<Erew>, numbers: std::ops::Range<u32>, now_ms: u64) -> (bool, usize) {
        let before = owner.enter(0).state.scan.main;
        let refused = numbers
            .filter(|&number| !put(owner, number, Expiry::NEVER, now_ms))
            .count();
        (owner.enter(0).state.scan.main != before, refused)
    }

    #[test]
    fn a_store_that_is_refused_scans_only_where_something_may_have_expired() {
        let (mut owner, stored) = full(0);
        let (scanned, refused) = turns(&mut owner, stored..stored + 100, u64::MAX - 1);
        assert!(!scanned && refused == 100, "{refused}");

        let (mut owner, stored) = full(100);
        let (scanned, refused) = turns(&mut owner, stored..stored + 100, EXPIRY_MS - 1);
        assert!(!scanned && refused == 100, "{refused}");
        let mut refused = usize::MAX;
        let mut number = stored;
        while refused > 0 && number < 1_000_000 {
            let (scanned, now) = turns(&mut owner, number..number + 1, EXPIRY_MS);
            assert!(scanned);
            (refused, number) = (now, number + 1);
        }
        assert_eq!(refused, 0, "expired items make room");
        // All of them are found, and after another whole round the scan stops looking.
        while turns(&mut owner, number..number + 1, EXPIRY_MS).0 {
            number += 1;
            assert!(number < 1_000_000, "the scan never comes to rest");
        }
    }
}
