//! scc's `HashCache`: the buckets of its `HashMap` without chains. A full bucket evicts its least
//! recently used item, so that a table of twice the necessary size still loses one item in some
//! thousands.

use std::{hash::Hash, sync::Arc};

use scc::{HashCache, hash_cache::Entry};

use super::{Direct, Held, HeldKey, Session, Xxh3};

/// The handle of one thread.
#[derive(Clone)]
pub struct SccCache<A, B>(Arc<HashCache<A, B, Xxh3>>);

impl<A, B> SccCache<A, B> {
    /// The share of items that the table may lose to full buckets.
    pub const LOSS_MAX: f64 = 0.001;
}

impl<A: Eq + Hash + Clone, B: Clone> SccCache<A, B> {
    /// A cache with slots for twice this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let places = 2 * capacity;
        let map = HashCache::with_capacity_and_hasher(places, places, Xxh3);
        vec![SccCache(Arc::new(map)); threads]
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for SccCache<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.read_sync(A::sought(key), |_, held| held.bytes())
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        if B::ALLOCATES
            && let Some(mut held) = self.0.get_sync(A::sought(&key))
        {
            held.write(value);
            return;
        }
        match self.0.entry_sync(A::hold(key)) {
            Entry::Occupied(mut held) => held.write(value),
            Entry::Vacant(place) => drop(place.put_entry(B::hold(value))),
        }
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove_sync(A::sought(key)).is_some()
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for SccCache<A, B> {
    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
