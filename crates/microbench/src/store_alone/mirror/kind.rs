//! The kinds of mirrors, and how to create one.

use std::{fmt, sync::Arc};

use anyhow::{Result, bail, ensure};
use glimmer_store::memory::PagePolicy;

use super::{
    Index, Locks, Replacement, arena,
    chained::{self, Chained},
    cuckoo::Cuckoo,
    locks::{Global, Optimistic, Striped, Unlocked},
    replacement::{self, All, Clock, Lru},
    table::{Mirror, Shared},
};
use crate::store_alone::{
    items::{PAPER_KEY_BYTES, PAPER_VALUE_BYTES, TINY_BYTES},
    peers::team,
    rig::{Loss, Rig},
};

/// The index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Chaining, with keys compared by `memcmp`.
    Chaining,
    /// Chaining, with keys compared word by word ("int keycmp").
    ChainingByWords,
    /// Cuckoo hashing without tags: every candidate's key is compared.
    Cuckoo,
    /// Cuckoo hashing with tags (§3.1).
    CuckooTags,
}

/// The replacement rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementKind {
    /// None: the table never fills up.
    None,
    /// Strict LRU: a list that every use changes.
    Lru,
    /// CLOCK: approximate LRU with one bit per item (§4.2).
    Clock,
}

/// The locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// None: a single thread.
    None,
    /// One lock for everything.
    Global,
    /// A lock per bucket.
    Bucket,
    /// Readers take no lock: they retry if they met a writer (§3.2.1).
    Optimistic,
}

/// A combination of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The index.
    pub index: IndexKind,
    /// The replacement rule.
    pub replacement: ReplacementKind,
    /// The locks.
    pub locks: LockKind,
    /// Whether arena and index ask for huge pages.
    pub huge_pages: bool,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.index {
            IndexKind::Chaining => "chaining",
            IndexKind::ChainingByWords => "chaining, keys compared by words",
            IndexKind::Cuckoo => "cuckoo",
            IndexKind::CuckooTags => "cuckoo with tags",
        })?;
        out.write_str(match self.replacement {
            ReplacementKind::None => "",
            ReplacementKind::Lru => ", strict LRU",
            ReplacementKind::Clock => ", CLOCK",
        })?;
        out.write_str(match self.locks {
            LockKind::None => ", no lock",
            LockKind::Global => ", one lock",
            LockKind::Bucket => ", a lock for each bucket",
            LockKind::Optimistic => ", optimistic readers",
        })?;
        match self.huge_pages {
            true => out.write_str(", huge pages"),
            false => Ok(()),
        }
    }
}

impl Kind {
    /// memcached's cache, as the paper describes it.
    pub const MEMCACHED: Kind = Kind {
        index: IndexKind::Chaining,
        replacement: ReplacementKind::Lru,
        locks: LockKind::Global,
        huge_pages: false,
    };
    /// The same with a lock per bucket and the paper's engineering.
    pub const MEMCACHED_STRIPED: Kind = Kind {
        index: IndexKind::ChainingByWords,
        replacement: ReplacementKind::Lru,
        locks: LockKind::Bucket,
        huge_pages: true,
    };

    /// The paper's baseline for lookups: chaining, one thread, no locks, no eviction.
    pub const BASELINE: Kind = Kind {
        index: IndexKind::Chaining,
        replacement: ReplacementKind::None,
        locks: LockKind::None,
        huge_pages: false,
    };

    /// Length in bytes of a chunk for a key and a value of these lengths.
    pub fn chunk_bytes(self, key_bytes: usize, value_bytes: usize) -> usize {
        let chain = matches!(self.index, IndexKind::Chaining | IndexKind::ChainingByWords);
        let lru = self.replacement == ReplacementKind::Lru;
        let words = arena::HEADER_WORDS
            + if chain { chained::LINK_WORDS } else { 0 }
            + if lru { replacement::LRU_WORDS } else { 0 };
        8 * words + key_bytes + value_bytes
    }

    /// A table for this many threads with `items` of the paper's items.
    pub fn build(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        self.make(self.wanted(items as usize, Some(items), workers)?)
    }

    /// The same with room for `capacity` items in total.
    pub fn build_with_room(
        self,
        items: u32,
        capacity: u32,
        workers: usize,
    ) -> Result<Box<dyn Rig>> {
        self.make(self.wanted(capacity as usize, Some(items), workers)?)
    }

    /// An empty table for the paper's items, which have `bytes` bytes in total. The index is
    /// additional.
    pub fn cache(self, bytes: usize, workers: usize) -> Result<Box<dyn Rig>> {
        let items = bytes / self.chunk_bytes(PAPER_KEY_BYTES, PAPER_VALUE_BYTES);
        self.make(self.wanted(items, None, workers)?)
    }

    /// A table for this many threads with `items` tiny items. Only for chaining.
    pub fn build_tiny(self, items: u32, workers: usize) -> Result<Box<dyn Rig>> {
        const K: usize = TINY_BYTES;
        let wanted = self.wanted(items as usize, Some(items), workers)?;
        match self {
            Kind::MEMCACHED => wanted.make::<ByBytes, Lru, Global, K, K>(),
            Kind::MEMCACHED_STRIPED => wanted.make::<ByWords, Lru, Striped, K, K>(),
            Kind::BASELINE => wanted.make::<ByBytes, All, Unlocked, K, K>(),
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
            (I::Chaining, P::None, W::None) => wanted.paper::<ByBytes, All, Unlocked>(),
            (I::Chaining, P::None, W::Global) => wanted.paper::<ByBytes, All, Global>(),
            (I::Chaining, P::Lru, W::Global) => wanted.paper::<ByBytes, Lru, Global>(),
            (I::ChainingByWords, P::None, W::None) => wanted.paper::<ByWords, All, Unlocked>(),
            (I::ChainingByWords, P::None, W::Global) => wanted.paper::<ByWords, All, Global>(),
            (I::ChainingByWords, P::None, W::Bucket) => wanted.paper::<ByWords, All, Striped>(),
            (I::ChainingByWords, P::Clock, W::Bucket) => wanted.paper::<ByWords, Clock, Striped>(),
            (I::Cuckoo, P::None, W::None) => wanted.paper::<Cuckoo<false>, All, Unlocked>(),
            (I::Cuckoo, P::None, W::Bucket) => wanted.paper::<Cuckoo<false>, All, Striped>(),
            (I::CuckooTags, P::None, W::None) => wanted.paper::<Cuckoo<true>, All, Unlocked>(),
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
