//! quick_cache: a cache with S3-FIFO-like eviction and a lock per shard.

use std::{hash::Hash, sync::Arc};

use quick_cache::{
    OptionsBuilder, UnitWeighter,
    sync::{Cache, DefaultLifecycle},
};

use super::{Direct, Held, HeldKey, SHARDS, Session, Xxh3};

/// The handle of one thread.
#[derive(Clone)]
pub struct Quick<A, B>(Arc<Cache<A, B, UnitWeighter, Xxh3>>);

impl<A: Eq + Hash + Clone, B: Clone> Quick<A, B> {
    /// A cache for this many items, with a margin for unevenly filled shards so that it evicts
    /// none, and a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let room = capacity + capacity / 20 + 100 * SHARDS;
        let options = OptionsBuilder::new()
            .estimated_items_capacity(room)
            .weight_capacity(room as u64)
            .shards(SHARDS)
            .build()
            .expect("capacity, weight and shards are all that is wanted");
        let lifecycle = DefaultLifecycle::default();
        let map = Cache::with_options(options, UnitWeighter, Xxh3, lifecycle);
        vec![Quick(Arc::new(map)); threads]
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Quick<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(A::sought(key)).map(|value| value.bytes())
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.insert(A::hold(key), B::hold(value));
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(A::sought(key)).is_some()
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for Quick<A, B> {
    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
