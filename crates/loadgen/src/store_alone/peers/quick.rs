//! quick_cache: a cache with S3-FIFO's kind of eviction, a lock for each of its shards.

use std::sync::Arc;

use quick_cache::{
    OptionsBuilder, UnitWeighter,
    sync::{Cache, DefaultLifecycle},
};

use super::{Handle, SHARDS, Session, Xxh3};

type Map<const K: usize, const V: usize> = Cache<[u8; K], [u8; V], UnitWeighter, Xxh3>;

/// One thread's handle.
#[derive(Clone)]
pub struct Quick<const K: usize, const V: usize>(Arc<Map<K, V>>);

impl<const K: usize, const V: usize> Quick<K, V> {
    /// A cache with room for so many items, and for how unevenly hashing fills its shards, so that it evicts none; for so
    /// many threads.
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

impl<const K: usize, const V: usize> Session<K, V> for Quick<K, V> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(key)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.insert(key, value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(key).is_some()
    }
}

impl<const K: usize, const V: usize> Handle<K, V> for Quick<K, V> {
    const SHARED: bool = true;
    type Session<'a> = &'a mut Self;

    fn session(&mut self) -> &mut Self {
        self
    }

    fn items(&self) -> u64 {
        self.0.len() as u64
    }
}
