//! A FIFO queue of keys of the sample, some of which have left it since.

use std::collections::VecDeque;

/// Records of keys that have left stay until they are met, or are this many more than the others.
const SLACK: usize = 64;

/// A key in a queue, with the number of times that it was queued. If it was queued again since, the
/// record is stale.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub node: u16,
    pub turn: u16,
}

#[derive(Default)]
pub(super) struct Queue {
    records: VecDeque<Record>,
    /// Keys that are in the queue.
    pub keys: usize,
    /// Words that they take.
    pub words: u64,
}

impl Queue {
    /// Appends a key.
    #[inline]
    pub fn push(&mut self, record: Record, words: u64) {
        self.records.push_back(record);
        self.keys += 1;
        self.words += words;
    }

    /// Whether most of the records are stale, so that it pays to drop them.
    #[inline]
    pub fn has_many_that_left(&self) -> bool {
        self.records.len() > 2 * self.keys + SLACK
    }

    /// Drops the records that are of no use.
    #[cold]
    #[inline(never)]
    pub fn tidy(&mut self, is_current: impl Fn(Record) -> bool) {
        self.records.retain(|&record| is_current(record));
    }

    /// A key has left the queue; its record stays.
    pub fn left(&mut self, words: u64) {
        self.keys -= 1;
        self.words -= words;
    }

    /// The oldest record, which may be of no use.
    pub fn pop(&mut self) -> Option<Record> {
        self.records.pop_front()
    }
}
