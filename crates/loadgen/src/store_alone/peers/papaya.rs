//! papaya: reads take no lock; values are reclaimed when nobody reads them any more.

use std::sync::Arc;

use papaya::{HashMap, HashMapRef, LocalGuard};

use super::{Handle, Session, Xxh3};

type Map<const K: usize, const V: usize> = HashMap<[u8; K], [u8; V], Xxh3>;

/// One thread's handle. It is pinned once for every batch.
#[derive(Clone)]
pub struct Papaya<const K: usize, const V: usize>(Arc<Map<K, V>>);

impl<const K: usize, const V: usize> Papaya<K, V> {
    /// A table with room for so many items, for so many threads.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let map = HashMap::with_capacity_and_hasher(capacity, Xxh3);
        vec![Papaya(Arc::new(map)); threads]
    }
}

/// A batch under one guard.
pub struct Pinned<'a, const K: usize, const V: usize>(
    HashMapRef<'a, [u8; K], [u8; V], Xxh3, LocalGuard<'a>>,
);

impl<const K: usize, const V: usize> Session<K, V> for Pinned<'_, K, V> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(key).copied()
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.insert(key, value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(key).is_some()
    }
}

impl<const K: usize, const V: usize> Handle<K, V> for Papaya<K, V> {
    const SHARED: bool = true;
    type Session<'a> = Pinned<'a, K, V>;

    #[inline(always)]
    fn session(&mut self) -> Pinned<'_, K, V> {
        Pinned(self.0.pin())
    }

    fn items(&self) -> u64 {
        self.0.len() as u64
    }
}
