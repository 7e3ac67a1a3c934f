//! What answers reads of hot keys, as the server deals with it.
//!
//! The order of a change is that of the [guard](crate::guard), under the gate of the key's
//! partition: [`retract`](Body::retract), change the store, [`refill`](Body::refill), acknowledge.

use crate::controller::Credit;
use crate::guard::Epoch;
use crate::layout::{HotItem, Tally};
use crate::lookup::Reader;
use crate::pause::Pause;
use crate::policy::Offer;
use crate::popularity::SampledRead;
use crate::prices::Prices;
use crate::request::Form;
use glimmer_base::Keyhash;
use std::fmt::Debug;

/// A body of the accelerator with its policy. All methods may be called by several threads at once.
pub trait Body: Debug + Send + Sync {
    /// The epoch of what is filled from now on. To be loaded before the number of flushes that are
    /// due.
    fn epoch(&self) -> Epoch;

    /// Whether the body may have a key. The gate of the key's partition is held, and until it is
    /// left, no key comes in of which this says no.
    fn may_have(&self, keyhash: Keyhash) -> bool;

    /// Answers a key no more, before its item is changed. `None` if the body does not have the key.
    /// The gate of the key's partition is held until [`refill`](Body::refill).
    fn retract(&self, keyhash: Keyhash) -> Option<Retracted>;

    /// Takes the changed item of a key that was retracted, or `None` if the item was removed. The
    /// epoch is the one before the retract.
    fn refill(
        &self,
        retracted: Retracted,
        epoch: Epoch,
        item: Option<&HotItem<'_>>,
        now_ms: u64,
    ) -> Kept;

    /// Takes a key out, before its item leaves the store without a request. Returns whether the
    /// body had it. The gate is held.
    fn evict(&self, keyhash: Keyhash) -> bool;

    /// Brings in the item of a key that the policy has offered. The gate is held, and the epoch is
    /// from before the number of due flushes was loaded.
    fn fill(&self, offer: &Offer, epoch: Epoch, item: Option<&HotItem<'_>>, now_ms: u64) -> Kept;

    /// Carries a flush out, or schedules it, by one call of `flush`. That returns when the next one
    /// is due, in milliseconds of the server's clock.
    fn flush(&self, flush: &mut dyn FnMut() -> Option<u64>);

    /// Answers nothing for this reason, until it is taken back.
    fn pause(&self, reason: Pause, is_paused: bool);

    /// One read of this many is to be sampled.
    fn sample_every(&self) -> u32;

    /// Takes reads that were sampled, and gives out the keys that are to be brought in.
    fn sampled(
        &self,
        reads: &mut dyn Iterator<Item = SampledRead<'_>>,
        now_ms: u64,
        offer: &mut dyn FnMut(Offer),
    );

    /// What a change costs and what a hit saves was measured.
    fn priced(&self, prices: Prices);

    /// The number of reads that were answered.
    fn hits(&self) -> u64;

    /// Gives out the hits since the last time of the keys that `is_mine` accepts.
    fn harvest(
        &self,
        now_ms: u64,
        is_mine: &dyn Fn(Keyhash) -> bool,
        credit: &mut dyn FnMut(Credit),
    );

    /// What the body is and has counted.
    fn figures(&self, now_ms: u64) -> BodyFigures;

    /// The reader of a worker, if workers look in the slots.
    fn reader(&self, _worker: usize) -> Option<Reader> {
        None
    }

    /// Whether the body answers requests of this form.
    fn may_answer(&self, _form: Form) -> bool {
        true
    }
}

/// The right to refill a key that was retracted for a change.
#[derive(Clone, Copy, Debug)]
pub struct Retracted {
    /// The hash of the key.
    pub keyhash: Keyhash,
    /// The slot that it had.
    pub slot: usize,
    /// What the body wants to know of the slot when it is refilled.
    pub note: u64,
}

/// What became of an item that was to be brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in the body.
    Live,
    /// It does not qualify, or there is no item.
    Unfit,
    /// There is no slot for it, or no room for its value.
    NoRoom,
    /// The policy wants the key to leave.
    Evicted,
    /// A flush or another key came between, or the body has gone.
    Late,
}

/// What a body is and has counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyFigures {
    /// Number of slots.
    pub slots: usize,
    /// Slots that are answered from now.
    pub live: usize,
    /// Reads that were answered.
    pub hits: u64,
    /// The number of each event of [`Tally`], in its order.
    pub events: Vec<(Tally, u64)>,
    /// Keys that are kept out because they are changed too often.
    pub quarantined: usize,
    /// Why nothing is answered at the moment.
    pub paused: Vec<Pause>,
    /// What no other body counts, by its name in statistics.
    pub own: Vec<(&'static str, u64)>,
}
