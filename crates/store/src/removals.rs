//! Items that leave a table though no request names them: evicted, expired or flushed.
//!
//! Every table reports each of them to its `Exit`, once, while its gate is held. An item that a
//! request removes or replaces is not reported here: the engine sees both sides of every request.
//!
//! While no observer looks, a report costs one load and one predictable branch.

use crate::heap::Item;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU32;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::{KeyHasher, Keyhash, Moment};
use std::sync::Arc;

/// Why an item leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// To make room for another item.
    Evicted,
    /// To make room in the index.
    IndexFull,
    /// It has expired, and the table came upon it.
    Expired,
}

/// An item that leaves.
pub struct Removal<'a> {
    /// The item, which is still in its place.
    pub item: &'a Item<'a>,
    /// Why it leaves.
    pub reason: Reason,
    /// Whether it is known to have been read.
    pub was_read: bool,
    /// When it leaves.
    pub now: Moment,
    hasher: &'a KeyHasher,
}

impl Removal<'_> {
    /// The hash of the item's key, computed for this call: items do not keep it.
    pub fn keyhash(&self) -> Keyhash {
        let mut key = [0; KEY_BYTES_MAX + 6];
        self.hasher.keyhash(self.item.key(&mut key))
    }
}

/// Learns of everything that leaves a table though no request names it. All calls are made while
/// the gate of the item's partition is held, and before readers can no longer find the item.
pub trait RemovalObserver: Send + Sync + 'static {
    /// An item leaves.
    fn removed(&self, removal: &Removal<'_>);

    /// All items of a partition, of which there are this many, leave by a flush.
    fn flushed(&self, items: u64);
}

/// Which events an observer is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Told {
    /// Nothing: the tap is closed.
    Nothing,
    /// Changes of items, and flushes.
    Changes,
    /// These, and reads.
    All,
}

/// An observer that can be switched off. Where it is off, a request pays one load for it.
#[derive(Debug, Default)]
pub struct Tap<O: ?Sized> {
    told: AtomicU32,
    observer: O,
}

impl<O> Tap<O> {
    /// A tap that is closed.
    pub fn new(observer: O) -> Tap<O> {
        Tap {
            told: AtomicU32::new(Told::Nothing as u32),
            observer,
        }
    }
}

impl<O: ?Sized> Tap<O> {
    /// Says what the observer is told of from now on. A report that has begun may still arrive at
    /// it.
    pub fn tell(&self, told: Told) {
        self.told.store(told as u32, Relaxed);
    }

    /// Whether the observer is told of anything now.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.told.load(Relaxed) != Told::Nothing as u32
    }

    /// Whether the observer is told of reads now.
    #[inline(always)]
    pub fn tells_reads(&self) -> bool {
        self.told.load(Relaxed) == Told::All as u32
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }
}

/// Where a table reports what leaves.
#[derive(Clone, Default)]
pub(crate) struct Exit {
    tap: Option<Arc<Tap<dyn RemovalObserver>>>,
}

impl Exit {
    /// Reports to this observer from now on.
    pub fn attach(&mut self, tap: Arc<Tap<dyn RemovalObserver>>) {
        self.tap = Some(tap);
    }

    /// Reports an item; `hasher` is the table's.
    #[inline(always)]
    pub fn removed(
        &self,
        hasher: &KeyHasher,
        item: &Item<'_>,
        reason: Reason,
        was_read: bool,
        now: Moment,
    ) {
        if let Some(tap) = self.open_tap() {
            report(
                tap,
                &Removal {
                    item,
                    reason,
                    was_read,
                    now,
                    hasher,
                },
            );
        }
    }

    /// Reports that all items leave.
    pub fn flushed(&self, items: u64) {
        if let Some(tap) = self.open_tap() {
            tap.observer.flushed(items);
        }
    }

    #[inline(always)]
    fn open_tap(&self) -> Option<&Tap<dyn RemovalObserver>> {
        self.tap.as_deref().filter(|tap| tap.is_open())
    }
}

#[cold]
fn report(tap: &Tap<dyn RemovalObserver>, removal: &Removal<'_>) {
    tap.observer.removed(removal);
}
