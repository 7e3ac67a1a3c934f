//! The replies of a batch, and the buffers that take no more of them.

use super::request::{decoded, execute, execute_apart, execute_seen};
use super::{Context, large};
use crate::Partitions;
use crate::job::{Done, Job, Status};
use crate::observer::ChangeObserver;
use crate::partitions_of::Place;
use crate::pipeline::Execute;
use glimmer_base::limits::{BATCH_MAX, BATCH_REPLY_BYTES_HIGH, REPLY_BYTES_HIGH};
use glimmer_proto::meta::base64;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::access::Access;
use glimmer_store::removals::Tap;
use glimmer_store::table::Table;

/// Bytes of a reply from which on it counts towards [`BATCH_REPLY_BYTES_HIGH`].
const LONG_REPLY_BYTES: usize = BATCH_REPLY_BYTES_HIGH / BATCH_MAX;

/// What becomes of the jobs of a batch.
pub struct Replies<'a, 'c, O: ChangeObserver> {
    outs: &'a mut [Vec<u8>],
    done: &'a mut [Done],
    /// Which buffers have come to a halt, and why.
    halted: &'a mut [Option<Status>],
    /// Bytes of long replies in all buffers.
    long_bytes: usize,
    tap: &'a Tap<O>,
    context: &'a mut Context<'c>,
}

impl<'a, 'c, O: ChangeObserver> Replies<'a, 'c, O> {
    /// No reply yet, for as many jobs as `done` has places.
    #[inline(always)]
    pub fn new(
        outs: &'a mut [Vec<u8>],
        done: &'a mut [Done],
        halted: &'a mut [Option<Status>],
        tap: &'a Tap<O>,
        context: &'a mut Context<'c>,
    ) -> Self {
        Replies {
            outs,
            done,
            halted,
            long_bytes: 0,
            tap,
            context,
        }
    }

    /// Executes a job while an observer looks.
    pub fn add_seen<T: Table>(
        &mut self,
        partitions: &mut Partitions<T>,
        nth: usize,
        job: &Job<'_>,
    ) {
        let halt = self.halt(job);
        let out = &mut self.outs[job.out as usize];
        let begin = out.len();
        let executed = match halt {
            Some(status) => Err(status),
            None => execute_seen(partitions, self.tap, self.context, job, out),
        };
        self.note(nth, job, begin, executed);
    }

    /// Why the job's buffer takes no more replies, if it has come to a halt.
    #[inline(always)]
    fn halt(&mut self, job: &Job<'_>) -> Option<Status> {
        let halt = &mut self.halted[job.out as usize];
        if halt.is_none() && self.outs[job.out as usize].len() >= REPLY_BYTES_HIGH {
            *halt = Some(Status::NoRoom);
        }
        *halt
    }

    /// Notes what became of a job. Its buffer comes to a halt if it was not executed.
    #[inline(always)]
    fn note(
        &mut self,
        nth: usize,
        job: &Job<'_>,
        begin: usize,
        executed: Result<OutcomeKind, Status>,
    ) {
        let (status, kind) = match executed {
            Ok(kind) => (Status::Done, Some(kind)),
            Err(status) => {
                self.halted[job.out as usize].get_or_insert(Status::Skipped);
                (status, None)
            }
        };
        let end = self.outs[job.out as usize].len();
        self.done[nth] = Done {
            status,
            kind,
            end,
            read_bytes: std::mem::take(&mut self.context.read_bytes),
        };
        let bytes = end - begin;
        if bytes >= LONG_REPLY_BYTES {
            self.long_bytes = with_long(self.halted, self.long_bytes + bytes);
        }
    }
}

/// Brings all buffers to a halt if the long replies have too many bytes: only now is it known how
/// much memory the replies of the batch take. Returns the number, which is passed by value so that
/// the caller can keep it in a register.
#[cold]
#[inline(never)]
fn with_long(halted: &mut [Option<Status>], long_bytes: usize) -> usize {
    if long_bytes >= BATCH_REPLY_BYTES_HIGH {
        for halt in halted {
            halt.get_or_insert(Status::NoRoom);
        }
    }
    long_bytes
}

impl<T: Table, O: ChangeObserver> Execute<Partitions<T>, Job<'_>> for Replies<'_, '_, O> {
    #[inline(always)]
    fn execute(
        &mut self,
        partitions: &mut Partitions<T>,
        nth: usize,
        place: Place<T::HomeBucket>,
        job: &Job<'_>,
    ) {
        let halt = self.halt(job);
        let (tap, context) = (self.tap, &mut *self.context);
        let out = &mut self.outs[job.out as usize];
        let begin = out.len();
        let is_large = T::Access::SHARED_WRITES && large::is_large(&job.request.verb);
        let executed = if let Some(status) = halt {
            Err(status)
        } else if is_large || job.request.has_base64_key() {
            let mut buffer = [0; base64::DECODED_BYTES_MAX];
            let job = decoded(job, &mut buffer);
            execute_apart(partitions, place, tap, context, &job, out)
        } else {
            execute::<T, O, false>(partitions, place, tap, context, (job, None), out)
        };
        self.note(nth, job, begin, executed);
    }
}
