//! How large a partition is.

use super::{Items, Shared};
use crate::heap::segregated_fits::{HEAP_WORDS_MAX, SegregatedFits, Space};
use crate::index::chained::{BUCKET_WORDS, ChainedIndex};
use crate::index::{BUCKETS_MAX, SPARE_WORDS};
use crate::memory::{HUGE_PAGE, InFile, PagePolicy, ZeroedSlice};
use crate::table::{Asides, Common, ConfigError};
use glimmer_base::limits::{ITEM_BYTES_DEFAULT, KEY_BYTES_MAX};
use glimmer_base::sync::AtomicU64;
use glimmer_base::{KeyHasher, Seed};
use std::io;

/// Sizes and choices for one partition.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Bytes of heap and index together, and of what the writer notes about the heap; rounded down
    /// to whole pages.
    pub bytes: usize,
    /// Main buckets of the index at the start, or none for a number that suits the memory.
    pub roots: Option<usize>,
    /// Spare buckets to every hundred main ones, which are twice as large.
    pub spare_percent: usize,
    /// Largest item in bytes: key, value and up to 32 bytes of header together.
    pub item_bytes_max: usize,
    /// Pages to ask for.
    pub pages: PagePolicy,
    /// The NUMA node whose memory is to be used.
    pub numa_node: Option<u32>,
    /// What makes the keyhashes of requests; an item that is moved is hashed again.
    pub hasher: KeyHasher,
    /// What copies of lent values may take beside the table.
    pub asides: Asides,
    /// The file that the partition lies in, and which of the file's partitions it is.
    pub file: InFile,
}

/// Where a partition's writer writes down what it knows of the heap.
pub(super) type Notes = Option<ZeroedSlice<AtomicU64>>;

impl StoreConfig {
    /// The paper's share of spare buckets: 10% of the main buckets' memory.
    pub const SPARE_PERCENT_DEFAULT: usize = 20;
    /// Most bytes of one partition.
    pub const BYTES_MAX: usize =
        HEAP_WORDS_MAX / Self::WORDS_PER_NOTE * (Self::WORDS_PER_NOTE + 1) * 8;

    /// The writer notes a bit for every word of the heap.
    const WORDS_PER_NOTE: usize = 64;
    /// The index starts with this part of the memory. It can grow by a factor of 256, which is
    /// enough for the smallest items; and what it never gives back is too little to matter.
    const ROOTS_SHARE: usize = 256;

    pub(super) fn build(&self) -> Result<(Shared, Notes), ConfigError> {
        if self.bytes > Self::BYTES_MAX {
            return Err(ConfigError::TooLarge {
                memory_bytes: self.bytes,
                memory_bytes_max: Self::BYTES_MAX,
            });
        }
        let bytes = self.bytes / (Self::WORDS_PER_NOTE + 1) * Self::WORDS_PER_NOTE;
        let unit = match self.pages {
            _ if cfg!(any(loom, miri)) => 8 * BUCKET_WORDS,
            PagePolicy::Hugetlb => HUGE_PAGE,
            _ => 4 << 10,
        };
        let words = bytes / unit * unit / 8;
        let item_words_max = match cfg!(any(loom, miri)) {
            true => self.item_bytes_max / 8,
            false => self.item_bytes_max.max(KEY_BYTES_MAX + 32).div_ceil(8),
        };
        let roots = self
            .roots
            .unwrap_or(words / BUCKET_WORDS / Self::ROOTS_SHARE)
            .max(1);
        let spares = roots * self.spare_percent.min(100) / 100 + 1;
        let index_words = roots * BUCKET_WORDS + spares * SPARE_WORDS;
        if words < 2 * item_words_max + index_words {
            return Err(ConfigError::TooSmall {
                memory_bytes: self.bytes,
                item_bytes_max: self.item_bytes_max,
            });
        }
        let (memory, notes) = self.memory(words).map_err(ConfigError::Memory)?;
        let heap = Items {
            space: Space::new(memory.clone(), item_words_max),
            generation: AtomicU64::new(0),
        };
        let shared = Shared {
            index: ChainedIndex::new(memory, roots, (self.spare_percent, 100)),
            heap,
            common: Common::new(self.hasher.clone(), self.asides.clone()),
        };
        Ok((shared, notes))
    }

    /// Memory for heap and index, and what the writer notes about the heap in a file.
    fn memory(&self, words: usize) -> io::Result<(ZeroedSlice<AtomicU64>, Notes)> {
        let Some((file, _)) = &self.file else {
            let memory = ZeroedSlice::new(words, self.pages, self.numa_node)?;
            return Ok((memory, None));
        };
        let in_file = |words: usize| {
            let memory = file.memory(words, self.pages)?;
            memory.settle(self.pages, self.numa_node)?;
            io::Result::Ok(memory)
        };
        let memory = in_file(words)?;
        let notes = in_file(SegregatedFits::note_words(words))?;
        Ok((memory, Some(notes)))
    }
}

const _: () = assert!(
    HEAP_WORDS_MAX / SPARE_WORDS <= BUCKETS_MAX,
    "the index of the largest heap can address all of its memory"
);

impl Default for StoreConfig {
    /// 64 MiB.
    fn default() -> Self {
        StoreConfig {
            bytes: 64 << 20,
            roots: None,
            spare_percent: Self::SPARE_PERCENT_DEFAULT,
            item_bytes_max: ITEM_BYTES_DEFAULT,
            pages: PagePolicy::default(),
            numa_node: None,
            hasher: Seed(0).into(),
            asides: Asides::default(),
            file: None,
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_its_names_cannot_address_is_refused_before_it_is_allocated() {
        for bytes in [StoreConfig::BYTES_MAX + 1, usize::MAX] {
            let config = StoreConfig {
                bytes,
                ..StoreConfig::default()
            };
            let refused = config.build().err();
            assert!(matches!(refused, Some(ConfigError::TooLarge { .. })));
        }
    }
}
