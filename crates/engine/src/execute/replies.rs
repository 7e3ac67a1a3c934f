//! The replies of a batch, and the buffers that take no more of them.

use super::{Context, decoded, execute, execute_apart, execute_seen, large};
use crate::Partitions;
use crate::job::{Done, Job, Status};
use crate::observer::ChangeObserver;
use crate::partitions_of::Place;
use crate::pipeline::Execute;
use glimmer_base::limits::{BATCH_MAX, REPLY_BYTES_HIGH};
use glimmer_proto::meta::base64;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::access::Access;
use glimmer_store::removals::Tap;
use glimmer_store::table::Table;

/// What becomes of the jobs of a batch.
pub struct Replies<'a, 'c, O: ChangeObserver> {
    outs: &'a mut [Vec<u8>],
    done: &'a mut [Done],
    /// Which buffers have come to a halt, and why.
    halted: &'a mut [Option<Status>; BATCH_MAX],
    tap: &'a Tap<O>,
    context: &'a mut Context<'c>,
}

impl<'a, 'c, O: ChangeObserver> Replies<'a, 'c, O> {
    /// No reply yet, for as many jobs as `done` has places.
    #[inline(always)]
    pub fn new(
        outs: &'a mut [Vec<u8>],
        done: &'a mut [Done],
        halted: &'a mut [Option<Status>; BATCH_MAX],
        tap: &'a Tap<O>,
        context: &'a mut Context<'c>,
    ) -> Self {
        Replies {
            outs,
            done,
            halted,
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
        let executed = match self.halt(job) {
            Some(status) => Err(status),
            None => {
                let out = &mut self.outs[job.out as usize];
                execute_seen(partitions, self.tap, self.context, job, out)
            }
        };
        self.note(nth, job, executed);
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
    fn note(&mut self, nth: usize, job: &Job<'_>, executed: Result<OutcomeKind, Status>) {
        let (status, kind) = match executed {
            Ok(kind) => (Status::Done, Some(kind)),
            Err(status) => {
                self.halted[job.out as usize].get_or_insert(Status::Skipped);
                (status, None)
            }
        };
        self.done[nth] = Done {
            status,
            kind,
            end: self.outs[job.out as usize].len(),
            read_bytes: std::mem::take(&mut self.context.read_bytes),
        };
    }
}

impl<T: Table, O: ChangeObserver> Execute<Partitions<T>, Job<'_>> for Replies<'_, '_, O> {
    #[inline(always)]
    fn execute(
        &mut self,
        partitions: &mut Partitions<T>,
        nth: usize,
        place: Place<T::Home>,
        job: &Job<'_>,
    ) {
        let halt = self.halt(job);
        let (tap, context) = (self.tap, &mut *self.context);
        let out = &mut self.outs[job.out as usize];
        let is_large = T::Access::SHARED_WRITES && large::is_large(&job.request.verb);
        let executed = if let Some(status) = halt {
            Err(status)
        } else if is_large || job.request.has_base64_key() {
            let mut buffer = [0; base64::DECODED_BYTES_MAX];
            let job = decoded(job, &mut buffer);
            execute_apart(partitions, place, tap, context, &job, out)
        } else {
            execute(partitions, place, tap, context, (job, None), out)
        };
        self.note(nth, job, executed);
    }
}
