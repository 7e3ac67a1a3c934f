//! Decides which requests the engine executes, and which leave for another worker; and answers the
//! others: misdirected requests, requests with an outdated directory, and mutations that have been
//! executed before.

use super::batch::{Batch, Entry, Jobs, Wait};
use super::completions::{CompletionSlot, HeldTables, Origin, Verdict};
use super::context::Sender;
use super::figures::NativeFigures;
use super::rules::Rules;
use crate::dispatch::ask::ask;
use crate::dispatch::counting::NativeCount;
use glimmer_base::Moment;
use glimmer_base::sync::weakened;
use glimmer_dispatch::{Ask, Decision, Plan};
use glimmer_engine::Job;
use glimmer_proto::native::directory::Direction;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{self, Record, RequestHeader, Status};
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::address::network;
use std::net::SocketAddr;

/// The state of admission.
pub struct Admission {
    pub rules: Rules,
    /// This worker.
    me: usize,
}

/// Where requests execute.
pub struct Dispatch<'d> {
    /// What this worker goes by.
    pub plan: &'d Plan,
    /// Hands requests over. None: they have been handed over already.
    pub hand_to: Option<&'d mut HandTo<'d>>,
    /// The worker at which the fragments of requests meet, if that is another one.
    pub fragments_to: Option<usize>,
    /// Where executed requests are counted. None: they are not.
    pub tap: Option<NativeCount<'d>>,
}

/// Hands a datagram (its sender, its bytes, the length of those around it) over to a worker. False:
/// there is no room for it.
pub type HandTo<'d> = dyn FnMut(usize, SocketAddr, &[u8], usize) -> bool + 'd;

/// The context of admission.
pub struct Judging<'t, 'd, 'c> {
    pub now: Moment,
    pub dispatch: &'t mut Dispatch<'d>,
    /// No value of more bytes is copied before the plan has been asked.
    pub size_max: u32,
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
        tools: &mut Judging<'_, '_, '_>,
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
        let claimed = record.keyhash;
        let decision = tools.dispatch.plan.on_arrival(self.me, claimed, Ask::Read);
        if let Decision::HandTo(worker) = decision {
            return Err(Wait::Elsewhere(worker));
        }
        if self.rules.checks_reads && self.rules.seed.keyhash(record.key) != claimed {
            return turn_away(Status::WrongPartition, batch, tools);
        }
        let slot = None;
        batch.entries.push(Entry::Job { slot, offset });
        jobs.push(Job {
            keyhash: self.rules.hasher.keyhash_in(claimed, record.key),
            request: Request {
                key: record.key,
                verb: Verb::Get,
                form: Form::Native(native::Form {
                    shows_cas: record.shows_cas,
                    extent: sender.extent(offset),
                }),
            },
            out: 0,
            size_max: tools.size_max,
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
        tools: &mut Judging<'_, '_, '_>,
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
        let claimed = record.keyhash;
        let ask = ask(&request.verb);
        if let Decision::HandTo(worker) = tools.dispatch.plan.on_arrival(self.me, claimed, ask) {
            return Err(Wait::Elsewhere(worker));
        }
        if self.rules.seed.keyhash(record.key) != claimed {
            return turn_away(Status::WrongPartition, batch, tools);
        }
        if !sender.is_proven {
            tools.figures.unproven += 1;
            return batch.settle(Status::NoToken);
        }
        let origin = Origin {
            client: sender.client,
            network: network(sender.peer),
        };
        let keyhash = self.rules.hasher.keyhash_in(claimed, record.key);
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
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        });
        Ok(())
    }

    /// Whether a request may be executed by a worker that has to execute another one of its
    /// datagram.
    fn may_follow(&self, record: &Record<'_>, worker: usize, plan: &Plan) -> bool {
        let Some(request) = record.request() else {
            return true;
        };
        let is_read = request.verb.is_read();
        match plan.on_arrival(self.me, record.keyhash, ask(&request.verb)) {
            Decision::HandTo(other) => other == worker && !self.is_misled(record),
            Decision::Run => self.rules.layout.may_run(worker, record.keyhash, is_read),
        }
    }

    /// Hands a datagram with this many requests over to the worker that has to execute all of them.
    /// A client that directs its requests is told of one that the access mode forbids here. False:
    /// nothing was handed over.
    #[cold]
    pub fn hand_over(
        &self,
        worker: usize,
        (peer, datagram, segment_bytes): (&SocketAddr, &[u8], usize),
        requests: u8,
        dispatch: &mut Dispatch<'_>,
    ) -> bool {
        let Some(hand_to) = &mut dispatch.hand_to else {
            return false;
        };
        let mut rest = &datagram[RequestHeader::BYTES..];
        for _ in 0..requests {
            let Some((record, bytes)) = Record::read(rest) else {
                break;
            };
            rest = &rest[bytes..];
            if !self.may_follow(&record, worker, dispatch.plan) {
                return false;
            }
        }
        hand_to(worker, *peer, datagram, segment_bytes)
    }

    /// Whether a client that directs its requests has sent this one to the wrong worker.
    fn is_misled(&self, record: &Record<'_>) -> bool {
        let is_read = !matches!(record.action, Action::Mutate { .. });
        self.rules.direction == Direction::Client
            && !(self.rules.layout).may_run(self.me, record.keyhash, is_read)
    }

    /// Answers a request that another worker has to execute, but that was not handed over: there
    /// was no room for it, or the requests of its datagram belong to several workers.
    #[cold]
    pub fn refuse(
        &self,
        sender: Sender<'_>,
        record: &Record<'_>,
        batch: &mut Batch,
        tools: &mut Judging<'_, '_, '_>,
    ) {
        let status = match sender.requests {
            _ if self.is_misled(record) => Status::WrongPartition,
            0 => Status::WrongPartition,
            1 => Status::Overloaded,
            2.. => Status::AskAlone,
        };
        let _ = turn_away(status, batch, tools);
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
fn turn_away(
    status: Status,
    batch: &mut Batch,
    tools: &mut Judging<'_, '_, '_>,
) -> Result<(), Wait> {
    tools.figures.misdirected += 1;
    batch.settle(status)
}
