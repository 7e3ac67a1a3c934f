//! Removing an item: its index entry goes, and its place is free.

use super::Writer;
use super::find::Found;
use crate::access::Access;
use crate::heap::Marks;
use crate::index::Entry;
use crate::removals::Reason;
use crate::table::expired;
use glimmer_base::{Keyhash, Moment};

impl<A: Access> Writer<'_, A> {
    /// Removes the key's item; says whether there was one that had not expired.
    #[inline]
    pub fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        let home = self.home(keyhash);
        let Some(found) = self.shared.find(home, keyhash, key) else {
            return false;
        };
        if expired(&found.item, now) {
            self.take_out_expired(home, found, now);
            return false;
        }
        self.take_out(home, found);
        self.shorten_chain(home);
        self.shrink_index();
        true
    }

    /// Frees an item that has expired and that a request came upon. The chain keeps its buckets.
    #[inline(never)]
    pub(super) fn take_out_expired(&mut self, home: usize, found: Found<'_>, now: Moment) {
        self.free_expired(home, found, now);
        self.shared.counters.expired_reclaimed.add(1);
    }

    /// Frees an item that has expired and reports it. The chain keeps its buckets.
    pub(super) fn free_expired(&mut self, home: usize, found: Found<'_>, now: Moment) {
        let shared = self.shared;
        let is_fetched = found.entry.is_fetched() || found.item.marks().has(Marks::FETCHED);
        shared.counters.expired_unfetched.add((!is_fetched).into());
        shared
            .exit
            .removed(shared.seed, &found.item, Reason::Expired, is_fetched, now);
        self.take_out(home, found);
    }

    #[inline(always)]
    fn take_out(&mut self, home: usize, found: Found<'_>) {
        let shared = self.shared;
        let words = found.words();
        shared.counters.gone(&found.item);
        let main = shared.index.bucket(home);
        main.write_begin(A::SHARED_READS);
        shared.index.set(found.slot, Entry::EMPTY);
        main.write_end(A::SHARED_READS);
        self.state.fits.free(&shared.space, found.at, words);
    }

    /// Gives back the spare buckets that a chain no longer needs.
    #[inline(always)]
    pub(super) fn shorten_chain(&mut self, home: usize) {
        let shared = self.shared;
        if shared.index.bucket(home).next().is_some() {
            let spares = &mut self.state.spares;
            let is_live = |entry| shared.is_live(entry);
            let freed = shared.index.shorten(home, spares, is_live, A::SHARED_READS);
            shared.counters.spares_used.sub(freed as u64);
        }
    }
}
