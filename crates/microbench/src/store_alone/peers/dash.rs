//! dashmap: hashbrown behind sharded locks, in one crate.

use std::{hash::Hash, sync::Arc};

use dashmap::DashMap;

use super::{Direct, Held, HeldKey, SHARDS, Session, Xxh3};

/// The handle of one thread.
#[derive(Clone)]
pub struct Dash<A, B>(Arc<DashMap<A, B, Xxh3>>);

impl<A: Eq + Hash + Clone, B: Clone> Dash<A, B> {
    /// A table for this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let capacity = capacity + capacity / 50;
        let map = DashMap::with_capacity_and_hasher_and_shard_amount(capacity, Xxh3, SHARDS);
        vec![Dash(Arc::new(map)); threads]
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Dash<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(A::sought(key)).map(|value| value.bytes())
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        if B::ALLOCATES
            && let Some(mut held) = self.0.get_mut(A::sought(&key))
        {
            held.write(value);
            return;
        }
        self.0.insert(A::hold(key), B::hold(value));
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(A::sought(key)).is_some()
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for Dash<A, B> {
    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
