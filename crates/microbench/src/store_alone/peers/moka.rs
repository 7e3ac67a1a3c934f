//! moka: a cache with TinyLFU eviction. Reads and writes are recorded in queues; the thread that
//! finds a queue full processes it.

use std::hash::Hash;

use moka::sync::Cache;

use super::{Direct, Held, HeldKey, Session, Xxh3};

/// The handle of one thread.
#[derive(Clone)]
pub struct Moka<A, B>(Cache<A, B, Xxh3>);

impl<A, B> Moka<A, B>
where
    A: Eq + Hash + Clone + Send + Sync + 'static,
    B: Clone + Send + Sync + 'static,
{
    /// A cache for this many items, with a handle for each thread.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let cache = Cache::builder()
            .max_capacity(capacity as u64)
            .initial_capacity(capacity)
            .build_with_hasher(Xxh3);
        vec![Moka(cache); threads]
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Moka<A, B> {
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

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for Moka<A, B> {
    fn items(&self) -> Option<u64> {
        self.0.run_pending_tasks();
        Some(self.0.entry_count())
    }
}
