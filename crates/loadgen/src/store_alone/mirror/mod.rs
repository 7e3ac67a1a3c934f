//! The tables that MemC3 (NSDI'13 §5) compares its own with, after the paper: an index by chaining, as memcached had it, or by cuckoo
//! hashing; strict LRU, CLOCK, or no replacement; a global lock, a lock to each bucket, optimistic reads, or one thread and no lock.
//!
//! They exist for the comparison only. Each choice is a type, so that a table pays for what it has and nothing else. Everything that threads
//! share is atomic words, read and written relaxed; what orders them are the locks and versions of `locks.rs`. Items are of one size, in chunks
//! as large as the paper's (Table 3): a header of 32 bytes, 8 more for the chain, 24 more for the list of LRU.

mod arena;
mod chained;
mod cuckoo;
mod locks;
mod replacement;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use anyhow::{Result, bail, ensure};
use glimmer_base::Keyhash;
use glimmer_store::memory::PagePolicy;

use super::{
    items::{PAPER_KEY_BYTES, PAPER_VALUE_BYTES, SEED, TINY_BYTES},
    peers::{Handle, Session, team},
    rig::{Loss, Rig},
};
use arena::Arena;
use chained::Chained;
use cuckoo::Cuckoo;
use locks::{Global, Locks, Nobody, Optimistic, Striped};
use replacement::{All, Clock, Lru, Replacement};

/// A chunk of the arena; zero for none.
type Chunk = u32;

/// How keys find chunks.
trait Index: Send + Sync + Sized {
    /// Words that a chunk has for the index.
    const LINK_WORDS: usize;

    /// An empty index for so many items.
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

