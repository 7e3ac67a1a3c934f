//! Ours: every key's reads are counted approximately, and a key takes a slot if it is read more
//! than the key that has it. A change of an item refreshes its slot, unless the key is changed so
//! often that this is not worth it.

use crate::hot_keys::HotKey;
use crate::layout::dimensions::VALUE_MAX;
use crate::popularity::{Popularity, SampledRead};
use crate::quarantine::{Purse, Quarantine};
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
    quarantine: Quarantine,
    offers: VecDeque<Offer>,
}

impl Counting {
    /// The policy of this number of slots.
    pub fn new(slots: usize, now_ms: u64) -> Counting {
        Counting {
            popularity: Popularity::new(slots, SAMPLE_EVERY, now_ms),
            purses: vec![Purse::new(0); slots].into(),
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

    fn read(&mut self, read: &SampledRead<'_>, now_ms: u64) {
        let count = self.popularity.read(read, now_ms);
        let fits = (1..=VALUE_MAX).contains(&read.value_bytes);
        if fits && self.offers.len() < HOT_OFFERS_MAX && !self.quarantine.has(read.keyhash, now_ms)
        {
            self.offers.push_back(Offer {
                key: read.key.into(),
                keyhash: read.keyhash,
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
        if !self.quarantine.has(keyhash, now_ms) {
            self.quarantine.put_off(keyhash, now_ms);
        }
    }

    fn filled(&mut self, incumbent: &Incumbent) {
        self.purses[incumbent.slot] = Purse::new(incumbent.hits);
    }

    fn changed(&mut self, incumbent: &Incumbent, now_ms: u64) -> AfterChange {
        if self.purses[incumbent.slot].pay(incumbent.hits) {
            return AfterChange::Refill;
        }
        self.quarantine.begin(incumbent.keyhash, now_ms);
        AfterChange::Evict
    }

    fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey> {
        self.popularity.hot_keys(most, now_ms)
    }

    fn quarantined(&self, now_ms: u64) -> usize {
        self.quarantine.len(now_ms)
    }
}
