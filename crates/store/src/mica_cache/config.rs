//! How large a partition is.

use super::ages::SharedAges;
use super::{Logs, Shared};
use crate::evict::Rule;
use crate::heap::{CircularLog, Geometry};
use crate::index::chained::{BUCKET_WORDS, ChainedIndex};
use crate::index::{BUCKETS_MAX, SPARE_WORDS};
use crate::memory::{HUGE_PAGE, PagePolicy, ZeroedSlice};
use crate::table::{Common, ConfigError};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::{KeyHasher, Seed};

/// Sizes and choices for one partition.
#[derive(Clone, Debug)]
pub struct PartitionConfig {
    /// Bytes of the log or logs together, at the start; rounded down to whole pages.
    pub log_bytes: usize,
    /// Main buckets of the index at the start, of 15 entries and 128 bytes each.
    pub main_buckets: usize,
    /// Spare buckets of the index at the start, of 7 entries and 64 bytes each, at most as many.
    /// Their number follows that of the main ones.
    pub spare_buckets: usize,
    /// Whether the index grows at the log's expense when its spare buckets run out, up to 256 times
    /// its size at the start and half of the memory, and shrinks again.
    pub index_follows: bool,
    /// Largest item in bytes: key, value and up to 32 bytes of header together.
    pub item_bytes_max: usize,
    /// Width of the index's offsets, which count words: [`Geometry::OFFSET_BITS_MAX`] unless a
    /// test wants them to wrap soon.
    pub offset_bits: u32,
    /// Pages to ask for.
    pub pages: PagePolicy,
    /// The NUMA node whose memory is to be used.
    pub numa_node: Option<u32>,
    /// What makes the keyhashes of requests; the head of the log hashes keys again.
    pub hasher: KeyHasher,
}

/// Logs are made of whole pages; under loom and Miri, of single words.
const LOG_UNIT_WORDS: usize = if cfg!(any(loom, miri)) { 1 } else { 512 };
/// A log that holds nothing: a page, or as many words as an item has at least.
const UNUSED_LOG_WORDS: usize = if cfg!(any(loom, miri)) { 2 } else { 512 };
/// The small log takes only items of which it can hold this many; larger ones go to the main log,
/// where those that are asked for once push out what is read. With 8, a log of 10 MiB, as
/// partitions of small stores have them, takes values up to 128 KiB.
const SMALL_LOG_ITEMS_MIN: usize = 8;
/// Below this many words a small log is not worth having.
const SMALL_LOG_WORDS_MIN: usize = if cfg!(any(loom, miri)) {
    16
} else {
    4 * LOG_UNIT_WORDS
};

impl PartitionConfig {
    /// Most bytes of one partition, log and index together: all of them could be buckets.
    pub const MEMORY_BYTES_MAX: usize = BUCKETS_MAX * 8 * SPARE_WORDS;

