//! Reports every change of an item to an observer.
//!
//! A request that may change an item passes one function of the engine, which calls the observer
//! before and after. Items that leave a table without a request are reported to the same observer
//! by the table: see [`removals`](glimmer_store::removals).
//!
//! All calls are made while the gate of the item's partition is held. Between `before` and `after`,
//! nothing else happens to the item, except that it may be evicted to make room for itself.

use glimmer_base::{Keyhash, Moment};
use glimmer_proto::outcome::Kind;
use glimmer_store::heap::Item;
use glimmer_store::removals::{Removal, RemovalObserver, Removals};

/// Is told of every change.
pub trait ChangeObserver: RemovalObserver {
    /// Whether `before` and `after` are called. If not, they cost nothing. If so, a closed
    /// [`Tap`](glimmer_store::removals::Tap) costs one load and one predictable branch per request.
    const SEES_REQUESTS: bool;

    /// A request that may change the key's item is about to be executed.
    fn before(&self, keyhash: Keyhash, key: &[u8]);

    /// The request has been executed. Its reply has not been sent. `item` is the key's current
    /// item.
    fn after(&self, keyhash: Keyhash, key: &[u8], outcome: Kind, item: Option<&Item<'_>>);

    /// A flush is about to be scheduled for `at_ms`, in milliseconds since the epoch.
    fn before_flush(&self, _now: Moment, _at_ms: u64) {}

    /// The flush is scheduled: once it is due, no request that begins afterwards sees an older
    /// item.
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
