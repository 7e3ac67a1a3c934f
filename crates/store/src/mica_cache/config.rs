//! How large a partition is.

use super::ages::SharedAges;
use super::share::{Claimed, PAGE_WORDS, Share, range_words};
use super::{Logs, Shared};
use crate::evict::{Learner, Rule};
use crate::heap::{CircularLog, Geometry};
use crate::index::chained::{BUCKET_WORDS, ChainedIndex};
use crate::index::{BUCKETS_MAX, SPARE_WORDS};
use crate::memory::{Commons, HUGE_PAGE, InFile, MemoryFile, PagePolicy, PagesAhead, ZeroedSlice};
use crate::table::{Asides, Common, ConfigError};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
use glimmer_base::{KeyHasher, Seed};
use std::io;
use std::sync::Arc;

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
    /// What copies of lent values may take beside the table.
    pub asides: Asides,
    /// The memory of this partition and others together. It has this many bytes of log and index
    /// if it is one of equal shares, and claims more or less of them as it fills. None: it has its
    /// bytes for itself. Reserved huge pages are all taken at once, so they cannot be in common.
    pub commons: Option<Commons>,
    /// What takes pages of memory in common before they are touched. None: they are taken when they
    /// are touched.
    pub pages_ahead: Option<PagesAhead>,
    /// What learns from the requests under a rule that does, for all partitions of a table. By
    /// default a partition has its own.
    pub learner: Option<Arc<Learner>>,
    /// The file that the memory lies in, and the partition's number there. Partitions are made in
    /// the order of their numbers. None: the memory is the process's own.
    pub file: InFile,
}

/// Logs are made of whole pages; under loom and Miri, of single words.
const LOG_UNIT_WORDS: usize = if cfg!(any(loom, miri)) { 1 } else { 512 };
/// A log that holds nothing: a page, or as many words as an item has at least.
const UNUSED_LOG_WORDS: usize = if cfg!(any(loom, miri)) { 2 } else { 512 };
/// The small log of a partition that shares its memory has no more than this from the start. What
/// is too large for it would else find less memory.
const SMALL_LEAST_BYTES_MAX: usize = 64 << 10;
/// More addresses than this are not asked for.
const ADDRESSES_MAX: usize = 64 << 40;
/// Below this many words a small log is not worth having.
const SMALL_LOG_WORDS_MIN: usize = if cfg!(any(loom, miri)) {
    16
} else {
    4 * LOG_UNIT_WORDS
};

impl PartitionConfig {
    /// Most bytes of one partition, log and index together: all of them could be buckets.
    pub const MEMORY_BYTES_MAX: usize = BUCKETS_MAX * 8 * SPARE_WORDS;

    /// Memory for this many partitions of these sizes, which they may have in common. None if the
    /// kernel does not give the process as many addresses, and as many again for all else.
    pub fn commons(&self, partitions: usize) -> Option<Commons> {
        let index_bytes = index_bytes(self.main_buckets, self.spare_buckets);
        let share_bytes = (self.log_words() * 8).checked_add(index_bytes)?;
        let commons = Commons::new(share_bytes.checked_mul(partitions)?, partitions);
        let range = self.range_words(&commons, share_bytes / 8) as usize;
        let words = (range + self.log_words()).checked_mul(2 * partitions)?;
        words
            .checked_mul(8)
            .filter(|&bytes| bytes < ADDRESSES_MAX)?;
        let probe = ZeroedSlice::<AtomicU64>::sparse(words, PagePolicy::Small, None);
        probe.is_ok().then_some(commons)
    }

    /// Words of addresses for one of the partitions that share `commons`.
    fn range_words(&self, commons: &Commons, share_words: usize) -> u64 {
        let range = range_words(commons, share_words as u64, self.item_bytes_max as u64 / 8);
        range.min(Self::MEMORY_BYTES_MAX as u64 / 8)
    }

    fn log_words(&self) -> usize {
        self.log_bytes / 8 / LOG_UNIT_WORDS * LOG_UNIT_WORDS
    }

    /// A partition, its share of the memory, and how far its logs may go.
    pub(super) fn build(&self, rule: Rule) -> Result<(Shared, Share, [u64; 2]), ConfigError> {
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
        let words = self.log_words();
        let small_words = words * rule.small_log_percent / 100 / LOG_UNIT_WORDS * LOG_UNIT_WORDS;
        let small_words = if small_words < SMALL_LOG_WORDS_MIN {
            0
        } else {
            small_words
        };
        let item_words_max = match cfg!(any(loom, miri)) {
            true => self.item_bytes_max / 8,
            false => self.item_bytes_max.max(KEY_BYTES_MAX + 32).div_ceil(8),
        };
        let sizes = Sizes {
            main_words: words - small_words,
            small_words,
            item_words_max,
            // Larger ones go to the main log at once, where those that are asked for once push out
            // what is read. The tail does not come to the last word.
            small_item_words_max: item_words_max.min(small_words.saturating_sub(1)),
            index_words: index_bytes / 8,
        };
        // Where the kernel does not give as many addresses, shares are equal.
        let Memory {
            main,
            small,
            share,
            limits,
        } = match &self.commons {
            // What lies where in a file follows from the settings alone.
            Some(commons) if self.file.is_some() => self.in_common(&sizes, commons)?,
            Some(commons) => {
                (self.in_common(&sizes, commons)).or_else(|_| self.fixed(&sizes, Some(commons)))?
            }
            None => self.fixed(&sizes, None)?,
        };
        let ratio = (spares, self.main_buckets);
        let index = ChainedIndex::new(main.clone(), self.main_buckets, ratio);
        let log = |words, item_words_max| CircularLog::new(words, item_words_max, self.offset_bits);
        let small_claimed = match sizes.small_words {
            0 => 0,
            _ => limits[1],
        };
        let heap = Logs {
            logs: [
                log(main, item_words_max),
                log(small, sizes.small_item_words_max),
            ],
            flushed_from: Default::default(),
            flushed_to: Default::default(),
            ages: SharedAges::default(),
            rule,
            claimed: Claimed {
                commons: share.is_in_common().then(|| self.commons.clone()).flatten(),
                words: AtomicU64::new(share.words() + small_claimed),
            },
            pages_ahead: self.pages_ahead.clone(),
            learner: match rule.learns {
                true => self.learner.clone().unwrap_or_default(),
                false => Arc::new(Learner::fixed(rule.setting)),
            },
        };
        (heap.learner).add_partition(
            sizes.main_words + sizes.small_words,
            sizes.small_item_words_max,
        );
        let shared = Shared {
            index,
            heap,
            common: Common::new(self.hasher.clone(), self.asides.clone()),
        };
        Ok((shared, share, limits))
    }

