//! papaya: reads take no lock, and values are reclaimed when no thread reads them any more.

use std::sync::Arc;

use papaya::{HashMap, HashMapRef, LocalGuard};

use super::{Handle, Held, HeldKey, Session, Xxh3};

/// The handle of one thread. It is pinned once per batch.
#[derive(Clone)]
pub struct Papaya<A, B>(Arc<HashMap<A, B, Xxh3>>);

impl<A: Clone, B: Clone> Papaya<A, B> {
    /// A table for this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let map = HashMap::with_capacity_and_hasher(capacity, Xxh3);
        vec![Papaya(Arc::new(map)); threads]
    }
}

/// A batch under one guard.
pub struct Pinned<'a, A, B>(HashMapRef<'a, A, B, Xxh3, LocalGuard<'a>>);

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Pinned<'_, A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(A::sought(key)).map(B::bytes)
    }

    // A value that may have readers cannot be overwritten.
    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.insert(A::hold(key), B::hold(value));
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(A::sought(key)).is_some()
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Handle<K, V> for Papaya<A, B> {
    const SHARED: bool = true;
    type Session<'a> = Pinned<'a, A, B>;

    #[inline(always)]
    fn session(&mut self) -> Pinned<'_, A, B> {
        Pinned(self.0.pin())
    }

    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
