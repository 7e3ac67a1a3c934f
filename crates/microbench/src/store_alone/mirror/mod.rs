//! The tables that MemC3 (NSDI'13 §5) compares itself with, reimplemented after the paper. The
//! index uses chaining, as memcached did, or cuckoo hashing. Replacement is strict LRU, CLOCK, or
//! none. Locking is global, per bucket, optimistic, or absent for a single thread.
//!
//! They exist only for this comparison. Each choice is a type, so that a table pays only for what
//! it uses. Shared data consists of atomic words with relaxed accesses; the locks and versions in
//! `locks.rs` order them. All items have the same size, in chunks as large as those of the code
//! that the paper measured ([`layout`]): a header of 32 bytes, 8 more for the chain, and 24 more
//! for the LRU list.

mod arena;
mod chained;
mod counted;
mod cuckoo;
mod kind;
pub mod layout;
mod locks;
mod replacement;
mod table;
mod trace;

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_store::memory::PagePolicy;

use arena::Arena;
pub use counted::{Read, Retries, full_items, lookups, retries};
pub use kind::{IndexKind, Kind, LockKind, ReplacementKind};
use locks::Locks;
use replacement::Replacement;
use trace::Trace;

/// A chunk of the arena; zero means no chunk.
type Chunk = u32;

/// Maps keys to chunks.
trait Index: Send + Sync + Sized {
    /// Words per chunk for the index.
    const LINK_WORDS: usize;
    /// Whether only an item says which one to look at next. Otherwise the index says it of all.
    const IN_TURN: bool;

    /// An empty index for this many items.
    fn new(items: usize, pages: PagePolicy) -> Result<Self>;

    /// The buckets of a key; the same bucket twice if the index has only one per key.
    fn buckets(&self, keyhash: Keyhash) -> [u32; 2];

    /// Finds a key's chunk, and tells `trace` what it reads. May run concurrently with a writer;
    /// the caller must then validate the result.
    fn find<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        key: &[u8; K],
        trace: &mut impl Trace,
    ) -> Chunk;

    /// Makes room for one more item in one of the buckets and returns whether there is room. Only
    /// one thread at a time may do this.
    fn make_room(&self, buckets: [u32; 2], locks: &impl Locks) -> bool;

    /// Adds a chunk. There must be room.
    fn insert<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        chunk: Chunk,
    );

    /// Removes a chunk.
    fn remove<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        buckets: [u32; 2],
        chunk: Chunk,
    );
}

#[cfg(test)]
mod tests;
