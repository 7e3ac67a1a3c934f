//! The controller: it reports sampled reads, hits and changes to a policy, and carries the policy's
//! decisions out on the slots.
//!
//! One controller serves all workers under CRCW. Where only the owner of a partition changes it,
//! each worker has one for its own keys: they share the guard.

use crate::guard::{Epoch, Filled, Guard, Token};
use crate::hot_keys::HotKey;
use crate::layout::{HotItem, Peek, Piece};
use crate::popularity::SampledRead;
use crate::prices::Prices;
use crate::{AfterChange, Decision, Incumbent, Offer, Policy};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{Arc, Mutex, lock};

/// See the module's text.
#[derive(Debug)]
pub struct Controller {
    guard: Arc<Guard>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    policy: Box<dyn Policy>,
    /// Hits of each slot at the last reset, and when they were last harvested.
    at_reset: Box<[u64]>,
    harvested: Box<[u64]>,
}

/// Hits of a key since the last harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Hash of the key.
    pub keyhash: Keyhash,
    /// The key; `None` if the slot is dead at the moment, or has just changed.
    pub key: Option<Box<[u8]>>,
    /// The number of hits.
    pub hits: u64,
    /// Bytes of the value, to be counted as read with each hit.
    pub value_bytes: usize,
}

impl Controller {
    /// A controller with a policy for all slots of a guard.
    pub fn new(guard: Arc<Guard>, policy: Box<dyn Policy>) -> Controller {
        let slots = guard.memory().slots().len();
        let zeros = || vec![0; slots].into();
        Controller {
            guard,
            state: Mutex::new(State {
                policy,
                at_reset: zeros(),
                harvested: zeros(),
            }),
        }
    }

    /// The guard.
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// Takes reads that were sampled since the last time, and gives out the keys that are to be
    /// brought in. For each of them the caller looks up the item under the gate of its partition
    /// and calls [`fill`](Controller::fill).
    pub fn sampled<'a>(
        &self,
        reads: impl IntoIterator<Item = SampledRead<'a>>,
        now_ms: u64,
        mut offer: impl FnMut(Offer),
    ) {
        let mut state = lock(&self.state);
        for read in reads {
            state.policy.read(&read, now_ms);
        }
        while let Some(decision) = state.policy.poll() {
            match decision {
                Decision::Offer(wanted) if self.is_worth_a_look(&state, &wanted) => offer(wanted),
                Decision::Offer(_) => {}
                Decision::ResetCounts => {
                    for slot in 0..state.at_reset.len() {
                        state.at_reset[slot] = self.hits(slot);
                    }
                }
            }
        }
    }

    /// Whether a key would come in, as far as can be seen without its gate.
    fn is_worth_a_look(&self, state: &State, offer: &Offer) -> bool {
        match self.guard.slot_of(offer.keyhash) {
            Some(slot) => !self.guard.is_current(slot),
            None => {
                let standing = |slot| self.standing(state, slot);
                self.guard.would_place(&offer.key, offer.weight, standing)
            }
        }
    }

    /// A key that was offered has no item, or one that fits into no slot.
    pub fn refused(&self, offer: &Offer, now_ms: u64) {
        lock(&self.state).policy.refused(offer.keyhash, now_ms);
    }

    /// What a change costs and what a hit saves was measured.
    pub fn priced(&self, prices: Prices) {
        lock(&self.state).policy.priced(prices);
    }

    /// Brings an item in. See [`Guard::fill`].
    pub fn fill(&self, offer: &Offer, epoch: Epoch, item: &HotItem<'_>, now_ms: u64) -> Filled {
        let mut state = lock(&self.state);
        let had = self.guard.slot_of(offer.keyhash);
        let standing = |slot| self.standing(&state, slot);
        let filled = self
            .guard
            .fill(epoch, offer.keyhash, item, offer.weight, standing);
        if let Filled::Live(slot) = filled
            && had != Some(slot)
        {
            let incumbent = self.incumbent(&state, slot, offer.keyhash);
            state.policy.filled(&incumbent, now_ms);
        }
        filled
    }

    /// The item of a slot that was [retracted](Guard::retract) has changed; `None` if there is no
    /// item any more. Under the gate of the key's partition since the retract.
    pub fn changed(
        &self,
        token: Token,
        epoch: Epoch,
        item: Option<&HotItem<'_>>,
        now_ms: u64,
    ) -> Changed {
        let after = {
            let mut state = lock(&self.state);
            let incumbent = self.incumbent(&state, token.slot(), token.keyhash());
            state.policy.changed(&incumbent, now_ms)
        };
        match (after, item) {
            (AfterChange::Evict, _) => {
                self.guard.evict(token.keyhash());
                Changed::Evicted
            }
            (AfterChange::Refill, Some(item)) => {
                Changed::Refilled(self.guard.refill(token, epoch, item))
            }
            (AfterChange::Refill, None) => Changed::LeftDead,
        }
    }

    /// Counts the hits of the slots whose keys are the caller's since the last harvest, and gives
    /// each key that was hit to `credit`.
    pub fn harvest(
        &self,
        now_ms: u64,
        is_mine: impl Fn(Keyhash) -> bool,
        mut credit: impl FnMut(Credit),
    ) {
        let mut state = lock(&self.state);
        for (slot, place) in self.guard.memory().slots().iter().enumerate() {
            let keyhash = place.keyhash();
            let hits = self.hits(slot);
            let new = hits.wrapping_sub(state.harvested[slot]);
            if new == 0 || !is_mine(keyhash) {
                continue;
            }
            state.harvested[slot] = hits;
            state.policy.credit(keyhash, new, now_ms);
            let peek = Peek::at(place);
            let value_bytes = peek.map_or(0, |peek| peek.value_bytes());
            let key = peek.and_then(|peek| {
                let mut key = vec![0; peek.bytes(Piece::Key)];
                peek.copy(Piece::Key, &mut key);
                peek.is_unchanged().then(|| key.into())
            });
            credit(Credit {
                keyhash,
                key,
                hits: new,
                value_bytes,
            });
        }
    }

    /// The hottest keys, at most `most`.
    pub fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey> {
        lock(&self.state).policy.hot_keys(most, now_ms)
    }

    /// The number of keys in quarantine.
    pub fn quarantined(&self, now_ms: u64) -> usize {
        lock(&self.state).policy.quarantined(now_ms)
    }

    /// One read of this many is to be sampled.
    pub fn sample_every(&self) -> u32 {
        lock(&self.state).policy.sample_every()
    }

    fn standing(&self, state: &State, slot: usize) -> u32 {
        let keyhash = self.guard.memory().slots()[slot].keyhash();
        state.policy.standing(&self.incumbent(state, slot, keyhash))
    }

    fn incumbent(&self, state: &State, slot: usize, keyhash: Keyhash) -> Incumbent {
        Incumbent {
            slot,
            keyhash,
            hits: self.hits(slot).wrapping_sub(state.at_reset[slot]),
        }
    }

    /// All hits of a slot.
    fn hits(&self, slot: usize) -> u64 {
        let memory = self.guard.memory();
        let counts = (0..memory.readers()).map(|reader| memory.counts(reader)[slot].load(Relaxed));
        counts.fold(0, u64::wrapping_add)
    }
}

/// What became of a slot whose item has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was offered the new value.
    Refilled(Filled),
    /// There is no item any more. The slot stays its key's.
    LeftDead,
    /// The policy wants the key to leave.
    Evicted,
}
