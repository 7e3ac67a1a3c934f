//! Replacement rules for a full arena.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Arena, Chunk};

/// The list's two pointers, and memcached's reference count.
pub const LRU_WORDS: usize = 3;
const PREVIOUS: usize = 0;
const NEXT: usize = 1;
/// Not zero while the chunk is in the list.
const LISTED: usize = 2;

/// A replacement rule.
pub trait Replacement: Send + Sync {
    /// Words per chunk for the rule.
    const LINK_WORDS: usize;
    /// Whether its functions must be called by one thread at a time. Otherwise any thread may call
    /// `touch` at any time, and writers the others.
    const SERIAL: bool;

    /// The state for this many chunks.
    fn new(items: usize) -> Self;

    /// An item was used. It may have been removed since.
    fn touch<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk);

    /// An item was inserted.
    fn insert<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk);

    /// An item is removed.
    fn remove<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk);

    /// Chooses an item to evict and forgets it. There must be one.
    fn victim<const K: usize, const V: usize>(&self, arena: &Arena<K, V>) -> Chunk;
}

/// No replacement: the table has room for everything.
pub struct All;

impl Replacement for All {
    const LINK_WORDS: usize = 0;
    const SERIAL: bool = false;

    fn new(_: usize) -> All {
        All
    }

    #[inline(always)]
    fn touch<const K: usize, const V: usize>(&self, _: &Arena<K, V>, _: Chunk) {}

    #[inline(always)]
    fn insert<const K: usize, const V: usize>(&self, _: &Arena<K, V>, _: Chunk) {}

    #[inline(always)]
    fn remove<const K: usize, const V: usize>(&self, _: &Arena<K, V>, _: Chunk) {}

    fn victim<const K: usize, const V: usize>(&self, _: &Arena<K, V>) -> Chunk {
        panic!("a table that evicts nothing has room for everything that is stored")
    }
}

/// Strict LRU. Chunk zero is at both ends of the list.
pub struct Lru;

impl Lru {
    #[inline(always)]
    fn join<const K: usize, const V: usize>(arena: &Arena<K, V>, newer: Chunk, older: Chunk) {
        arena.list_link(newer, NEXT).store(older.into(), Relaxed);
        arena
            .list_link(older, PREVIOUS)
            .store(newer.into(), Relaxed);
    }

    #[inline(always)]
    fn neighbour<const K: usize, const V: usize>(
        arena: &Arena<K, V>,
        chunk: Chunk,
        which: usize,
    ) -> Chunk {
        arena.list_link(chunk, which).load(Relaxed) as Chunk
    }
}

impl Replacement for Lru {
    const LINK_WORDS: usize = LRU_WORDS;
    const SERIAL: bool = true;

    fn new(_: usize) -> Lru {
        Lru
    }

    #[inline(always)]
    fn touch<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk) {
        if Self::neighbour(arena, chunk, LISTED) != 0 {
            self.remove(arena, chunk);
            self.insert(arena, chunk);
        }
    }

    #[inline(always)]
    fn insert<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk) {
        let newest = Self::neighbour(arena, 0, NEXT);
        Self::join(arena, chunk, newest);
        Self::join(arena, 0, chunk);
        arena.list_link(chunk, LISTED).store(1, Relaxed);
    }

    #[inline(always)]
    fn remove<const K: usize, const V: usize>(&self, arena: &Arena<K, V>, chunk: Chunk) {
        let newer = Self::neighbour(arena, chunk, PREVIOUS);
        let older = Self::neighbour(arena, chunk, NEXT);
        Self::join(arena, newer, older);
        arena.list_link(chunk, LISTED).store(0, Relaxed);
    }

    fn victim<const K: usize, const V: usize>(&self, arena: &Arena<K, V>) -> Chunk {
        let oldest = Self::neighbour(arena, 0, PREVIOUS);
        assert!(oldest != 0, "there is an item");
        self.remove(arena, oldest);
        oldest
    }
}

/// CLOCK: evicts the first item in the hand's path that was not used since the hand's last visit
/// (§4.2).
pub struct Clock {
    used: Box<[AtomicU64]>,
    there: Box<[AtomicU64]>,
    hand: AtomicU32,
    chunks: u32,
}

#[inline(always)]
fn bit(bits: &[AtomicU64], chunk: Chunk) -> (&AtomicU64, u64) {
    (&bits[chunk as usize / 64], 1 << (chunk % 64))
}

impl Replacement for Clock {
    const LINK_WORDS: usize = 0;
    const SERIAL: bool = false;

    fn new(items: usize) -> Clock {
        let bits = || (0..items / 64 + 1).map(|_| AtomicU64::new(0)).collect();
        Clock {
            used: bits(),
            there: bits(),
            hand: AtomicU32::new(0),
            chunks: items as u32,
        }
    }

    #[inline(always)]
    fn touch<const K: usize, const V: usize>(&self, _: &Arena<K, V>, chunk: Chunk) {
        let (word, bit) = bit(&self.used, chunk);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    #[inline(always)]
    fn insert<const K: usize, const V: usize>(&self, _: &Arena<K, V>, chunk: Chunk) {
        let (word, there) = bit(&self.there, chunk);
        word.fetch_or(there, Relaxed);
        let (word, used) = bit(&self.used, chunk);
        word.fetch_and(!used, Relaxed);
    }

    #[inline(always)]
    fn remove<const K: usize, const V: usize>(&self, _: &Arena<K, V>, chunk: Chunk) {
        let (word, there) = bit(&self.there, chunk);
        word.fetch_and(!there, Relaxed);
    }

    fn victim<const K: usize, const V: usize>(&self, arena: &Arena<K, V>) -> Chunk {
        loop {
            let chunk = self.hand.load(Relaxed) % self.chunks + 1;
            self.hand.store(chunk, Relaxed);
            let (word, there) = bit(&self.there, chunk);
            if word.load(Relaxed) & there == 0 {
                continue;
            }
            let (word, used) = bit(&self.used, chunk);
            if word.fetch_and(!used, Relaxed) & used == 0 {
                self.remove(arena, chunk);
                return chunk;
            }
        }
    }
}
