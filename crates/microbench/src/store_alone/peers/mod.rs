//! Tables that others have written, as their users would use them: public crates, and the ordered
//! map of the standard library.
//!
//! Most come twice. First with every advantage: keys and values are arrays of a length that is
//! known when the table is compiled, and lie in the table itself where it has a place for them; a
//! cache, whose items may have any length, has to look them up elsewhere. Then with keys and values
//! of any length, as users who make a cache of byte strings with them has to hold them. All of them
//! that can be told which hash to use hash keys as we do, with XXH3, so that no table wins or loses
//! by its hash.

mod bounded;
mod dash;
mod held;
mod kind;
mod moka;
mod ordered;
mod papaya;
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

/// Shards of tables that have a number of them to choose: many more than threads.
const SHARDS: usize = 64;

/// One thread's way into a table.
pub trait Handle<const K: usize, const V: usize>: Send {
    /// Whether every thread reaches every key; else a thread has a table of its own for its part of
    /// the keys.
    const SHARED: bool;

    /// What a batch of operations is executed on: for most, the handle itself.
    type Session<'a>: Session<K, V>
    where
        Self: 'a;

    /// Begins a batch.
    fn session(&mut self) -> Self::Session<'_>;

    /// Items in it, where the table can say.
    fn items(&self) -> Option<u64> {
        None
    }
}

/// A table at work.
pub trait Session<const K: usize, const V: usize> {
    /// The key's value.
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]>;

    /// Stores a value, in place of the one that is there.
    fn put(&mut self, key: [u8; K], value: [u8; V]);

    /// Removes the key; says whether it was there.
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

/// The workers of an empty table, one for each handle.
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

    // An array hashes as a slice, its length first, which is the same for all keys of a table.
    #[inline(always)]
    fn write_usize(&mut self, _: usize) {}

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
