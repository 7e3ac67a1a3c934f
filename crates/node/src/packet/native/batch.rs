//! Datagrams that are answered together.

use super::completions::{CompletionSlot, RecordedReply};
use super::context::RequestContext;
use arrayvec::ArrayVec;
use glimmer_base::limits::BATCH_MAX;
use glimmer_engine::Job;
use glimmer_proto::native::Status;

/// What becomes of one request of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// The engine executes it.
    Job {
        /// Where the completion table has it, if it is a mutation.
        slot: Option<CompletionSlot>,
        /// The first byte of the reply that is wanted, where that is long.
        offset: u32,
    },
    /// This is the answer.
    Settled(Status),
    /// It was executed before; the answer has this place among the batch's.
    Repeated(u32),
    /// The directory is wanted.
    Directory,
    /// A request in fragments lacks everything from this byte on.
    Progress(u32),
    /// Another worker answers.
    HandedOver,
}

/// Why nothing was entered for a request. Unless another worker has to execute it, the batch has to
/// be executed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The same mutation is in the batch: its answer is known once that is executed.
    Pending,
    /// Another worker has the completion table that the mutation needs.
    Busy,
    /// It is not for this batch: this worker has to execute it.
    Elsewhere(usize),
}

/// Datagrams that are answered together, and what becomes of their requests.
#[derive(Default)]
pub struct Batch {
    pub contexts: Vec<RequestContext>,
    pub entries: Vec<Entry>,
    /// What was answered to mutations that were executed before.
    pub answers: Vec<RecordedReply>,
}

impl Batch {
    /// Enters an answer that needs no engine.
    #[inline]
    pub fn settle(&mut self, status: Status) -> Result<(), Wait> {
        self.entries.push(Entry::Settled(status));
        Ok(())
    }
}

/// What the entries of a batch that are jobs ask of the engine.
pub type Jobs<'a> = ArrayVec<Job<'a>, BATCH_MAX>;
