//! dashmap: hashbrown behind locks, inside one crate.

use std::sync::Arc;

use dashmap::DashMap;

use super::{Handle, SHARDS, Session, Xxh3};

/// One thread's handle.
#[derive(Clone)]
pub struct Dash<const K: usize, const V: usize>(Arc<DashMap<[u8; K], [u8; V], Xxh3>>);

impl<const K: usize, const V: usize> Dash<K, V> {
    /// A table with room for so many items, for so many threads.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let capacity = capacity + capacity / 50;
        let map = DashMap::with_capacity_and_hasher_and_shard_amount(capacity, Xxh3, SHARDS);
        vec![Dash(Arc::new(map)); threads]
    }
}

impl<const K: usize, const V: usize> Session<K, V> for Dash<K, V> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(key).map(|value| *value)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.insert(key, value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(key).is_some()
    }
}

impl<const K: usize, const V: usize> Handle<K, V> for Dash<K, V> {
    const SHARED: bool = true;
    type Session<'a> = &'a mut Self;

    fn session(&mut self) -> &mut Self {
        self
    }

    fn items(&self) -> u64 {
        self.0.len() as u64
    }
}
