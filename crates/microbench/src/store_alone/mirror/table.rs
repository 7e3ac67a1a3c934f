//! A mirror: the combination of arena, index, replacement and locks.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_store::memory::PagePolicy;

use super::{Arena, Chunk, Index, Locks, Replacement, trace::Trace};
use crate::store_alone::{
    items::SEED,
    peers::{Direct, Session},
};

/// A table.
pub struct Mirror<X, R, L, const K: usize, const V: usize> {
    arena: Arena<K, V>,
    index: X,
    replacement: R,
    locks: L,
    pub(super) items: AtomicU32,
}

impl<X: Index, R: Replacement, L: Locks, const K: usize, const V: usize> Mirror<X, R, L, K, V> {
    /// A table for this many items.
    pub fn new(items: usize, pages: PagePolicy) -> Result<Self> {
        let replacement = R::new(items);
        Ok(Mirror {
            arena: Arena::new(items, X::LINK_WORDS, R::LINK_WORDS, pages)?,
            index: X::new(items, pages)?,
            replacement,
            locks: L::new(),
            items: AtomicU32::new(0),
        })
    }

    #[inline(always)]
    fn find(&self, keyhash: Keyhash, buckets: [u32; 2], key: &[u8; K]) -> Chunk {
        self.index.find(&self.arena, keyhash, buckets, key, &mut ())
    }

    /// Looks a key up and tells `trace` what that reads. Returns whether the key is there.
    pub fn traced(&self, key: &[u8; K], trace: &mut impl Trace) -> bool {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let found = self.index.find(&self.arena, keyhash, buckets, key, trace);
        found != 0
    }

    /// Reads a key, and does something else after the first look at its buckets. Returns how often
    /// it looked: more than once if what was done changed a version that the read depends on.
    pub fn looks_around(&self, key: &[u8; K], mut meanwhile: impl FnMut()) -> u32 {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let mut looks = 0;
        self.locks.read(buckets, || {
            self.find(keyhash, buckets, key);
            if looks == 0 {
                meanwhile();
            }
            looks += 1;
        });
        looks
    }

    /// The locks.
    pub fn locks(&self) -> &L {
        &self.locks
    }

    /// The key's value.
    #[inline(always)]
    pub fn get(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let (chunk, value) = self.locks.read(buckets, || {
            let chunk = self.find(keyhash, buckets, key);
            if chunk == 0 {
                return (0, [0; V]);
            }
            // If one lock covers everything, it also covers the list.
            if L::SERIAL {
                self.replacement.touch(&self.arena, chunk);
            }
            (chunk, self.arena.value(chunk))
        });
        if chunk == 0 {
            return None;
        }
        if !L::SERIAL {
            self.locks
                .touch(R::SERIAL, || self.replacement.touch(&self.arena, chunk));
        }
        Some(value)
    }

    /// Stores a value, replacing the present one.
    #[inline(always)]
    pub fn put(&self, key: &[u8; K], value: &[u8; V]) {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let overwrite = || {
            let chunk = self.find(keyhash, buckets, key);
            if chunk != 0 {
                self.arena.set_value(chunk, value);
                if L::SERIAL {
                    self.replacement.touch(&self.arena, chunk);
                }
            }
            chunk
        };
        let chunk = self.locks.overwrite(buckets, overwrite);
        if chunk == 0 {
            self.insert(keyhash, buckets, key, value);
        } else if !L::SERIAL {
            self.locks
                .touch(R::SERIAL, || self.replacement.touch(&self.arena, chunk));
        }
    }

    fn insert(&self, keyhash: Keyhash, buckets: [u32; 2], key: &[u8; K], value: &[u8; V]) {
        self.locks.writer(|| {
            // Another thread may have stored the key meanwhile.
            let found = self.find(keyhash, buckets, key);
            if found != 0 {
                let set = || self.arena.set_value(found, value);
                return self.locks.change(buckets, set);
            }
            let chunk = match self.arena.take() {
                0 => self.evict(),
                chunk => chunk,
            };
            self.arena.write(chunk, key, value);
            while !self.index.make_room(buckets, &self.locks) {
                let victim = self.evict();
                self.arena.give_back(victim);
            }
            self.locks.change(buckets, || {
                self.index.insert(&self.arena, keyhash, buckets, chunk);
            });
            let add = || self.replacement.insert(&self.arena, chunk);
            self.locks.touch(R::SERIAL, add);
            self.items.fetch_add(1, Relaxed);
        });
    }

    /// Evicts an item. For writers.
    fn evict(&self) -> Chunk {
        let choose = || self.replacement.victim(&self.arena);
        let victim = self.locks.touch(R::SERIAL, choose);
        self.unlink(victim);
        victim
    }

    fn unlink(&self, chunk: Chunk) {
        let keyhash = SEED.keyhash(&self.arena.key(chunk));
        let buckets = self.index.buckets(keyhash);
        self.locks.change(buckets, || {
            self.index.remove(&self.arena, buckets, chunk);
        });
        self.items.fetch_sub(1, Relaxed);
    }

    /// Removes the key and returns whether it was present.
    pub fn remove(&self, key: &[u8; K]) -> bool {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        self.locks.writer(|| {
            let chunk = self.find(keyhash, buckets, key);
            if chunk == 0 {
                return false;
            }
            let leave = || self.replacement.remove(&self.arena, chunk);
            self.locks.touch(R::SERIAL, leave);
            self.unlink(chunk);
            self.arena.give_back(chunk);
            true
        })
    }
}

/// The handle of one thread.
pub struct Shared<X, R, L, const K: usize, const V: usize>(pub Arc<Mirror<X, R, L, K, V>>);

impl<X: Index, R: Replacement, L: Locks, const K: usize, const V: usize> Session<K, V>
    for Shared<X, R, L, K, V>
{
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        self.0.get(key)
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        self.0.put(&key, &value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.remove(key)
    }
}

impl<X: Index, R: Replacement, L: Locks, const K: usize, const V: usize> Direct<K, V>
    for Shared<X, R, L, K, V>
{
    fn items(&self) -> Option<u64> {
        Some(u64::from(self.0.items.load(Relaxed)))
    }
}
