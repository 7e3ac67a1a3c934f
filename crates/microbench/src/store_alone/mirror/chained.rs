//! memcached's index: an array of pointers to the first item of each bucket's chain.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_store::memory::{PagePolicy, ZeroedSlice};

use super::{Arena, Chunk, Index, locks::Locks, trace::Trace};

/// The pointer to the next item of the chain.
pub const LINK_WORDS: usize = 1;

/// `BY_WORDS`: how keys are compared.
pub struct Chained<const BY_WORDS: bool> {
    heads: ZeroedSlice<AtomicU64>,
}

/// Buckets for this many items, a power of two. memcached grows its table beyond 1.5 items per
/// bucket.
pub fn buckets_for(items: usize) -> usize {
    (items * 2).div_ceil(3).next_power_of_two()
}

/// How many items memcached keeps in this many buckets.
pub fn capacity(buckets: usize) -> usize {
    buckets * 3 / 2
}

impl<const BY_WORDS: bool> Index for Chained<BY_WORDS> {
    const LINK_WORDS: usize = LINK_WORDS;
    const IN_TURN: bool = true;

    fn new(items: usize, pages: PagePolicy) -> Result<Self> {
        let heads = ZeroedSlice::new(buckets_for(items), pages, None)?;
        Ok(Chained { heads })
    }

    #[inline(always)]
    fn buckets(&self, keyhash: Keyhash) -> [u32; 2] {
        [keyhash.bucket(self.heads.len()) as u32; 2]
    }

    #[inline(always)]
    fn find<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        _: Keyhash,
        [bucket, _]: [u32; 2],
        key: &[u8; K],
        trace: &mut impl Trace,
    ) -> Chunk {
        let head = &self.heads[bucket as usize];
        trace.bucket();
        trace.index(head);
        let mut chunk = head.load(Relaxed) as Chunk;
        while chunk != 0 {
            trace.item();
            if arena.key_is::<BY_WORDS>(chunk, key) {
                break;
            }
            chunk = arena.index_link(chunk).load(Relaxed) as Chunk;
        }
        chunk
    }

    fn make_room(&self, _: [u32; 2], _: &impl Locks) -> bool {
        true
    }

    #[inline(always)]
    fn insert<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        _: Keyhash,
        [bucket, _]: [u32; 2],
        chunk: Chunk,
    ) {
        let head = &self.heads[bucket as usize];
        arena.index_link(chunk).store(head.load(Relaxed), Relaxed);
        head.store(chunk.into(), Relaxed);
    }

    fn remove<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        [bucket, _]: [u32; 2],
        chunk: Chunk,
    ) {
        let mut link = &self.heads[bucket as usize];
        loop {
            let next = link.load(Relaxed) as Chunk;
            assert!(next != 0, "the chain names the chunk");
            if next == chunk {
                break;
            }
            link = arena.index_link(next);
        }
        link.store(arena.index_link(chunk).load(Relaxed), Relaxed);
    }
}