    pub(super) fn build(&self, rule: Rule) -> Result<Shared, ConfigError> {
        if self.main_buckets == 0 {
            return Err(ConfigError::NoBuckets);
        }
        let spares = self.spare_buckets.min(self.main_buckets);
        let index_bytes = index_bytes(self.main_buckets, spares);
        let memory_bytes = self.log_bytes.saturating_add(index_bytes);
        if memory_bytes > Self::MEMORY_BYTES_MAX {
            return Err(ConfigError::TooLarge {
                memory_bytes,
                memory_bytes_max: Self::MEMORY_BYTES_MAX,
            });
        }
        let words = self.log_bytes / 8 / LOG_UNIT_WORDS * LOG_UNIT_WORDS;
        let small_words = words * rule.small_log_percent / 100 / LOG_UNIT_WORDS * LOG_UNIT_WORDS;
        let small_words = if small_words < SMALL_LOG_WORDS_MIN {
            0
        } else {
            small_words
        };
        let main_words = words - small_words;
        let item_words_max = match cfg!(any(loom, miri)) {
            true => self.item_bytes_max / 8,
            false => self.item_bytes_max.max(KEY_BYTES_MAX + 32).div_ceil(8),
        };
        let index_words = index_bytes / 8;
        let words = |words: usize, pages: PagePolicy| {
            ZeroedSlice::within(words, pages, self.numa_node).map_err(ConfigError::Memory)
        };
        // A small log that no reserved huge page fits into lies on others.
        let small_pages = match self.pages {
            PagePolicy::Hugetlb if small_words * 8 < HUGE_PAGE => PagePolicy::Transparent,
            pages => pages,
        };
        let (small, small_item_words_max) = match small_words {
            0 => (words(UNUSED_LOG_WORDS, PagePolicy::Small)?, 0),
            some => (
                words(some, small_pages)?,
                item_words_max.min(some / SMALL_LOG_ITEMS_MIN),
            ),
        };
        let memory = words(main_words + index_words, self.pages)?;
        let left = memory.len().saturating_sub(index_words);
        if left < 2 * item_words_max {
            return Err(ConfigError::TooSmall {
                memory_bytes: memory.len() * 8,
                item_bytes_max: self.item_bytes_max,
            });
        }
        let ratio = (spares, self.main_buckets);
        let index = ChainedIndex::new(memory.clone(), self.main_buckets, ratio);
        let log = |words, item_words_max| CircularLog::new(words, item_words_max, self.offset_bits);
        let heap = Logs {
            logs: [
                log(memory, item_words_max),
                log(small, small_item_words_max),
            ],
            flushed_from: Default::default(),
            flushed_to: Default::default(),
            ages: SharedAges::default(),
            rule,
        };
        Ok(Shared {
            index,
            heap,
            common: Common::new(self.hasher.clone()),
        })
    }
}

/// Bytes that an index of this many buckets takes.
fn index_bytes(mains: usize, spares: usize) -> usize {
    let mains = mains.saturating_mul(8 * BUCKET_WORDS);
    mains.saturating_add(spares.saturating_mul(8 * SPARE_WORDS))
}

const _: () = assert!(
    (PartitionConfig::MEMORY_BYTES_MAX as u64 / 8 + 1).next_power_of_two()
        <= (1 << Geometry::OFFSET_BITS_MAX) / Geometry::LAPS_MIN,
    "the offsets of the longest log have room for the laps"
);

impl Default for PartitionConfig {
    /// 64 MiB of log with an index for items of about 64 bytes.
    fn default() -> Self {
        PartitionConfig {
            log_bytes: 64 << 20,
            main_buckets: 96 << 10,
            spare_buckets: 12 << 10,
            index_follows: false,
            item_bytes_max: glimmer_base::limits::ITEM_BYTES_DEFAULT,
            offset_bits: Geometry::OFFSET_BITS_MAX,
            pages: PagePolicy::default(),
            numa_node: None,
            hasher: Seed(0).into(),
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::evict::{FIFO, S3_FIFO};

    #[test]
    fn a_partition_that_its_index_cannot_address_is_refused_before_it_is_allocated() {
        let most = PartitionConfig::MEMORY_BYTES_MAX;
        let index = |main_buckets, spare_buckets| PartitionConfig {
            main_buckets,
            spare_buckets,
            ..PartitionConfig::default()
        };
        let default = PartitionConfig::default();
        let log = PartitionConfig {
            log_bytes: most - index_bytes(default.main_buckets, default.spare_buckets) + 1,
            ..default
        };
        for config in [
            log,
            index(1 << 31, 0),
            index(3 << 29, 3 << 29),
            index(usize::MAX, 1),
        ] {
            let refused = |error| matches!(error, Some(ConfigError::TooLarge { .. }));
            assert!(refused(config.build(FIFO).err()), "{config:?}");
            assert!(refused(config.build(S3_FIFO).err()), "{config:?}");
        }
    }
}
