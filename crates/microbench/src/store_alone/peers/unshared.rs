//! hashbrown, the table of the standard library, one per thread: the effect of exclusive access
//! (EREW).

use std::borrow::Borrow;

use glimmer_base::Keyhash;
use hashbrown::{HashTable, hash_table::Entry};

use super::{Direct, Held, HeldKey, Session};
use crate::store_alone::items::SEED;

/// A thread's table.
pub struct Unshared<A, B>(HashTable<(A, B)>);

/// The hash for the table, which takes buckets from the low bits and tags from the seven highest.
/// The highest bits are the same throughout a shard or a thread's share of the keys, so other bits
/// are mixed into them.
#[inline(always)]
fn spread(keyhash: Keyhash) -> u64 {
    keyhash.0 ^ keyhash.0 << 7
}

impl<A, B> Unshared<A, B> {
    /// A table for this many items.
    pub fn new(capacity: usize) -> Self {
        Unshared(HashTable::with_capacity(capacity))
    }

    /// The number of items.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The value of a key with this hash.
    #[inline(always)]
    pub fn find<const K: usize, const V: usize>(
        &self,
        keyhash: Keyhash,
        key: &[u8; K],
    ) -> Option<[u8; V]>
    where
        A: HeldKey<K>,
        B: Held<V>,
    {
        self.0
            .find(spread(keyhash), is::<K, A, B>(key))
            .map(|item| item.1.bytes())
    }

    /// Stores a value under a key with this hash.
    #[inline(always)]
    pub fn store<const K: usize, const V: usize>(
        &mut self,
        keyhash: Keyhash,
        key: [u8; K],
        value: [u8; V],
    ) where
        A: HeldKey<K>,
        B: Held<V>,
    {
        let rehash = |item: &(A, B)| spread(SEED.keyhash(&item.0.bytes()));
        match self.0.entry(spread(keyhash), is::<K, A, B>(&key), rehash) {
            Entry::Occupied(mut item) => item.get_mut().1.write(value),
            Entry::Vacant(place) => {
                place.insert((A::hold(key), B::hold(value)));
            }
        }
    }

    /// Removes the key with this hash and returns whether it was present.
    pub fn take<const K: usize>(&mut self, keyhash: Keyhash, key: &[u8; K]) -> bool
    where
        A: HeldKey<K>,
    {
        match self.0.find_entry(spread(keyhash), is::<K, A, B>(key)) {
            Ok(item) => {
                item.remove();
                true
            }
            Err(_) => false,
        }
    }
}

/// Whether an item has this key.
#[inline(always)]
fn is<const K: usize, A: HeldKey<K>, B>(key: &[u8; K]) -> impl FnMut(&(A, B)) -> bool {
    let sought = A::sought(key);
    move |item| <A as Borrow<A::Sought>>::borrow(&item.0) == sought
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Session<K, V> for Unshared<A, B> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.find(SEED.keyhash(key), key)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.store(SEED.keyhash(&key), key, value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.take(SEED.keyhash(key), key)
    }
}

impl<const K: usize, const V: usize, A: HeldKey<K>, B: Held<V>> Direct<K, V> for Unshared<A, B> {
    const SHARED: bool = false;

    fn items(&self) -> Option<u64> {
        Some(self.count())
    }
}
