//! How large a partition is.

use super::Shared;
use crate::evict::Evict;
use crate::heap::{CircularLog, Geometry};
use crate::index::Index;
use crate::memory::{HUGE_PAGE, PagePolicy};
use crossbeam_utils::CachePadded;
use glimmer_base::Seed;
use glimmer_base::counter::Counter;
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
use std::fmt;

/// Sizes and choices for one partition.
#[derive(Clone, Copy, Debug)]
pub struct PartitionConfig {
    /// Bytes of the log or logs together; rounded down to whole pages.
    pub log_bytes: usize,
    /// Main buckets of the index, of 15 entries and 128 bytes each.
    pub main_buckets: usize,
    /// Spare buckets of the index.
    pub spare_buckets: usize,
    /// Largest item in bytes: key, value and up to 32 bytes of header together.
    pub item_bytes_max: usize,
    /// Width of the index's offsets, which count words: [`Geometry::OFFSET_BITS_MAX`] unless a
    /// test wants them to wrap soon.
    pub offset_bits: u32,
    /// Pages to ask for.
    pub pages: PagePolicy,
    /// The NUMA node whose memory is to be used.
    pub numa_node: Option<u32>,
    /// Seed of the keyhash; the head of the log hashes keys anew.
    pub seed: Seed,
}

/// Why a partition cannot be made.
#[derive(Debug)]
pub enum ConfigError {
    /// The log cannot hold two of the largest items.
    LogTooSmall {
        /// Bytes of the log.
        log_bytes: usize,
        /// Bytes of the largest item.
        item_bytes_max: usize,
    },
    /// There is no bucket.
    NoBuckets,
    /// The kernel refused.
    Memory(std::io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::LogTooSmall {
                log_bytes,
                item_bytes_max,
            } => write!(
                f,
                "a log of {log_bytes} bytes cannot hold two items of {item_bytes_max} bytes: more memory (-m) or a smaller item limit (-I) is needed"
            ),
            ConfigError::NoBuckets => write!(f, "an index needs at least one bucket"),
            ConfigError::Memory(error) => {
                write!(f, "the kernel gave no memory for a partition: {error}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Logs are made of whole pages; under loom and Miri, of single words.
const LOG_UNIT_WORDS: usize = if cfg!(any(loom, miri)) { 1 } else { 512 };
/// The small log takes only items of which it can hold this many.
const SMALL_LOG_ITEMS_MIN: usize = 16;
/// Below this many words a small log is not worth having.
const SMALL_LOG_WORDS_MIN: usize = if cfg!(any(loom, miri)) {
    16
} else {
    4 * LOG_UNIT_WORDS
};

impl PartitionConfig {
    pub(super) fn build<E: Evict>(&self) -> Result<Shared, ConfigError> {
        if self.main_buckets == 0 {
            return Err(ConfigError::NoBuckets);
        }
        let index = Index::new(
            self.main_buckets,
            self.spare_buckets,
            self.pages,
            self.numa_node,
        )
        .map_err(ConfigError::Memory)?;
        // What rounding the index to whole huge pages costs is taken from the log.
        let words = (self.log_bytes / 8).saturating_sub(index.rounding_bytes() / 8)
            / LOG_UNIT_WORDS
            * LOG_UNIT_WORDS;
        let small_words =
            words * E::SMALL_LOG_PERCENT as usize / 100 / LOG_UNIT_WORDS * LOG_UNIT_WORDS;
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
        if main_words < 2 * item_words_max {
            return Err(ConfigError::LogTooSmall {
                log_bytes: main_words * 8,
                item_bytes_max: self.item_bytes_max,
            });
        }
        let log = |words: usize, item_words_max: usize, pages: PagePolicy| {
            CircularLog::new(
                words,
                item_words_max,
                self.offset_bits,
                pages,
                self.numa_node,
            )
            .map_err(ConfigError::Memory)
        };
        // A small log that no reserved huge page fits into lies on others.
        let small_pages = match self.pages {
            PagePolicy::Hugetlb if small_words * 8 < HUGE_PAGE => PagePolicy::Transparent,
            pages => pages,
        };
        let small = match small_words {
            0 => log(LOG_UNIT_WORDS, 0, PagePolicy::Small)?,
            words => log(
                words,
                item_words_max.min(words / SMALL_LOG_ITEMS_MIN),
                small_pages,
            )?,
        };
        Ok(Shared {
            index,
            logs: [log(main_words, item_words_max, self.pages)?, small],
            flushes: AtomicU64::new(0),
            flushed_from: Default::default(),
            flushed_to: Default::default(),
            usual_words: Counter::default(),
            counters: CachePadded::default(),
            seed: self.seed,
            departures: None,
        })
    }
}

impl Default for PartitionConfig {
    /// 64 MiB of log with an index for items of about 64 bytes.
    fn default() -> Self {
        PartitionConfig {
            log_bytes: 64 << 20,
            main_buckets: 96 << 10,
            spare_buckets: 12 << 10,
            item_bytes_max: glimmer_base::limits::ITEM_BYTES_DEFAULT,
            offset_bits: Geometry::OFFSET_BITS_MAX,
            pages: PagePolicy::Auto,
            numa_node: None,
            seed: Seed(0),
        }
    }
}
