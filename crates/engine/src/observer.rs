//! Who learns of every change of an item.
//!
//! A request that may change an item passes one function of the engine, which calls the observer
//! before and after. What leaves a table though no request names it is reported by the table, to
//! the same observer: see [`removals`](glimmer_store::removals).
//!
//! All calls are made while the gate of the item's partition is held. So nothing else happens to
//! the item between `before` and `after`, unless it is evicted to make room for itself.

use glimmer_base::{Keyhash, Moment};
use glimmer_proto::outcome::Kind;
use glimmer_store::heap::Item;
use glimmer_store::removals::{Removal, RemovalObserver, Removals};

/// Learns of every change.
pub trait ChangeObserver: RemovalObserver {
    /// Whether `before` and `after` are called at all. If not, they cost nothing; if so, a closed
    /// [`Tap`](glimmer_store::removals::Tap) costs one load and one predictable branch a request.
    const SEES_REQUESTS: bool;

    /// A request that may change the key's item is about to be executed.
    fn before(&self, keyhash: Keyhash, key: &[u8]);

    /// The request has been executed. Its reply has not been sent. `item` is what the key has now.
    fn after(&self, keyhash: Keyhash, key: &[u8], outcome: Kind, item: Option<&Item<'_>>);

    /// A flush is about to be asked for that is due at `at_ms`, in milliseconds since the epoch.
    fn before_flush(&self, _now: Moment, _at_ms: u64) {}

    /// The flush counts: no request that begins now sees an older item once it is due.
    fn after_flush(&self, _now: Moment, _at_ms: u64) {}
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl RemovalObserver for Unobserved {
    fn removed(&self, _removal: &Removal<'_>) {}

    fn flushed(&self, _items: u64) {}
}

impl ChangeObserver for Unobserved {
    const SEES_REQUESTS: bool = false;

    fn before(&self, _keyhash: Keyhash, _key: &[u8]) {}

    fn after(&self, _keyhash: Keyhash, _key: &[u8], _outcome: Kind, _item: Option<&Item<'_>>) {}
}

impl ChangeObserver for Removals {
    const SEES_REQUESTS: bool = false;

    fn before(&self, _keyhash: Keyhash, _key: &[u8]) {}

    fn after(&self, _keyhash: Keyhash, _key: &[u8], _outcome: Kind, _item: Option<&Item<'_>>) {}
}
