//! The tables that MemC3 (NSDI'13 §5) compares its own with, after the paper: an index by chaining,
//! as memcached had it, or by cuckoo hashing; strict LRU, CLOCK, or no replacement; a global lock,
//! a lock to each bucket, optimistic reads, or one thread and no lock.
//!
//! They exist for the comparison only. Each choice is a type, so that a table pays for what it has
//! and nothing else. Everything that threads share is atomic words, read and written relaxed; what
//! orders them are the locks and versions of `locks.rs`. Items are of one size, in chunks as large
//! as the paper's (Table 3): a header of 32 bytes, 8 more for the chain, 24 more for the list of
//! LRU.

mod arena;
mod chained;
mod cuckoo;
mod kind;
mod locks;
mod replacement;
mod table;

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_store::memory::PagePolicy;

use arena::Arena;
pub use kind::{IndexKind, Kind, LockKind, ReplacementKind};
use locks::Locks;
use replacement::Replacement;

/// A chunk of the arena; zero for none.
type Chunk = u32;

/// How keys find chunks.
trait Index: Send + Sync + Sized {
    /// Words that a chunk has for the index.
    const LINK_WORDS: usize;

    /// An empty index for this many items.
    fn new(items: usize, pages: PagePolicy) -> Result<Self>;

    /// The buckets that a key may be in; the same one twice where there is one.
    fn buckets(&self, keyhash: Keyhash) -> [u32; 2];

    /// Finds a key's chunk. May run beside a writer; what it finds is then to be validated.
    fn find<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        key: &[u8; K],
    ) -> Chunk;

    /// Makes room for one more item in one of the buckets, in which no other thread does so at the
    /// time; says whether there is any.
    fn make_room(&self, buckets: [u32; 2], locks: &impl Locks) -> bool;

    /// Makes the index name a chunk. There is room.
    fn insert<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        chunk: Chunk,
    );

    /// Makes the index forget a chunk that it names.
    fn remove<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        buckets: [u32; 2],
        chunk: Chunk,
    );
}

#[cfg(test)]
mod tests;
