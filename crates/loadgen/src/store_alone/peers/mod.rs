//! Tables that others have written, as their users would use them: public crates, and the ordered map of the standard library.
//!
//! They are given every advantage. Keys and values are arrays of a length that is known when the table is compiled, and lie in the
//! table itself where it has a place for them; a cache, whose items may have any length, has to look them up elsewhere. All of them
//! hash keys as we do, with XXH3, so that no table wins or loses by its hash.

mod bounded;
mod dash;
mod ordered;
mod papaya;
mod quick;
mod sharded;

use std::hash::{BuildHasher, Hasher};

use anyhow::Result;

use super::{
    items::{self, SEED, TINY_BYTES, key, value},
    rig::{Loss, Rig, Tally, Task, Team, Worker},
    stream::{Operation, Share},
};

pub use bounded::Bounded;
pub use dash::Dash;
pub use ordered::Ordered;
pub use papaya::Papaya;
pub use quick::Quick;
pub use sharded::Sharded;

/// Shards of tables that have a number of them to choose: many more than threads.
const SHARDS: usize = 64;

/// One thread's way into a table.
pub trait Handle<const K: usize, const V: usize>: Send {
    /// Whether every thread reaches every key; else a thread has a table of its own for its part of the keys.
    const SHARED: bool;

    /// What a batch of operations is executed on: for most, the handle itself.
    type Session<'a>: Session<K, V>
    where
        Self: 'a;

    /// Begins a batch.
    fn session(&mut self) -> Self::Session<'_>;

    /// Items in it.
    fn items(&self) -> u64;
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
        Some(self.0.items())
    }
}

/// The workers of an empty table, one for each handle.
pub fn team<H: Handle<K, V>, const K: usize, const V: usize>(
    handles: Vec<H>,
    loss: Loss,
) -> Team<Driven<H, K, V>> {
    let share = Share {
        partitions: handles.len(),
        workers: handles.len(),
        worker: 0,
        reads_all: H::SHARED,
        writes_all: H::SHARED,
        keyhash: items::keyhash::<K>,
    };
    Team::new(handles.into_iter().map(Driven).collect(), share, loss)
}

/// A table of someone else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `hashbrown` behind `parking_lot` locks, a lock to each of many shards.
    Sharded,
    /// `dashmap`.
    Dash,
    /// `papaya`.
    Papaya,
    /// `quick_cache`.
    Quick,
    /// The standard library's `BTreeMap`, one for each thread.
    Ordered,
    /// A chained table whose chains are bounded, one for each thread (Formica's `ChainedLossyHashStore`).
    Bounded,
}

impl Peer {
    /// All that are public and hash.
    pub const PUBLIC: [Peer; 4] = [Peer::Sharded, Peer::Dash, Peer::Papaya, Peer::Quick];

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Sharded => "hashbrown",
            Peer::Dash => "dashmap",
            Peer::Papaya => "papaya",
            Peer::Quick => "quick_cache",
            Peer::Ordered => "btreemap",
            Peer::Bounded => "bounded-chain",
        }
    }

    /// Whether an operation takes a lock.
    pub fn locks(self) -> bool {
        matches!(self, Peer::Sharded | Peer::Dash | Peer::Quick)
    }

    /// A table for so many threads, filled with `items` tiny items.
    pub fn build(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        const K: usize = TINY_BYTES;
        let capacity = items as usize;
        let lossless = Loss::AtMost(0.0);
        match self {
            Peer::Sharded => filled(Sharded::<K, K>::handles(capacity, workers), items, lossless),
            Peer::Dash => filled(Dash::<K, K>::handles(capacity, workers), items, lossless),
            Peer::Papaya => filled(Papaya::<K, K>::handles(capacity, workers), items, lossless),
            Peer::Quick => filled(Quick::<K, K>::handles(capacity, workers), items, lossless),
            Peer::Ordered => ordered::<K>(items, workers),
            Peer::Bounded => bounded::<K>(items, workers),
        }
    }
}

/// The ordered map, one for each thread, filled with `items` items of `K`-byte keys and tiny values.
pub fn ordered<const K: usize>(items: u32, workers: usize) -> Result<Box<dyn Rig>> {
    let handles = (0..workers).map(|_| Ordered::<K, TINY_BYTES>::default());
    filled(handles.collect(), items, Loss::AtMost(0.0))
}

/// The bounded chained table, one for each thread, filled with `items` items of `K`-byte keys and tiny values.
pub fn bounded<const K: usize>(items: u32, workers: usize) -> Result<Box<dyn Rig>> {
    // Hashing does not divide the keys evenly among the threads.
    let part = (items as usize + items as usize / 20) / workers + 64;
    let handles = (0..workers).map(|_| Bounded::<K, TINY_BYTES>::new(part));
    let loss = Loss::AtMost(Bounded::<K, TINY_BYTES>::LOSS_MAX);
    filled(handles.collect(), items, loss)
}

fn filled<H: Handle<K, V> + 'static, const K: usize, const V: usize>(
    handles: Vec<H>,
    items: u32,
    loss: Loss,
) -> Result<Box<dyn Rig>> {
    Ok(Box::new(team(handles, loss).fill(items)?))
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
