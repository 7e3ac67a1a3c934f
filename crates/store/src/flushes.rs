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
//!
//! # Groups
//!
//! While any [group](crate::groups) is known, the caller sets [`GROUPS_DUE`] in the number that it
//! gives, and the table's own word has the same bit, set by the first writer that has entered
//! since. So one comparison, which is there for flushes, tells whether a table has to catch up with
//! either.
//!
//! Who has passed the gate goes by the table's word, and looks at groups if that has the bit. A
//! request that began before the group was invalidated has no bit in its number, and yet looks at
//! groups if it comes to the table after a sweep has begun there. A reader beside writers looks at
//! groups if either word has the bit.

use crate::groups::GROUPS_DUE;
use crate::memory::Record;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::weakened;

/// The number of flushes in a word.
#[inline(always)]
pub(crate) fn number_in(word: u64) -> u64 {
    word & !GROUPS_DUE
}

/// Whether a word says that groups are to be looked at.
#[inline(always)]
pub(crate) fn has_groups(word: u64) -> bool {
    word & GROUPS_DUE != 0
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct FlushCount {
    /// The number, and [`GROUPS_DUE`].
    count: AtomicU64,
    /// The number is kept there as well.
    record: Option<Record>,
}

impl FlushCount {
    /// The number, for the writer.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        number_in(self.count.load(Relaxed))
    }

    /// Whether a writer that enters has nothing to catch up with.
    #[inline(always)]
    pub fn is_word(&self, flushes: u64) -> bool {
        self.count.load(Relaxed) == flushes
    }

    /// Whether a writer that has entered looks at groups.
    #[inline(always)]
    pub fn knows_groups(&self) -> bool {
        has_groups(self.count.load(Relaxed))
    }

    /// Has writers look at groups from now on, or not. Only for the writer.
    pub fn know_groups(&self, knows: bool) {
        let knows = knows && !weakened("groups_known");
        let word = self.get() | if knows { GROUPS_DUE } else { 0 };
        if !self.is_word(word) {
            self.count.store(word, Release);
        }
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

    /// What a reader that begins goes by: the caller's number, with [`GROUPS_DUE`] if the table or
    /// the caller knows of groups. None if the table has not carried out exactly the flushes that
    /// are due.
    #[inline(always)]
    pub fn for_reader(&self, flushes: u64) -> Option<u64> {
        let word = self.count.load(Acquire);
        match weakened("flushes_check") || word == flushes {
            true => Some(flushes),
            false => apart(word, flushes),
        }
    }

    /// Whether the number is still that of a word that a reader goes by. To be asked after an
    /// acquire fence that follows the copy.
    #[inline(always)]
    pub fn is_still(&self, word: u64) -> bool {
        let now = self.count.load(Relaxed);
        weakened("flushes_recheck") || now == word || apart(now, word).is_some()
    }
}

/// [`FlushCount::for_reader`] for two words that differ.
#[cold]
#[inline(never)]
fn apart(word: u64, flushes: u64) -> Option<u64> {
    (number_in(word) == number_in(flushes)).then_some(word | flushes)
}
