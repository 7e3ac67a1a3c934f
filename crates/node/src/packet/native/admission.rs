//! Decides which requests the engine executes, and answers the others: misdirected requests,
//! requests with an outdated directory, and mutations that have been executed before.

use super::batch::{Batch, Entry, Jobs, Wait};
use super::completions::{CompletionSlot, HeldTables, Origin, Verdict};
use super::context::Sender;
use super::figures::NativeFigures;
use super::rules::Rules;
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Job;
use glimmer_proto::native::directory::Direction;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{self, Record, Status};
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::address::network;

/// The state of admission.
pub struct Admission {
    pub rules: Rules,
    /// This worker.
    me: usize,
}

/// The context of admission.
pub struct Judging<'t, 'c> {
    pub now: Moment,
    pub figures: &'t mut NativeFigures,
    /// The completion tables that the batch holds.
    pub held: &'t mut HeldTables<'c>,
}

impl Admission {
    pub fn new(rules: Rules, me: usize) -> Admission {
        Admission { rules, me }
    }

    /// Adds the entry of a request to the batch, and its job if the engine is to execute it.
    /// Returns an error if the request must wait for the batch.
    #[inline(always)]
    pub fn judge<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_, '_>,
    ) -> Result<(), Wait> {
        let is_informed = sender.directory == self.rules.directory_version;
        let offset = match record.action {
            Action::Noop => return batch.settle(Status::Alive),
            _ if !is_informed => return turn_away(Status::NewDirectory, batch, tools),
            Action::Get => 0,
            Action::Read { offset } => offset,
            Action::Mutate { .. } => {
                return self.judge_mutation(sender, record, batch, jobs, tools);
            }
        };
        let keyhash = record.keyhash;
        let is_here = self.rules.layout.may_run(self.me, keyhash, true)
            && (!self.rules.checks_reads || self.rules.seed.keyhash(record.key) == keyhash);
        if !is_here {
            return turn_away(self.refusal(sender, keyhash), batch, tools);
        }
        let slot = None;
        batch.entries.push(Entry::Job { slot, offset });
        jobs.push(Job {
            keyhash,
            request: Request {
                key: record.key,
                verb: Verb::Get,
                form: Form::Native(native::Form {
                    shows_cas: record.shows_cas,
                    extent: sender.extent(offset),
                }),
            },
            out: 0,
            copy_max: Job::ANY_SIZE,
            client: 0,
        });
        Ok(())
    }

    /// Like [`Admission::judge`] for a request with a valid directory. A mutation is executed once,
    /// and only for a client with a validated address.
    #[inline(never)]
    fn judge_mutation<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_, '_>,
    ) -> Result<(), Wait> {
        let (
            Some(request),
            Action::Mutate {
                mutation, reach, ..
            },
        ) = (record.request(), record.action)
        else {
            return batch.settle(Status::Malformed);
        };
        let keyhash = record.keyhash;
        let is_here = self.rules.layout.may_run(self.me, keyhash, false)
            && self.rules.seed.keyhash(record.key) == keyhash;
        if !is_here {
            return turn_away(self.refusal(sender, keyhash), batch, tools);
        }
        if !sender.is_proven {
            tools.figures.unproven += 1;
            return batch.settle(Status::NoToken);
        }
        let origin = Origin {
            client: sender.client,
            network: network(sender.peer),
        };
        let (owner, completions) = tools.held.table(keyhash).ok_or(Wait::Busy)?;
        let verdict = completions.admit(origin, (mutation, reach), keyhash, tools.now.ms);
        let slot = match verdict {
            Verdict::Execute(slot) => Some(slot.of_owner(owner)),
            Verdict::Pending => return Err(Wait::Pending),
            Verdict::Repeat(answer) => {
                tools.figures.repeated += 1;
                let place = batch.answers.len() as u32;
                batch.answers.push(answer);
                batch.entries.push(Entry::Repeated(place));
                return Ok(());
            }
            Verdict::Superseded => {
                tools.figures.superseded += 1;
                return batch.settle(Status::Superseded);
            }
            Verdict::Forgotten => return batch.settle(Status::Forgotten),
            Verdict::Full => return batch.settle(Status::Overloaded),
            Verdict::TooManyWriters => return batch.settle(Status::TooManyWriters),
        };
        batch.entries.push(Entry::Job { slot, offset: 0 });
        jobs.push(Job {
            keyhash,
            request,
            out: 0,
            copy_max: Job::ANY_SIZE,
            client: 0,
        });
        Ok(())
    }

    /// The answer to a request that this worker may not execute. If the server directs requests,
    /// such a request was not handed over to its owner because the mesh was full, or because the
    /// requests of its datagram belong to several workers.
    #[cold]
    fn refusal(&self, sender: Sender<'_>, keyhash: Keyhash) -> Status {
        let is_ours = self.rules.layout.map.owner(keyhash) == self.me;
        match (self.rules.direction, sender.requests) {
            (Direction::Server, 1) if !is_ours => Status::Overloaded,
            (Direction::Server, 2..) if !is_ours => Status::AskAlone,
            _ => Status::WrongPartition,
        }
    }
}

/// Removes mutations from the completion tables that were announced but will not be executed.
pub fn withdraw(entries: &[Entry], held: &mut HeldTables<'_>) {
    for entry in entries {
        if let Entry::Job {
            slot: Some(slot), ..
        } = *entry
        {
            held.settle(slot, None);
        }
    }
}

/// Records the answer to a mutation.
#[inline]
pub fn note(slot: Option<CompletionSlot>, answer: &[u8], held: &mut HeldTables<'_>) {
    if let Some(slot) = slot {
        let is_kept = !weakened("forgotten_completion");
        held.settle(slot, is_kept.then_some(answer));
    }
}

/// Answers a request that was misdirected or has an outdated directory.
#[cold]
fn turn_away(status: Status, batch: &mut Batch, tools: &mut Judging<'_, '_>) -> Result<(), Wait> {
    tools.figures.misdirected += 1;
    batch.settle(status)
}
