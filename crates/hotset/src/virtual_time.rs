//! The accelerator in virtual time: requests from a law, a policy, and nothing that takes time.
//! Tests and figures measure the share of reads that are answered with it.

use crate::layout::{HotItem, NEVER_NS, Tally};
use crate::{Controller, Guard, Memory, Policy, Reader, SampledRead, Sampler};
use glimmer_base::Seed;
use glimmer_base::sync::Arc;

/// Requests that arrive in a millisecond.
const REQUESTS_PER_MS: u64 = 500;
/// How often the policy is told of hits, in milliseconds.
const HARVEST_MS: u64 = 250;
const KEYS: Seed = Seed(7);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The key.
    pub number: u64,
    /// Bytes of its value. One that no slot holds is never answered.
    pub value_bytes: usize,
    /// Whether the request changes the value.
    pub is_change: bool,
}

/// How the accelerator is tried.
pub struct Trial {
    /// Keys that have room.
    pub slots: usize,
    /// What decides which keys those are.
    pub policy: Box<dyn Policy>,
    /// Of the places of keys, and of the sampling.
    pub seeds: [u64; 2],
    /// Requests before the count begins.
    pub warm_up: u64,
    /// Requests that count.
    pub counted: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Reads.
    pub reads: u64,
    /// Reads that were answered.
    pub hits: u64,
    /// Keys that the policy offered to slots.
    pub offers: u64,
    /// Keys that it keeps out at the end.
    pub quarantined: usize,
}

impl Outcome {
    /// The share of the reads that were answered.
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.reads as f64
    }
}

impl Trial {
    /// Executes the requests that `draw` gives.
    pub fn run(self, mut draw: impl FnMut() -> Drawn) -> Outcome {
        let [of_memory, of_sampler] = self.seeds;
        let guard = Arc::new(Guard::new(Arc::new(Memory::new(self.slots, 1, of_memory))));
        let reader = Reader::new(guard.memory().clone(), 0);
        let controller = Controller::new(guard.clone(), self.policy);
        let mut sampler = Sampler::new(controller.sample_every(), of_sampler);
        let (mut found, mut now_ms) = (Outcome::default(), 0);
        for request in 0..self.warm_up + self.counted {
            if request == self.warm_up {
                found = Outcome::default();
            }
            if request.is_multiple_of(REQUESTS_PER_MS * HARVEST_MS) {
                now_ms = request / REQUESTS_PER_MS;
                controller.harvest(now_ms, |_| true, |_| ());
            }
            let drawn = draw();
            let key = drawn.number.to_le_bytes();
            let keyhash = KEYS.keyhash(&key);
            if drawn.is_change {
                let epoch = guard.epoch();
                if let Some(token) = guard.retract(keyhash) {
                    controller.changed(token, epoch, Some(&item(&key)), now_ms);
                }
                continue;
            }
            found.reads += 1;
            if let Ok(hit) = reader.find(&key, 0) {
                found.hits += u64::from(hit.finish(Tally::HitGet));
            } else if sampler.takes() {
                let read = SampledRead {
                    keyhash,
                    key: &key,
                    value_bytes: drawn.value_bytes,
                };
                let mut wanted = Vec::new();
                controller.sampled([read], now_ms, |offer| wanted.push(offer));
                for offer in wanted {
                    found.offers += 1;
                    controller.fill(&offer, guard.epoch(), &item(&offer.key), now_ms);
                }
            }
        }
        found.quarantined = controller.quarantined(now_ms);
        found
    }
}

/// An item that never expires.
fn item(key: &[u8]) -> HotItem<'_> {
    HotItem {
        key,
        value: &[1; 8],
        flags: 0,
        cas: 1,
        deadline_ns: NEVER_NS,
    }
}
