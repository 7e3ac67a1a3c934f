//! hashbrown, the table of the standard library, behind a lock for each of many shards.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use glimmer_base::Keyhash;
use parking_lot::RwLock;

use super::{Direct, Held, HeldKey, SHARDS, Session, unshared::Unshared};
use crate::store_alone::items::SEED;

type Shard<A, B> = CachePadded<RwLock<Unshared<A, B>>>;

/// The handle of one thread. The keyhash is computed once, for shard and table.
#[derive(Clone)]
pub struct Sharded<A, B>(Arc<[Shard<A, B>]>);

impl<A: Clone, B: Clone> Sharded<A, B> {
    /// A table for this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let each = (capacity + capacity / 50) / SHARDS + 16;
        let shards = (0..SHARDS).map(|_| RwLock::new(Unshared::new(each)).into());
        vec![Sharded(shards.collect()); threads]
    }

    #[inline(always)]
    fn shard<const K: usize>(&self, key: &[u8; K]) -> (Keyhash, &Shard<A, B>) {
        let keyhash = SEED.keyhash(key);
        (keyhash, &self.0[keyhash.partition(SHARDS)])
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Sharded<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        let (keyhash, shard) = self.shard(key);
        shard.read().find(keyhash, key)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        let (keyhash, shard) = self.shard(&key);
        shard.write().store(keyhash, key, value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        let (keyhash, shard) = self.shard(key);
        shard.write().take(keyhash, key)
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for Sharded<A, B> {
    fn items(&self) -> Option<u64> {
        Some(self.0.iter().map(|shard| shard.read().count()).sum())
    }
}
