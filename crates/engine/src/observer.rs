//! Reports what requests do to items to an observer.
//!
//! A request that may change an item passes one function of the engine, which calls the observer
//! before and after, unless the observer ignores the key. Items that leave a table without a
//! request are reported to the same observer by the table: see
//! [`removals`](glimmer_store::removals).
//!
//! All of these calls are made while the gate of the item's partition is held. Between `before` and
//! `after`, nothing else happens to the item, except that it may be evicted to make room for
//! itself.
//!
//! Reads are reported too, but without the gate, which most reads do not take.

use crate::job::{Done, Job};
use glimmer_base::{Keyhash, Moment};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::heap::Item;
use glimmer_store::removals::{Removal, RemovalObserver};

/// Is told of every change that it does not ignore, and of reads. The keys of the jobs that it is
/// told of are decoded.
pub trait ChangeObserver: RemovalObserver {
    /// Whether requests are reported. If not, reports cost nothing. If so, a closed
    /// [`Tap`](glimmer_store::removals::Tap) costs one load and one predictable branch per change,
    /// and as much per batch. A change that is ignored costs what [`ignores`](Self::ignores) does.
    /// Reads are reported only if the tap says so.
    const SEES_REQUESTS: bool;

    /// What the observer keeps from before a change until after it.
    type Before;

    /// A batch is about to begin. What is returned is handed to [`before`](Self::before) with
    /// every change. It is asked for before the batch loads the number of flushes that are due, so
    /// that the observer can tell whether a flush came between.
    fn epoch(&self) -> u64 {
        0
    }

    /// Whether a change of this key's item need not be reported now. It is asked once the gate is
    /// passed, and must cost little. The answer holds until the gate is left.
    fn ignores(&self, _keyhash: Keyhash) -> bool {
        false
    }

    /// A request that may change the key's item is about to be executed. `find` looks up the key's
    /// current item.
    fn before<'i>(
        &self,
        now: Moment,
        epoch: u64,
        job: &Job<'_>,
        find: impl FnOnce() -> Option<Item<'i>>,
    ) -> Self::Before;

    /// The request has been executed. Its reply has not been sent. `find` looks up the key's
    /// current item.
    fn after<'i>(
        &self,
        now: Moment,
        job: &Job<'_>,
        before: Self::Before,
        outcome: OutcomeKind,
        find: impl FnOnce() -> Option<Item<'i>>,
    );

    /// A [`Verb::Get`](glimmer_proto::Verb::Get) has been executed. The item had a value of this
    /// many bytes; `None` if there was no item. If the read changed the item (the first `mg` after
    /// `md I` does), that is reported as a change as well.
    fn read(&self, _job: &Job<'_>, _value_bytes: Option<usize>) {}

    /// Whether it is enough to count the [reads](Self::read) of the batch that begins, because no
    /// watcher has room to be shown them.
    fn counts_reads(&self) -> bool {
        false
    }

    /// This many reads have been executed that were not reported one by one.
    fn count_reads(&self, _reads: u64) {}

    /// A request of some has been executed, whichever they are. Returns how many requests of this
    /// worker further the next one is of which the observer is told here. This does not depend on
    /// the tap.
    fn sample(&self, _now: Moment, _job: &Job<'_>, _done: &Done) -> u32 {
        u32::MAX
    }

    /// A flush is scheduled, or one that was scheduled comes due, by the call of `flush`. Once it
    /// is due, no request that begins afterwards sees an older item. `flush` returns when the flush
    /// that is pending afterwards comes due, in milliseconds since the epoch. Several threads may
    /// call this at once.
    fn flush(&self, flush: impl FnOnce() -> Option<u64>) {
        flush();
    }
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

    type Before = ();

    fn before<'i>(&self, _: Moment, _: u64, _: &Job<'_>, _: impl FnOnce() -> Option<Item<'i>>) {}

    fn after<'i>(
        &self,
        _: Moment,
        _: &Job<'_>,
        (): (),
        _: OutcomeKind,
        _: impl FnOnce() -> Option<Item<'i>>,
    ) {
    }
}