    /// Makes room for one more item in one of the buckets, in which no other thread does so at the time; says whether there is any.
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

/// A table.
struct Mirror<X, R, L, const K: usize, const V: usize> {
    arena: Arena<K, V>,
    index: X,
    replacement: R,
    locks: L,
    items: AtomicU32,
}

impl<X: Index, R: Replacement, L: Locks, const K: usize, const V: usize> Mirror<X, R, L, K, V> {
    /// A table with room for so many items.
    fn new(items: usize, pages: PagePolicy) -> Result<Self> {
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
    fn get(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let (chunk, value) = self.locks.read(buckets, || {
            let chunk = self.index.find(&self.arena, keyhash, buckets, key);
            if chunk == 0 {
                return (0, [0; V]);
            }
            // Where one lock covers everything, the list is changed under it, too.
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

    #[inline(always)]
    fn put(&self, key: &[u8; K], value: &[u8; V]) {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        let overwrite = || {
            let chunk = self.index.find(&self.arena, keyhash, buckets, key);
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
            // Someone else may have stored it since.
            let found = self.index.find(&self.arena, keyhash, buckets, key);
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

    /// Gives up an item. For writers.
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

    fn remove(&self, key: &[u8; K]) -> bool {
        let keyhash = SEED.keyhash(key);
        let buckets = self.index.buckets(keyhash);
        self.locks.writer(|| {
            let chunk = self.index.find(&self.arena, keyhash, buckets, key);
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

/// One thread's handle.
struct Shared<X, R, L, const K: usize, const V: usize>(Arc<Mirror<X, R, L, K, V>>);

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

impl<X: Index, R: Replacement, L: Locks, const K: usize, const V: usize> Handle<K, V>
    for Shared<X, R, L, K, V>
{
    const SHARED: bool = true;
    type Session<'a>
        = &'a mut Self
    where
        Self: 'a;

    fn session(&mut self) -> &mut Self {
        self
    }

    fn items(&self) -> u64 {
        u64::from(self.0.items.load(Relaxed))
    }
}

/// Which index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Chaining; keys are compared by `memcmp`.
    Chaining,
    /// Chaining; keys are compared word by word ("int keycmp").
    ChainingByWords,
    /// Cuckoo hashing without a look at tags: every candidate's key is compared.
    Cuckoo,
    /// Cuckoo hashing with tags (§3.1).
    CuckooTags,
}

/// Who stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementKind {
    /// Everybody: a table that is not full.
    None,
    /// The recently used, exactly: a list that every use changes.
    Lru,
    /// The recently used, approximately: a bit (§4.2).
    Clock,
}

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Nobody: one thread.
    None,
    /// Everybody for everybody.
    Global,
    /// Users of one bucket for one another.
    Bucket,
    /// Readers for nobody: they read again if they met a writer (§3.2.1).
    Optimistic,
}

/// A table to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Which index.
    pub index: IndexKind,
    /// Who stays.
    pub replacement: ReplacementKind,
    /// Who waits for whom.
    pub locks: LockKind,
    /// Whether arena and index are to lie on huge pages.
    pub huge_pages: bool,
}

impl Kind {
    /// memcached's cache, as the paper found it.
    pub const MEMCACHED: Kind = Kind {
        index: IndexKind::Chaining,
        replacement: ReplacementKind::Lru,
        locks: LockKind::Global,
        huge_pages: false,
    };
    /// The same with a lock for each bucket, and the paper's engineering.
    pub const MEMCACHED_STRIPED: Kind = Kind {
        index: IndexKind::ChainingByWords,
        replacement: ReplacementKind::Lru,
        locks: LockKind::Bucket,
        huge_pages: true,
    };

    /// The paper's baseline for lookups: chaining, one thread, no locks, nothing evicted.
    pub const BASELINE: Kind = Kind {
        index: IndexKind::Chaining,
        replacement: ReplacementKind::None,
        locks: LockKind::None,
        huge_pages: false,
    };

    /// Bytes of a chunk with a key and a value of these sizes.
    pub fn chunk_bytes(self, key_bytes: usize, value_bytes: usize) -> usize {
        let chain = matches!(self.index, IndexKind::Chaining | IndexKind::ChainingByWords);
        let lru = self.replacement == ReplacementKind::Lru;
        let words = arena::HEADER_WORDS
            + if chain { chained::LINK_WORDS } else { 0 }
            + if lru { replacement::LRU_WORDS } else { 0 };
        8 * words + key_bytes + value_bytes
    }

    /// A table for so many threads, filled with `items` of the paper's items.
    pub fn build(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        self.make(self.wanted(items as usize, Some(items), workers)?)
    }

    /// An empty table of the paper's items, which have `bytes` bytes together; the index comes on top.
    pub fn cache(self, bytes: usize, workers: usize) -> Result<Box<dyn Rig>> {
        let items = bytes / self.chunk_bytes(PAPER_KEY_BYTES, PAPER_VALUE_BYTES);
        self.make(self.wanted(items, None, workers)?)
    }

    /// A table for so many threads, filled with `items` tiny items: one of the chained ones.
    pub fn build_tiny(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        const K: usize = TINY_BYTES;
        let wanted = self.wanted(items as usize, Some(items), workers)?;
        match self {
            Kind::MEMCACHED => wanted.make::<ByBytes, Lru, Global, K, K>(),
            Kind::MEMCACHED_STRIPED => wanted.make::<ByWords, Lru, Striped, K, K>(),
            Kind::BASELINE => wanted.make::<ByBytes, All, Nobody, K, K>(),
            _ => bail!("no such table is made for tiny items: {self:?}"),
        }
    }

    fn wanted(self, capacity: usize, fill: Option<u32>, workers: usize) -> Result<Wanted> {
        ensure!(
            self.locks != LockKind::None || workers == 1,
            "a table without locks is for one thread"
        );
        let pages = match self.huge_pages {
            true => PagePolicy::Transparent,
            false => PagePolicy::Small,
        };
        Ok(Wanted {
            capacity,
            fill,
            workers,
            pages,
        })
    }

    fn make(self, wanted: Wanted) -> Result<Box<dyn Rig>> {
        use IndexKind as I;
        use LockKind as W;
        use ReplacementKind as P;
        match (self.index, self.replacement, self.locks) {
            (I::Chaining, P::None, W::None) => wanted.paper::<ByBytes, All, Nobody>(),
            (I::Chaining, P::None, W::Global) => wanted.paper::<ByBytes, All, Global>(),
            (I::Chaining, P::Lru, W::Global) => wanted.paper::<ByBytes, Lru, Global>(),
            (I::ChainingByWords, P::None, W::None) => wanted.paper::<ByWords, All, Nobody>(),
            (I::ChainingByWords, P::None, W::Global) => wanted.paper::<ByWords, All, Global>(),
            (I::ChainingByWords, P::None, W::Bucket) => wanted.paper::<ByWords, All, Striped>(),
            (I::ChainingByWords, P::Clock, W::Bucket) => wanted.paper::<ByWords, Clock, Striped>(),
            (I::Cuckoo, P::None, W::None) => wanted.paper::<Cuckoo<false>, All, Nobody>(),
            (I::Cuckoo, P::None, W::Bucket) => wanted.paper::<Cuckoo<false>, All, Striped>(),
            (I::CuckooTags, P::None, W::None) => wanted.paper::<Cuckoo<true>, All, Nobody>(),
            (I::CuckooTags, P::None, W::Bucket) => wanted.paper::<Cuckoo<true>, All, Striped>(),
            (I::CuckooTags, P::None, W::Optimistic) => {
                wanted.paper::<Cuckoo<true>, All, Optimistic>()
            }
            (I::CuckooTags, P::Lru, W::Optimistic) => {
                wanted.paper::<Cuckoo<true>, Lru, Optimistic>()
            }
            (I::CuckooTags, P::Clock, W::Optimistic) => {
                wanted.paper::<Cuckoo<true>, Clock, Optimistic>()
            }
            _ => bail!("the paper compares no such table: {self:?}"),
        }
    }
}

type ByBytes = Chained<false>;
type ByWords = Chained<true>;

struct Wanted {
    capacity: usize,
    fill: Option<u32>,
    workers: usize,
    pages: PagePolicy,
}

impl Wanted {
    fn paper<X: Index + 'static, R: Replacement + 'static, L: Locks + 'static>(
        &self,
    ) -> Result<Box<dyn Rig>> {
        self.make::<X, R, L, PAPER_KEY_BYTES, PAPER_VALUE_BYTES>()
    }

    fn make<
        X: Index + 'static,
        R: Replacement + 'static,
        L: Locks + 'static,
        const K: usize,
        const V: usize,
    >(
        &self,
    ) -> Result<Box<dyn Rig>> {
        let table = Arc::new(Mirror::<X, R, L, K, V>::new(self.capacity, self.pages)?);
        let handles = (0..self.workers).map(|_| Shared(table.clone())).collect();
        Ok(match self.fill {
            Some(items) => Box::new(team(handles, Loss::AtMost(0.0)).fill(items)?),
            None => Box::new(team(handles, Loss::Refilled)),
        })
    }
}

#[cfg(test)]
mod tests;
