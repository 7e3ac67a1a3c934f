//! Tables by others, used as their users would: public crates, and the standard library's ordered
//! map.
//!
//! Most appear twice. The first time they have every advantage: keys and values are arrays of a
//! length known at compile time and lie in the table itself, if it has a place for them. A cache,
//! whose items may have any length, must look them up elsewhere. The second time keys and values
//! have any length, as in a cache of byte strings built on the table. All tables whose hash can be
//! chosen use XXH3 as ours do, so that no table gains or loses by its hash.

mod bounded;
mod dash;
mod held;
mod kind;
mod moka;
mod ordered;
mod papaya;
pub mod paper;
mod quick;
mod scc_cache;
mod scc_map;
mod segcache;
mod sharded;
mod unshared;

use glimmer_dispatch::PartitionMap;
use std::hash::{BuildHasher, Hasher};

use super::{
    items::{self, SEED, key, value},
    rig::{Loss, Tally, Task, Team, Worker},
    stream::{Operation, Share},
};

pub use bounded::Bounded;
pub use dash::Dash;
pub use held::{Held, HeldKey};
pub use kind::{Lengths, Peer, Public, bounded, ordered};
pub use moka::Moka;
pub use ordered::Ordered;
pub use papaya::Papaya;
pub use quick::Quick;
pub use scc_cache::SccCache;
pub use scc_map::SccMap;
pub use segcache::Pelikan;
pub use sharded::Sharded;
pub use unshared::Unshared;

/// Shards of tables with a configurable number of shards: many more than threads.
const SHARDS: usize = 64;

/// A thread's access to a table.
pub trait Handle<const K: usize, const V: usize>: Send {
    /// Whether every thread can access every key. Otherwise each thread has a table with its share
    /// of the keys.
    const SHARED: bool;

    /// The object on which a batch of operations runs; for most tables, the handle itself.
    type Session<'a>: Session<K, V>
    where
        Self: 'a;

    /// Starts a batch.
    fn session(&mut self) -> Self::Session<'_>;

    /// The number of items, if the table knows it.
    fn items(&self) -> Option<u64>;
}

/// A table that needs nothing for a batch: its handle is the session.
pub trait Direct<const K: usize, const V: usize>: Session<K, V> + Send {
    /// See [`Handle::SHARED`].
    const SHARED: bool = true;

    /// See [`Handle::items`].
    fn items(&self) -> Option<u64> {
        None
    }
}

impl<const K: usize, const V: usize, T: Direct<K, V>> Handle<K, V> for T {
    const SHARED: bool = <T as Direct<K, V>>::SHARED;
    type Session<'a>
        = &'a mut T
    where
        T: 'a;

    fn session(&mut self) -> &mut T {
        self
    }

    fn items(&self) -> Option<u64> {
        Direct::items(self)
    }
}

/// A table during a batch.
pub trait Session<const K: usize, const V: usize> {
    /// The key's value.
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]>;

    /// Stores a value, replacing the present one.
    fn put(&mut self, key: [u8; K], value: [u8; V]);

    /// Removes the key and returns whether it was present.
    fn remove(&mut self, key: &[u8; K]) -> bool;
}

impl<const K: usize, const V: usize, S: Session<K, V>> Session<K, V> for &mut S {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        S::get(self, key)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        S::put(self, key, value);
    }

    #[inline(always)]
    fn remove(&mut self, key: &[u8; K]) -> bool {
        S::remove(self, key)
    }
}

/// A handle as a worker.
pub struct Driven<H, const K: usize, const V: usize>(pub H);

impl<H: Handle<K, V>, const K: usize, const V: usize> Worker for Driven<H, K, V> {
    #[inline]
    fn batch(&mut self, batch: &[Operation], task: &Task, version: u32, tally: &mut Tally) {
        let mut session = self.0.session();
        let (mut reads, mut found, mut wrong) = (0, 0, 0);
        for operation in batch {
            let number = operation.number();
            let key = key::<K>(number);
            if operation.writes() {
                session.put(key, value(number, version));
                continue;
            }
            reads += 1;
            match session.get(&key) {
                Some(value) => {
                    found += 1;
                    wrong += u64::from(!items::is_value(&value, number));
                }
                None if task.fill => session.put(key, value(number, version)),
                None => {}
            }
        }
        tally.reads += reads;
        tally.found += found;
        tally.wrong += wrong;
    }

    fn items(&mut self) -> Option<u64> {
        self.0.items()
    }
}

/// The workers of an empty table, one per handle.
pub fn team<H: Handle<K, V>, const K: usize, const V: usize>(
    handles: Vec<H>,
    loss: Loss,
) -> Team<Driven<H, K, V>> {
    let share = Share {
        map: PartitionMap::new(handles.len(), handles.len()),
        worker: 0,
        reads_all: H::SHARED,
        writes_all: H::SHARED,
        keyhash: items::keyhash::<K>,
    };
    Team::new(handles.into_iter().map(Driven).collect(), share, loss)
}

/// XXH3 for tables that hash keys themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Xxh3;

/// See [`Xxh3`].
#[derive(Default)]
pub struct OneKey(u64);

impl BuildHasher for Xxh3 {
    type Hasher = OneKey;

    fn build_hasher(&self) -> OneKey {
        OneKey::default()
    }
}

impl Hasher for OneKey {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = SEED.keyhash(bytes).0;
    }

    // An array hashes like a slice, starting with its length, which is the same for all keys of a
    // table.
    #[inline(always)]
    fn write_usize(&mut self, _: usize) {}

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
