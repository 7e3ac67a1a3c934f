//! The paper's index: buckets of four slots, each with a one-byte tag and a pointer, and two
//! buckets per key (§3).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_store::{
    index::cuckoo::{BUCKET_SLOTS, Search, Walks, search::View},
    memory::{PagePolicy, ZeroedSlice},
};
use parking_lot::Mutex;

use super::{Arena, Chunk, Index, locks::Locks, trace::Trace};

/// Words of a bucket: one for the tags, then the pointers.
const BUCKET_WORDS: usize = 1 + BUCKET_SLOTS;
/// Maximum load of the index in percent. The paper's index reaches 95.
const LOAD_PERCENT: usize = 93;
/// Paths per search (§5.2: two are best).
const PATHS: usize = 2;

/// `TAGS`: whether lookups compare tags before keys.
pub struct Cuckoo<const TAGS: bool> {
    words: ZeroedSlice<AtomicU64>,
    /// The number of buckets minus one; the number is a power of two.
    mask: u32,
    walks: Mutex<Walks>,
}

impl<const TAGS: bool> Cuckoo<TAGS> {
    #[inline(always)]
    fn tags_word(&self, bucket: u32) -> &AtomicU64 {
        &self.words[bucket as usize * BUCKET_WORDS]
    }

    #[inline(always)]
    fn slot(&self, bucket: u32, place: usize) -> &AtomicU64 {
        &self.words[bucket as usize * BUCKET_WORDS + 1 + place]
    }

    #[inline(always)]
    fn set(&self, bucket: u32, place: usize, tag: u8, chunk: Chunk) {
        let tags = self.tags_word(bucket);
        let others = tags.load(Relaxed) & !(0xFF << (8 * place));
        tags.store(others | u64::from(tag) << (8 * place), Relaxed);
        self.slot(bucket, place).store(chunk.into(), Relaxed);
    }

    #[inline(always)]
    fn tag_at(&self, bucket: u32, place: usize) -> u8 {
        (self.tags_word(bucket).load(Relaxed) >> (8 * place)) as u8
    }

    fn empty(&self, buckets: [u32; 2]) -> Option<(u32, usize)> {
        let slots = buckets
            .into_iter()
            .flat_map(|bucket| (0..BUCKET_SLOTS).map(move |place| (bucket, place)));
        slots
            .into_iter()
            .find(|&(bucket, place)| self.tag_at(bucket, place) == 0)
    }
}

/// Buckets for this many items, a power of two.
pub fn buckets_for(items: usize) -> usize {
    let buckets = (items * 100).div_ceil(LOAD_PERCENT * BUCKET_SLOTS);
    buckets.next_power_of_two().max(2)
}

/// How many items have room in this many buckets.
pub fn capacity(buckets: usize) -> usize {
    buckets * BUCKET_SLOTS * LOAD_PERCENT / 100
}

/// The tag, never zero.
#[inline(always)]
fn tag_of(keyhash: Keyhash) -> u8 {
    (keyhash.0 as u8).max(1)
}

impl<const TAGS: bool> View for Cuckoo<TAGS> {
    #[inline(always)]
    fn tags(&self, bucket: u32) -> u32 {
        self.tags_word(bucket).load(Relaxed) as u32
    }

    /// The bucket combined by exclusive or with a hash of the tag (§3.1).
    #[inline(always)]
    fn alternate(&self, bucket: u32, tag: u8) -> u32 {
        let hash = u32::from(tag).wrapping_mul(0x5BD1_E995);
        (bucket ^ (hash | 1)) & self.mask
    }
}

impl<const TAGS: bool> Index for Cuckoo<TAGS> {
    const LINK_WORDS: usize = 0;
    const IN_TURN: bool = false;

    fn new(items: usize, pages: PagePolicy) -> Result<Self> {
        let buckets = buckets_for(items);
        Ok(Cuckoo {
            words: ZeroedSlice::new(buckets * BUCKET_WORDS, pages, None)?,
            mask: buckets as u32 - 1,
            walks: Mutex::new(Walks::new(PATHS)),
        })
    }

    #[inline(always)]
    fn buckets(&self, keyhash: Keyhash) -> [u32; 2] {
        let first = keyhash.bucket(self.mask as usize + 1) as u32;
        [first, self.alternate(first, tag_of(keyhash))]
    }

    #[inline(always)]
    fn find<const K: usize, const V: usize>(
        &self,
        arena: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        key: &[u8; K],
        trace: &mut impl Trace,
    ) -> Chunk {
        let tag = tag_of(keyhash);
        for bucket in buckets {
            trace.bucket();
            trace.index(self.tags_word(bucket));
            let tags = self.tags(bucket);
            for place in 0..BUCKET_SLOTS {
                let stored = (tags >> (8 * place)) as u8;
                if if TAGS { stored == tag } else { stored != 0 } {
                    let slot = self.slot(bucket, place);
                    trace.index(slot);
                    let chunk = slot.load(Relaxed) as Chunk;
                    if chunk != 0 {
                        trace.item();
                        if arena.key_is::<true>(chunk, key) {
                            return chunk;
                        }
                    }
                }
            }
        }
        0
    }

    fn make_room(&self, buckets: [u32; 2], locks: &impl Locks) -> bool {
        if self.empty(buckets).is_some() {
            return true;
        }
        let mut path = Vec::new();
        if !self.walks.lock().find(self, buckets, &mut path) {
            return false;
        }
        // From the end backwards, so that every item is always in one of its buckets (§3.2).
        for hop in path.windows(2).rev() {
            let (from, to) = (hop[0], hop[1]);
            locks.change([from.bucket, to.bucket], || {
                let place = from.place as usize;
                let tag = self.tag_at(from.bucket, place);
                let chunk = self.slot(from.bucket, place).load(Relaxed) as Chunk;
                self.set(to.bucket, to.place as usize, tag, chunk);
                self.set(from.bucket, place, 0, 0);
            });
        }
        true
    }

    fn insert<const K: usize, const V: usize>(
        &self,
        _: &Arena<K, V>,
        keyhash: Keyhash,
        buckets: [u32; 2],
        chunk: Chunk,
    ) {
        let (bucket, place) = self.empty(buckets).expect("there is room");
        self.set(bucket, place, tag_of(keyhash), chunk);
    }

    fn remove<const K: usize, const V: usize>(
        &self,
        _: &Arena<K, V>,
        buckets: [u32; 2],
        chunk: Chunk,
    ) {
        for bucket in buckets {
            for place in 0..BUCKET_SLOTS {
                let is_it = self.slot(bucket, place).load(Relaxed) == u64::from(chunk);
                if is_it && self.tag_at(bucket, place) != 0 {
                    return self.set(bucket, place, 0, 0);
                }
            }
        }
        unreachable!("one of its buckets names the chunk");
    }
}
