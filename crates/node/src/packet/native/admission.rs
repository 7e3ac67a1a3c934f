//! Which requests the engine executes, and what the others are answered: misdirected requests, those
//! of an old directory, and mutations that have been executed before.

use super::batch::{Batch, Entry, Jobs};
use super::completions::{CompletionSlot, CompletionTable, Origin, Verdict};
use super::context::Sender;
use super::figures::NativeFigures;
use super::rules::Rules;
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Job;
use glimmer_proto::native::directory::{Access, Direction};
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{self, Record, Status};
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::address::network;

/// What a worker admits requests by.
pub struct Admission {
    pub rules: Rules,
    /// By partition: whether this worker owns it. Looked up, as a division for every request costs
    /// more.
    owned: Box<[bool]>,
    pub completions: CompletionTable,
}

/// What requests are judged by, beside what the admission keeps.
pub struct Judging<'t> {
    pub now: Moment,
    pub figures: &'t mut NativeFigures,
}

impl Admission {
    pub fn new(rules: Rules, me: usize, completions: CompletionTable) -> Admission {
        let map = rules.map();
        let owned = (0..rules.partitions).map(|partition| map.owner_of(partition) == me);
        Admission {
            rules,
            owned: owned.collect(),
            completions,
        }
    }

    /// Enters what becomes of a request, and its job if the engine executes it. False: it is about
    /// to be executed already, and nothing is entered.
    #[inline(always)]
    pub fn judge<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> bool {
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
        let may_read = self.rules.access != Access::Erew || self.owns(keyhash);
        let is_here = may_read
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
        });
        true
    }

    /// As [`Admission::judge`], by a directory that holds; a mutation is the owner's to execute,
    /// once, for a client that owns its address.
    #[inline(never)]
    fn judge_mutation<'a>(
        &mut self,
        sender: Sender<'_>,
        record: &Record<'a>,
        batch: &mut Batch,
        jobs: &mut Jobs<'a>,
        tools: &mut Judging<'_>,
    ) -> bool {
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
        let is_here = self.owns(keyhash) && self.rules.seed.keyhash(record.key) == keyhash;
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
        let verdict = (self.completions).admit(origin, (mutation, reach), keyhash, tools.now.ms);
        let slot = match verdict {
            Verdict::Execute(slot) => Some(slot),
            Verdict::Pending => return false,
            Verdict::Repeat(answer) => {
                tools.figures.repeated += 1;
                let place = batch.answers.len() as u32;
                batch.answers.push(answer);
                batch.entries.push(Entry::Repeated(place));
                return true;
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
        });
        true
    }

    /// Whether the key is in a partition of this worker's.
    #[inline(always)]
    fn owns(&self, keyhash: Keyhash) -> bool {
        self.owned[keyhash.partition(self.owned.len())]
    }

    /// What is answered to a request that this worker may not execute. Where the server directs
    /// requests, what is here has not been handed over to its owner: the mesh could not take it, or
    /// the requests of its datagram belong to several workers.
    #[cold]
    fn refusal(&self, sender: Sender<'_>, keyhash: Keyhash) -> Status {
        let is_ours = self.owns(keyhash);
        match (self.rules.direction, sender.requests) {
            (Direction::Server, 1) if !is_ours => Status::Overloaded,
            (Direction::Server, 2..) if !is_ours => Status::AskAlone,
            _ => Status::WrongPartition,
        }
    }

    /// Notes what a mutation was answered.
    #[inline]
    pub fn note(&mut self, slot: Option<CompletionSlot>, answer: &[u8]) {
        if let Some(slot) = slot {
            self.completions.settle(slot, Some(answer));
        }
    }

    /// Takes back what the completion table was told is about to be executed.
    pub fn withdraw(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Job {
                slot: Some(slot), ..
            } = *entry
            {
                self.completions.settle(slot, None);
            }
        }
    }
}

/// Answers a request that was sent to the wrong place, or by a directory that no longer holds.
#[cold]
fn turn_away(status: Status, batch: &mut Batch, tools: &mut Judging<'_>) -> bool {
    tools.figures.misdirected += 1;
    batch.settle(status)
}
