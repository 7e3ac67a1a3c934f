//! What decides which keys are in the accelerator.

use crate::hot_keys::HotKey;
use crate::popularity::SampledRead;
use crate::prices::Prices;
use glimmer_base::Keyhash;
use std::fmt::Debug;

/// A policy: takes observations and returns decisions as values. The
/// [`Controller`](crate::Controller) makes the observations and carries the decisions out.
pub trait Policy: Debug + Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// One read of this many is sampled.
    fn sample_every(&self) -> u32;

    /// How many reads a weight stands for: the unit of a device's counts.
    fn reads(&self, weight: u32) -> u32 {
        weight
    }

    /// What a change costs and what a hit saves was measured.
    fn priced(&mut self, _prices: Prices) {}

    /// A read was sampled that the server answered and the accelerator could have answered.
    fn read(&mut self, read: &SampledRead<'_>, now_ms: u64);

    /// The accelerator has answered this many reads of the key in a slot since the last time.
    fn credit(&mut self, keyhash: Keyhash, hits: u64, now_ms: u64);

    /// The next thing to do. To be asked until there is none.
    fn poll(&mut self) -> Option<Decision>;

    /// The weight of the key in a slot, to be compared with that of a [`Decision::Offer`].
    fn standing(&self, incumbent: &Incumbent) -> u32;

    /// A key was offered that has no item, or one that fits into no slot.
    fn refused(&mut self, keyhash: Keyhash, now_ms: u64);

    /// A key has come into a slot that it did not have.
    fn filled(&mut self, incumbent: &Incumbent, now_ms: u64);

    /// The item of a key in a slot has changed.
    fn changed(&mut self, incumbent: &Incumbent, now_ms: u64) -> AfterChange;

    /// The hottest keys that the policy knows of, at most `most`.
    fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey>;

    /// The number of keys that are kept out although they are hot.
    fn quarantined(&self, now_ms: u64) -> usize;
}

/// The key in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incumbent {
    /// The slot.
    pub slot: usize,
    /// The key's hash.
    pub keyhash: Keyhash,
    /// Hits of the slot since the last reset, of this key and of earlier ones.
    pub hits: u64,
}

/// A key that wants a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The key.
    pub key: Box<[u8]>,
    /// Its hash.
    pub keyhash: Keyhash,
    /// Its weight.
    pub weight: u32,
}

/// What a policy wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Bring this key in, if it outweighs a key in one of its slots.
    Offer(Offer),
    /// Begin to count hits from zero.
    ResetCounts,
}

/// What becomes of a slot whose item has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterChange {
    /// It gets the new value, if the item still qualifies.
    Refill,
    /// The key gives it up.
    Evict,
}
