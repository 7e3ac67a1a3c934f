//! How many flushes a table has carried out.
//!
//! A caller says with each request how many flushes are due, and every answer is as if the table
//! had carried them out. The writer catches up when it [enters](crate::table::Table::enter). A
//! reader cannot, so it compares numbers:
//!
//! - *Nothing flushed is read.* The writer announces a number, with release, after all that makes
//!   the items disappear. A reader loads the number with acquire. If that is the number that is
//!   due, the reader sees no item from before the flush. If the numbers differ, the reader asks the
//!   writer.
//! - *A flush during a read is noticed*, if the table has no word of its own for that: between the
//!   announcement and the first store to the memory that the flush gave up lies a release fence.
//!   The reader runs an acquire fence after its copy and looks at the number again.

use crate::memory::Record;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::weakened;

/// See the module's text.
#[derive(Default)]
pub(crate) struct FlushCount {
    count: AtomicU64,
    /// The number is kept there as well.
    record: Option<Record>,
}

impl FlushCount {
    /// The number, for the writer.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Goes on from the number that the record keeps.
    pub fn keep_in(&mut self, record: &Record) {
        self.announce(record.flushes().load(Relaxed));
        self.record = Some(record.clone());
    }

    /// A flush is about to be carried out. What a record has of the time before is void.
    pub fn begin(&self) {
        if let Some(record) = &self.record {
            record.discard_image();
        }
    }

    /// Announces a flush. Only the writer does this, when the items are gone.
    #[inline]
    pub fn announce(&self, flushes: u64) {
        self.count.store(flushes, Release);
        if let Some(record) = &self.record {
            record.flushes().store(flushes, Relaxed);
        }
    }

    /// The number, for a reader that begins.
    #[inline(always)]
    pub fn seen(&self) -> u64 {
        self.count.load(Acquire)
    }

    /// Whether a reader that begins sees exactly the flushes that are due.
    #[inline(always)]
    pub fn is_current(&self, flushes: u64) -> bool {
        weakened("flushes_check") || self.seen() == flushes
    }

    /// Whether the number is still this one. To be asked after an acquire fence that follows the
    /// copy.
    #[inline(always)]
    pub fn is_still(&self, flushes: u64) -> bool {
        weakened("flushes_recheck") || self.count.load(Relaxed) == flushes
    }
}
