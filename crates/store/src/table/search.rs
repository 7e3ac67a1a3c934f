//! Looking for items that have expired, in tables where live ones leave to make room.
//!
//! Eviction meets items in the order of its rule, and what has expired may lie anywhere. So before
//! a live item leaves, a few chains of the index are looked through, and what has expired there is
//! removed. As long as a good part of the items met has expired, there is dead memory to be found,
//! and live items may stay. Nothing is looked at before the first item expires.

use super::handles::Design;
use super::shared::{Chain, Index};
use super::{Soonest, Writer};
use crate::work;
use glimmer_base::Moment;

/// A search is worth its work if one in this many of the items met had expired.
const FRUITFUL_PART: u32 = 8;
/// What was found among this many items tells how it goes on.
const MET_MIN: u32 = 32;
/// Most chains that one call looks through.
const CHAINS_MAX: usize = 4;
/// A search that finds little is carried out once in this many calls.
const CALLS_PER_SEARCH: u8 = 8;

/// Where the search stands, and what it has found.
#[derive(Default)]
pub(crate) struct Search {
    /// When there is something to be found.
    pub soonest: Soonest,
    /// The chain that is looked through next.
    chain: usize,
    /// Items that were met, and how many of them had expired. Both are halved now and then.
    met: u32,
    expired: u32,
    /// Calls since the last search.
    calls: u8,
}

impl Search {
    fn is_fruitful(&self) -> bool {
        self.expired > 0 && self.expired * FRUITFUL_PART >= self.met
    }

    fn is_due(&mut self, now: Moment) -> bool {
        if !self.soonest.may_be_due(now) {
            return false;
        }
        self.calls = (self.calls + 1) % CALLS_PER_SEARCH;
        self.calls == 0 || self.met < MET_MIN || self.is_fruitful()
    }

    fn note(&mut self, met: u32, expired: u32) {
        if self.met >= MET_MIN {
            self.met /= 2;
            self.expired /= 2;
        }
        self.met += met;
        self.expired += expired;
    }
}

impl<D: Design> Writer<'_, D> {
    /// Looks for expired items if there may be some, and removes those that it finds. Says whether
    /// it has found so many that others are near.
    #[inline(never)]
    pub(crate) fn finds_expired(
        &mut self,
        search: fn(&mut D::State) -> &mut Search,
        now: Moment,
    ) -> bool {
        if !search(&mut self.state).is_due(now) {
            return false;
        }
        for _ in 0..CHAINS_MAX {
            self.search_chain(search, now);
            if search(&mut self.state).met >= MET_MIN {
                break;
            }
        }
        search(&mut self.state).is_fruitful()
    }

    fn search_chain(&mut self, search: fn(&mut D::State) -> &mut Search, now: Moment) {
        let shared = self.shared;
        let state = search(&mut self.state);
        if state.chain == 0 {
            state.soonest.begin_round();
        }
        let Some(Chain {
            lock,
            entries,
            next,
        }) = shared.index.walk(state.chain)
        else {
            // The index has shrunk.
            state.chain = 0;
            return;
        };
        state.chain = next.unwrap_or(0);
        let (mut met, mut found) = (0, 0);
        for (slot, entry) in entries {
            work::examined(1);
            let Some(item) = shared.item(entry) else {
                continue;
            };
            met += 1;
            if shared.common.had_ended(&item, now) {
                shared.common.counters.expired_reclaimed.add(1);
                self.remove_expired(shared.found(lock, (slot, entry), item), now);
                found += 1;
            } else {
                search(&mut self.state).soonest.meet(item.expiry());
            }
        }
        search(&mut self.state).note(met, found);
    }
}