    /// Memory for this partition alone, which it takes from the common one if there is one.
    fn fixed(&self, sizes: &Sizes, commons: Option<&Commons>) -> Result<Memory, ConfigError> {
        let words = |words: usize, pages: PagePolicy| {
            let taken = match &self.file {
                Some((file, _)) => self.in_file(file, words, pages),
                None => ZeroedSlice::within(words, pages, self.numa_node),
            };
            taken.map_err(ConfigError::Memory)
        };
        // A small log that no reserved huge page fits into lies on others.
        let small_pages = match self.pages {
            PagePolicy::Hugetlb if sizes.small_words * 8 < HUGE_PAGE => PagePolicy::Transparent,
            pages => pages,
        };
        let small = match sizes.small_words {
            0 => words(UNUSED_LOG_WORDS, PagePolicy::Small)?,
            some => words(some, small_pages)?,
        };
        let main = words(sizes.main_words + sizes.index_words, self.pages)?;
        let left = main.len().saturating_sub(sizes.index_words);
        if left < 2 * sizes.item_words_max {
            return Err(self.too_small(main.len()));
        }
        if let Some(commons) = commons
            && !commons.claim((main.len() + sizes.small_words) as u64)
        {
            return Err(self.too_small(8 * commons.left() as usize));
        }
        // The index consists of whole spare buckets, and begins where one can.
        let lines_words = main.len() / SPARE_WORDS * SPARE_WORDS;
        let border = (lines_words - sizes.index_words) as u64;
        let small_limit = small.len() as u64 - 1;
        Ok(Memory {
            share: Share::fixed(main.len() as u64, border),
            limits: [border, small_limit],
            main,
            small,
        })
    }

    /// Addresses for this partition, and the least memory for it of the common one.
    fn in_common(&self, sizes: &Sizes, commons: &Commons) -> Result<Memory, ConfigError> {
        let sparse = |words: u64| {
            let taken = match &self.file {
                Some((file, _)) => self.in_file(file, words as usize, self.pages),
                None => ZeroedSlice::sparse(words as usize, self.pages, self.numa_node),
            };
            taken.map_err(ConfigError::Memory)
        };
        let in_pages = |words: usize| (words as u64).next_multiple_of(PAGE_WORDS);
        let share_words = (sizes.main_words + sizes.index_words) as u64;
        let range = self.range_words(commons, share_words as usize);
        let least = in_pages(2 * sizes.item_words_max);
        let floor = range.checked_sub(in_pages(sizes.index_words));
        let small_least = in_pages(sizes.small_item_words_max.min(SMALL_LEAST_BYTES_MAX / 8))
            .min(sizes.small_words as u64);
        let Some(floor) = floor.filter(|&floor| floor >= least) else {
            return Err(self.too_small(8 * share_words as usize));
        };
        let (main, small) = match sizes.small_words {
            0 => (sparse(range)?, sparse(UNUSED_LOG_WORDS as u64)?),
            some => (sparse(range)?, sparse(some as u64)?),
        };
        let equal = [sizes.main_words as u64, sizes.small_words as u64];
        let share = Share::least(range, floor, least, equal);
        if !commons.claim(share.words() + small_least) {
            return Err(self.too_small(8 * share_words as usize));
        }
        main.grant(0..least as usize);
        Ok(Memory {
            main,
            small,
            share,
            limits: [least, small_least.max(UNUSED_LOG_WORDS as u64 - 1)],
        })
    }

    fn in_file(
        &self,
        file: &MemoryFile,
        words: usize,
        pages: PagePolicy,
    ) -> io::Result<ZeroedSlice<AtomicU64>> {
        let memory = file.memory(words, pages)?;
        memory.settle(pages, self.numa_node)?;
        Ok(memory)
    }

    fn too_small(&self, words: usize) -> ConfigError {
        ConfigError::TooSmall {
            memory_bytes: words * 8,
            item_bytes_max: self.item_bytes_max,
        }
    }
}

/// Words of the parts of a partition, if all shares are equal.
struct Sizes {
    main_words: usize,
    /// Zero without a small log.
    small_words: usize,
    item_words_max: usize,
    small_item_words_max: usize,
    index_words: usize,
}

/// The memory of a partition.
struct Memory {
    /// For the main log and the index.
    main: ZeroedSlice<AtomicU64>,
    small: ZeroedSlice<AtomicU64>,
    share: Share,
    limits: [u64; 2],
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
            asides: Asides::default(),
            commons: None,
            pages_ahead: None,
            learner: None,
            file: None,
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
