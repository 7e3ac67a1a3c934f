//! How large a table is.

use super::{Chunks, Shared, State};
use crate::heap::slab::Slabs;
use crate::index::cuckoo::{BUCKET_SLOTS, CuckooIndex, Directory, Slot, buckets_in};
use crate::memory::{InFile, LINE_WORDS, PagePolicy, Pool};
use crate::table::{Asides, Common, ConfigError, Ledger};
use crossbeam_utils::CachePadded;
use glimmer_base::counter::Counter;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
use glimmer_base::{KeyHasher, Seed};
use std::io;

/// Sizes and choices for one table.
#[derive(Clone, Debug)]
pub struct Memc3Config {
    /// Bytes of items and index together, the writer's bookkeeping included; rounded down to whole
    /// pages.
    pub memory_bytes: usize,
    /// Bytes of a page, which is what slabs and the index grow by: a power of two.
    pub page_bytes: usize,
    /// Largest item in bytes: key, value and up to 32 bytes of header together.
    pub item_bytes_max: usize,
    /// Pages of the kernel to ask for.
    pub pages: PagePolicy,
    /// The NUMA node whose memory is to be used.
    pub numa_node: Option<u32>,
    /// What makes the keyhashes of requests; the hand of CLOCK hashes keys again.
    pub hasher: KeyHasher,
    /// What copies of lent values may take beside the table.
    pub asides: Asides,
    /// The file that the table lies in, and which of the file's partitions it is.
    pub file: InFile,
}

/// Smallest item in words, by which the directory is sized.
const ITEM_WORDS_MIN: usize = 3;

impl Memc3Config {
    /// Usual size of a page. A page of the index has 12,288 slots, and splitting it takes a
    /// fraction of a millisecond.
    pub const PAGE_BYTES: usize = 64 << 10;
    /// Most memory of one table: index slots have 30 bits for offsets in words.
    pub const MEMORY_BYTES_MAX: usize = 8 * Slot::OFFSETS;
    /// A table has at least this many pages, if they can be large enough for that.
    const PAGES_MIN: usize = 256;
    /// Smallest page that [`page_bytes_for`](Self::page_bytes_for) gives.
    const PAGE_BYTES_MIN: usize = 4 << 10;
    /// The index takes at most this part of the pages, be items ever so small.
    const INDEX_SHARE_MAX: usize = 2;

    /// The size of pages for so much memory: the usual one, or smaller where there would be few.
    pub fn page_bytes_for(memory_bytes: usize) -> usize {
        let bytes = (memory_bytes / Self::PAGES_MIN).max(1);
        (1 << bytes.ilog2()).clamp(Self::PAGE_BYTES_MIN, Self::PAGE_BYTES)
    }

    pub(super) fn build(&self) -> Result<(Shared, State), ConfigError> {
        let page_words = self.page_bytes / 8;
        assert!(
            page_words.is_power_of_two() && page_words >= 2 * LINE_WORDS,
            "a page is a power of two and has at least two lines"
        );
        if self.memory_bytes > Self::MEMORY_BYTES_MAX {
            return Err(ConfigError::TooLarge {
                memory_bytes: self.memory_bytes,
                memory_bytes_max: Self::MEMORY_BYTES_MAX,
            });
        }
        let item_words_max = match cfg!(any(loom, miri)) {
            true => self.item_bytes_max / 8,
            false => self.item_bytes_max.max(KEY_BYTES_MAX + 32).div_ceil(8),
        };
        let pages = self.memory_bytes / (self.page_bytes + Slabs::BYTES_PER_PAGE);
        // Room for an item beside the one that it replaces, however scattered.
        let item_pages_min = 2 * item_words_max.div_ceil(page_words) + 1;
        if pages <= item_pages_min {
            return Err(ConfigError::TooSmall {
                memory_bytes: self.memory_bytes,
                item_bytes_max: self.item_bytes_max,
            });
        }
        let segments_max = (pages / Self::INDEX_SHARE_MAX).clamp(1, pages - item_pages_min);
        let slots = buckets_in(page_words) as usize * BUCKET_SLOTS;
        // Four times as many as the smallest items would fill: keys lie up to half as densely again
        // as on average, and a segment may be half full.
        let wanted = 4 * (pages * page_words / ITEM_WORDS_MIN) / slots;
        let depth = wanted.next_power_of_two().trailing_zeros();
        let pool = self.pool(pages).map_err(ConfigError::Memory)?;
        let root = pages - 1;
        let mut state = State {
            slabs: Slabs::new(&pool, pages, item_words_max),
            search: Default::default(),
            expired: Default::default(),
            path: Vec::new(),
            ledger: Ledger::default(),
            segments: 1,
            segments_max,
            unused: None,
            slab_items: Vec::new(),
            slab_slots: Vec::new(),
            leaving: Vec::new(),
            walk: None,
            has_moved_dead: false,
            sweeps: 0,
            kept: None,
        };
        let given = state.slabs.give_last_page();
        debug_assert_eq!(given, root);
        let index = CuckooIndex {
            nowhere: CachePadded::new(AtomicU64::new(0)),
            directory: Directory::new(depth.min(Directory::DEPTH_MAX), root, page_words),
            pool: pool.clone(),
            pages: Counter::default(),
        };
        index.pages.set(1);
        let heap = Chunks {
            pool,
            item_words_max,
        };
        let shared = Shared {
            index,
            heap,
            common: Common::new(self.hasher.clone(), self.asides.clone()),
        };
        Ok((shared, state))
    }

    fn pool(&self, pages: usize) -> io::Result<Pool> {
        let page_words = self.page_bytes / 8;
        match &self.file {
            None => Pool::new(pages, page_words, self.pages, self.numa_node),
            Some((file, _)) => {
                let words = file.memory(pages * page_words, self.pages)?;
                words.settle(self.pages, self.numa_node)?;
                Ok(Pool::of(words, page_words))
            }
        }
    }
}

impl Default for Memc3Config {
    /// 64 MiB.
    fn default() -> Self {
        Memc3Config {
            memory_bytes: 64 << 20,
            page_bytes: Self::PAGE_BYTES,
            item_bytes_max: glimmer_base::limits::ITEM_BYTES_DEFAULT,
            pages: PagePolicy::default(),
            numa_node: None,
            hasher: Seed(0).into(),
            asides: Asides::default(),
            file: None,
        }
    }
}
