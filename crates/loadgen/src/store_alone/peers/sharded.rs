//! hashbrown, the table of the standard library, behind a lock for each of many shards.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use hashbrown::{HashTable, hash_table::Entry};
use parking_lot::RwLock;

use super::{Handle, SHARDS, Session};
use crate::store_alone::items::SEED;

type Shard<const K: usize, const V: usize> = CachePadded<RwLock<HashTable<([u8; K], [u8; V])>>>;

/// One thread's handle. The keyhash is computed once, for shard and table.
#[derive(Clone)]
pub struct Sharded<const K: usize, const V: usize>(Arc<[Shard<K, V>]>);

impl<const K: usize, const V: usize> Sharded<K, V> {
    /// A table with room for so many items, for so many threads.
    pub fn handles(capacity: usize, threads: usize) -> Vec<Self> {
        let each = (capacity + capacity / 50) / SHARDS + 16;
        let shards = (0..SHARDS).map(|_| RwLock::new(HashTable::with_capacity(each)).into());
        vec![Sharded(shards.collect()); threads]
    }

    #[inline(always)]
    fn shard(&self, key: &[u8; K]) -> (u64, &Shard<K, V>) {
        let keyhash = SEED.keyhash(key);
        (keyhash.0, &self.0[keyhash.partition(SHARDS)])
    }
}

/// The hash that a shard's table works with. It takes buckets from the low bits and tags from the seven highest, six of which are
/// alike throughout a shard: others are mixed into them.
#[inline(always)]
fn spread(keyhash: u64) -> u64 {
    keyhash ^ keyhash << 7
}

impl<const K: usize, const V: usize> Session<K, V> for Sharded<K, V> {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        let (keyhash, shard) = self.shard(key);
        let shard = shard.read();
        shard
            .find(spread(keyhash), |item| item.0 == *key)
            .map(|item| item.1)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        let (keyhash, shard) = self.shard(&key);
        let mut shard = shard.write();
        let rehash = |item: &([u8; K], [u8; V])| spread(SEED.keyhash(&item.0).0);
        match shard.entry(spread(keyhash), |item| item.0 == key, rehash) {
            Entry::Occupied(mut item) => item.get_mut().1 = value,
            Entry::Vacant(place) => {
                place.insert((key, value));
            }
        }
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        let (keyhash, shard) = self.shard(key);
        let mut shard = shard.write();
        match shard.find_entry(spread(keyhash), |item| item.0 == *key) {
            Ok(item) => {
                item.remove();
                true
            }
            Err(_) => false,
        }
    }
}

impl<const K: usize, const V: usize> Handle<K, V> for Sharded<K, V> {
    const SHARED: bool = true;
    type Session<'a> = &'a mut Self;

    fn session(&mut self) -> &mut Self {
        self
    }

    fn items(&self) -> u64 {
        self.0.iter().map(|shard| shard.read().len() as u64).sum()
    }
}
