//! Eviction rules. A rule decides; the partition carries out. Each is one file behind [`Evict`].

mod approx_lru;
mod budget;
pub mod clock;
mod fifo;
mod s3fifo;

pub use approx_lru::ApproxLru;
pub use budget::Budget;
pub use fifo::Fifo;
pub use s3fifo::S3Fifo;

use crate::index::LogId;

/// What happens to a live item that has reached the head of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtHead {
    /// It goes.
    Evict,
    /// It is put at the tail of a log, with this count of reads.
    Keep {
        /// The log to put it in.
        log: LogId,
        /// The count it starts with there.
        reads: u8,
    },
}

/// A rule for who stays.
pub trait Evict: Clone + Send + Sync + 'static {
    /// What the rule is called in the configuration.
    const NAME: &'static str;

    /// Reads are counted in the index entry up to this number; zero leaves entries alone.
    const READS_COUNTED: u8;

    /// Percentage of a partition's log memory that goes to a small log in front of the main one;
    /// zero for one log.
    const SMALL_LOG_PERCENT: u64 = 0;

    /// For how many laps of the small log the index remembers an item that was evicted from it.
    const GHOST_LAPS: u64 = 0;

    /// Whether an item that its owner reads is put back at the tail at once. `distance` words lie
    /// between it and the tail of its log, which is `len` words long.
    #[inline(always)]
    fn reinsert_on_read(&self, _distance: u64, _len: u64) -> bool {
        false
    }

    /// The fate of a live item at the head of `log`, read `reads` times since it was put there.
    /// `main_has_room` says whether the main log could take it without giving up a live item.
    fn at_head(&self, log: LogId, reads: u8, main_has_room: bool) -> AtHead;

    /// The log for a new item; `remembered` says whether it was evicted from the small log not long
    /// ago.
    #[inline(always)]
    fn admit(&self, _remembered: bool) -> LogId {
        LogId::Main
    }
}
