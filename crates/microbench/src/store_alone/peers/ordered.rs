//! The standard library's ordered map for one thread, which Formica's comparison called
//! `StdMapStore`.

use std::collections::BTreeMap;

use super::{Direct, Session};

/// A thread's map.
pub struct Ordered<const K: usize, const V: usize>(BTreeMap<[u8; K], [u8; V]>);

impl<const K: usize, const V: usize> Default for Ordered<K, V> {
    fn default() -> Self {
        Ordered(BTreeMap::new())
    }
}

impl<const K: usize, const V: usize> Session<K, V> for Ordered<K, V> {
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

impl<const K: usize, const V: usize> Direct<K, V> for Ordered<K, V> {
    const SHARED: bool = false;

    fn items(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
