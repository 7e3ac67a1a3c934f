//! Finding items: buckets of 15 entries in two cache lines (MICA §4.3.2), chained and growing, for
//! MICA's two modes, and a cuckoo table for MemC3.

mod bucket;
pub mod chained;
pub mod cuckoo;
mod entry;
mod tags;

pub use bucket::{BUCKET_ENTRIES, BUCKETS_MAX, Bucket, SPARE_ENTRIES, SPARE_WORDS};
pub use entry::{Entry, LogId};

use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;

/// Buckets in one chain at most. A reader that races with a writer may follow a link that is being
/// changed; this bounds how far. Under loom a chain is short, so that tests can fill one.
pub const CHAIN_BUCKETS_MAX: usize = if cfg!(loom) { 3 } else { 16 };

/// Entries in one chain at most: those of a main bucket and of spare ones.
pub const CHAIN_ENTRIES_MAX: usize = BUCKET_ENTRIES + (CHAIN_BUCKETS_MAX - 1) * SPARE_ENTRIES;

/// One entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The bucket that holds the entry, by number.
    pub bucket: usize,
    /// Which of its entries.
    pub entry: usize,
}

/// Stores a word if that is `wanted`, without a branch: what is not wanted is stored where no
/// thread looks, so that the line of a word that is left alone stays clean. One thread at a time
/// may do this with one such place.
#[inline(always)]
fn store_if(wanted: bool, cell: &AtomicU64, word: u64, nowhere: &AtomicU64) {
    #[cfg(not(loom))]
    core::hint::select_unpredictable(wanted, cell, nowhere).store(word, Relaxed);
    // A model would have to follow one more atomic with every call.
    #[cfg(loom)]
    if wanted {
        let _ = nowhere;
        cell.store(word, Relaxed);
    }
}
