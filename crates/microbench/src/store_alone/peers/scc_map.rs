//! scc's `HashMap`: one array of buckets, each with 32 slots and its own lock. Further items are
//! chained.

use std::{hash::Hash, sync::Arc};

use scc::HashMap;

use super::{Direct, Held, HeldKey, Session, Xxh3};

/// The handle of one thread.
#[derive(Clone)]
pub struct SccMap<A, B>(Arc<HashMap<A, B, Xxh3>>);

impl<A: Eq + Hash + Clone, B: Clone> SccMap<A, B> {
    /// A table for this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let map = HashMap::with_capacity_and_hasher(capacity, Xxh3);
        vec![SccMap(Arc::new(map)); threads]
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for SccMap<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.read_sync(A::sought(key), |_, held| held.bytes())
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        let write = |_: &A, held: &mut B| held.write(value);
        if B::ALLOCATES && self.0.update_sync(A::sought(&key), write).is_some() {
            return;
        }
        self.0.upsert_sync(A::hold(key), B::hold(value));
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove_sync(A::sought(key)).is_some()
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for SccMap<A, B> {
    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
