//! The paper's policy (§VI-B): one read of eight is sampled. When 100 distinct keys have come
//! together, all of them are pushed, and the counts of hits begin at zero again. The weight of a
//! key is the number of its samples in the batch, in the unit of the counts and with their bound.
//!
//! The paper does not say what becomes of a key whose value changes. Here it leaves the
//! accelerator, and may come back with a later batch.

use crate::hot_keys::HotKey;
use crate::popularity::{Popularity, SampledRead};
use crate::{AfterChange, Decision, Incumbent, Offer, Policy};
use glimmer_base::Keyhash;
use std::collections::{HashMap, VecDeque};

/// Largest count of a slot: six bits, at which it stays.
pub const COUNT_MAX: u8 = 63;

/// See the module's text.
#[derive(Debug)]
pub struct Paper {
    sample_every: u32,
    batch_keys: usize,
    /// For the list of hot keys alone: no decision depends on it.
    popularity: Popularity,
    /// The keys of the batch that is being collected, in the order of their first samples, and how
    /// often each was sampled.
    batch: Vec<(Box<[u8]>, Keyhash, u32)>,
    places: HashMap<u64, usize>,
    /// What is left of the batch that is being pushed.
    decisions: VecDeque<Decision>,
}

impl Paper {
    /// One read of this many is sampled.
    pub const SAMPLE_EVERY: u32 = 8;
    /// Distinct keys of a batch.
    pub const BATCH_KEYS: usize = 100;

    /// The policy of this number of slots, with an empty batch.
    pub fn new(slots: usize, now_ms: u64) -> Paper {
        Paper::with(slots, (Self::SAMPLE_EVERY, Self::BATCH_KEYS), now_ms)
    }

    /// The same with other numbers than the paper's: one read of how many is sampled, and how many
    /// distinct keys are a batch.
    pub fn with(slots: usize, (sample_every, batch_keys): (u32, usize), now_ms: u64) -> Paper {
        Paper {
            sample_every,
            batch_keys,
            popularity: Popularity::new(slots, sample_every, now_ms),
            batch: Vec::with_capacity(batch_keys),
            places: HashMap::new(),
            decisions: VecDeque::new(),
        }
    }
}

impl Policy for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn sample_every(&self) -> u32 {
        self.sample_every
    }

    fn read(&mut self, read: &SampledRead<'_>, now_ms: u64) {
        self.popularity.read(read, now_ms);
        if let Some(&place) = self.places.get(&read.keyhash.0) {
            self.batch[place].2 += 1;
            return;
        }
        self.places.insert(read.keyhash.0, self.batch.len());
        self.batch.push((read.key.into(), read.keyhash, 1));
        if self.batch.len() == self.batch_keys {
            let sample_every = self.sample_every;
            let offer = |(key, keyhash, samples)| {
                Decision::Offer(Offer {
                    key,
                    keyhash,
                    weight: weight(samples, sample_every),
                })
            };
            self.decisions.extend(self.batch.drain(..).map(offer));
            self.decisions.push_back(Decision::ResetCounts);
            self.places.clear();
        }
    }

    fn credit(&mut self, keyhash: Keyhash, hits: u64, now_ms: u64) {
        self.popularity.credit(keyhash, hits, now_ms);
    }

    fn poll(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    fn standing(&self, incumbent: &Incumbent) -> u32 {
        incumbent.hits.min(COUNT_MAX.into()) as u32
    }

    fn refused(&mut self, _keyhash: Keyhash, _now_ms: u64) {}

    fn filled(&mut self, _incumbent: &Incumbent, _now_ms: u64) {}

    fn changed(&mut self, _incumbent: &Incumbent, _now_ms: u64) -> AfterChange {
        AfterChange::Evict
    }

    fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey> {
        self.popularity.hot_keys(most, now_ms)
    }

    fn quarantined(&self, _now_ms: u64) -> usize {
        0
    }
}

/// The weight of a key with this many samples: the reads that they stand for, up to the bound of
/// the counts.
fn weight(samples: u32, sample_every: u32) -> u32 {
    samples.saturating_mul(sample_every).min(COUNT_MAX.into())
}
