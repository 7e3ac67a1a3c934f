//! The default policy: the reads of every key are counted approximately, and a key takes a slot
//! from one that is read less. A change of an item refreshes its slot, unless the key's hits have
//! saved less than its changes would cost.

use crate::hot_keys::HotKey;
use crate::layout::dimensions::VALUE_MAX;
use crate::popularity::{Popularity, SampledRead};
use crate::prices::Prices;
use crate::purse::Purse;
use crate::quarantine::Quarantine;
use crate::{AfterChange, Decision, Incumbent, Offer, Policy};
use glimmer_base::Keyhash;
use glimmer_base::limits::HOT_OFFERS_MAX;
use std::collections::VecDeque;

/// One read of this many is sampled, as in the paper (§VI-B).
const SAMPLE_EVERY: u32 = 8;

/// A key is counted too high where it shares cells of the sketch, so it has to be this many sampled
/// reads ahead.
const LEAD: u32 = 1;

/// See the module's text.
#[derive(Debug)]
pub struct Counting {
    popularity: Popularity,
    purses: Box<[Purse]>,
    prices: Prices,
    quarantine: Quarantine,
    offers: VecDeque<Offer>,
}

impl Counting {
    /// The policy of this number of slots.
    pub fn new(slots: usize, now_ms: u64) -> Counting {
        Counting {
            popularity: Popularity::new(slots, SAMPLE_EVERY, now_ms),
            purses: vec![Purse::default(); slots].into(),
            prices: Prices::default(),
            quarantine: Quarantine::default(),
            offers: VecDeque::new(),
        }
    }
}

impl Policy for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn sample_every(&self) -> u32 {
        SAMPLE_EVERY
    }

    fn reads(&self, weight: u32) -> u32 {
        weight.saturating_mul(SAMPLE_EVERY)
    }

    fn priced(&mut self, prices: Prices) {
        self.prices = prices;
    }

    fn read(&mut self, read: &SampledRead<'_>, now_ms: u64) {
        let count = self.popularity.read(read, now_ms);
        let (keyhash, prices) = (read.keyhash, self.prices);
        self.quarantine
            .read(keyhash, SAMPLE_EVERY.into(), prices, now_ms);
        let is_out = self.quarantine.has(keyhash, prices, now_ms);
        let fits = (1..=VALUE_MAX).contains(&read.value_bytes);
        if fits && self.offers.len() < HOT_OFFERS_MAX && !is_out {
            self.offers.push_back(Offer {
                key: read.key.into(),
                keyhash,
                weight: count.saturating_sub(LEAD).max(1),
            });
        }
    }

    fn credit(&mut self, keyhash: Keyhash, hits: u64, now_ms: u64) {
        self.popularity.credit(keyhash, hits, now_ms);
    }

    fn poll(&mut self) -> Option<Decision> {
        self.offers.pop_front().map(Decision::Offer)
    }

    fn standing(&self, incumbent: &Incumbent) -> u32 {
        self.popularity.count(incumbent.keyhash)
    }

    fn refused(&mut self, keyhash: Keyhash, now_ms: u64) {
        // Several offers of a key may be under way. They are one reason to keep it out.
        if !self.quarantine.has(keyhash, self.prices, now_ms) {
            self.quarantine.put_off(keyhash, self.prices, now_ms);
        }
    }

    fn filled(&mut self, incumbent: &Incumbent, now_ms: u64) {
        let Incumbent {
            slot,
            keyhash,
            hits,
        } = *incumbent;
        let known_ns = self.quarantine.end(keyhash, now_ms);
        let has_ns = known_ns.unwrap_or(Purse::start_ns(self.prices));
        self.purses[slot].begin(keyhash, has_ns, hits, self.prices);
    }

    fn changed(&mut self, incumbent: &Incumbent, now_ms: u64) -> AfterChange {
        match self.purses[incumbent.slot].pay(incumbent.hits, self.prices) {
            Ok(()) => AfterChange::Refill,
            Err(left_ns) => {
                self.quarantine.begin(incumbent.keyhash, left_ns, now_ms);
                AfterChange::Evict
            }
        }
    }

    fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey> {
        self.popularity.hot_keys(most, now_ms)
    }

    fn quarantined(&self, now_ms: u64) -> usize {
        self.quarantine.len(self.prices, now_ms)
    }
}
