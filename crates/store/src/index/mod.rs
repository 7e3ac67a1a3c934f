//! Finding items: buckets of 15 entries in two cache lines (MICA §4.3.2), chained and growing, for MICA's two modes, and a cuckoo
//! table for MemC3.

mod bucket;
pub mod chained;
pub mod cuckoo;
mod entry;
mod tags;

pub use bucket::{BUCKET_ENTRIES, Bucket};
pub use entry::{Entry, LogId};

/// Buckets in one chain at most. A reader that races with a writer may follow a link that is being
/// changed; this bounds how far.
pub const CHAIN_BUCKETS_MAX: usize = 8;

/// One entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The bucket that holds the entry, by number.
    pub bucket: usize,
    /// Which of its entries.
    pub entry: usize,
}
