//! From received bytes to replies: the connections that are served together, and the batches their
//! requests form.
//!
//! A burst takes up to [`BURST_CONNECTIONS_MAX`] connections. Their requests, pipelined on one or
//! waiting on many, go through the engine in batches; there is no other path. Requests are parsed
//! where they were received and borrow from there. Nothing that a batch has parsed is forgotten
//! before the batch is settled, so a request that could not be executed is simply parsed again.

use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BATCH_MAX, BURST_CONNECTIONS_MAX, REORDER_BUFFERS_KEPT_MAX, REPLY_BYTES_HIGH,
};
use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Place, Status};
use glimmer_proto::{Admin, After, Step, binary};

use super::forwarding::{Forwarded, Outbound, route};
use super::member::{Input, Member, Stop, locked_out};
use super::reorder::ReorderBuffer;
use crate::admin::commands::{administer, begin_dump, begin_watch, binary_admin};
use crate::admin::dump::DumpGuard;
use crate::admin::handler::AdminHandler;
use crate::admin::observe::{self, Observers, interest};
use crate::admin::stats::Tally;
use crate::admin::switches::Switches;
use crate::config::Permits;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::forward::port::Port;

/// Bytes of early replies that an unused reorder buffer keeps room for.
const REORDER_BYTES_KEPT: usize = 4 << 10;

/// The connections of a burst.
pub(crate) struct Burst {
    pub members: ArrayVec<Member, BURST_CONNECTIONS_MAX>,
    /// The members' reply buffers.
    pub outs: ArrayVec<Vec<u8>, BURST_CONNECTIONS_MAX>,
    forwarded: Vec<Forwarded>,
    /// The right to list all items, on its way to the member that asked for it.
    pub dump_guard: Option<DumpGuard>,
    /// Reorder buffers that are not in use.
    #[expect(clippy::vec_box, reason = "the box itself moves into a connection")]
    reorder_buffers: Vec<Box<ReorderBuffer>>,
}

/// What a burst works with.
pub(crate) struct Tools<'w> {
    pub now: Moment,
    pub seed: Seed,
    /// The worker's number.
    pub me: usize,
    /// There is no other worker.
    pub alone: bool,
    /// Requests of one member in one burst.
    pub turn_requests: u32,
    pub permits: Permits,
    /// Clients have to authenticate.
    pub locked: bool,
    pub switches: &'w Switches,
    pub observers: &'w Observers,
    pub doorbells: &'w [Arc<Doorbell<EventBell>>],
    /// Bytes that replies to commands without a key may still take.
    pub room: usize,
    /// Jobs per batch: fewer than [`BATCH_MAX`] when memory for replies is short.
    pub batch_max: usize,
    pub engine: &'w mut dyn Engine,
    pub port: &'w mut Port,
    pub admin: &'w dyn AdminHandler,
    pub tally: &'w mut Tally,
}

/// Requests parsed but not executed.
struct Batch<'a> {
    jobs: ArrayVec<Job<'a>, BATCH_MAX>,
    /// The step of its connection's parser that each job came from.
    steps: [u16; BATCH_MAX],
}

impl Burst {
    pub fn new() -> Burst {
        Burst {
            members: ArrayVec::new(),
            outs: ArrayVec::new(),
            forwarded: Vec::new(),
            dump_guard: None,
            reorder_buffers: Vec::new(),
        }
    }

    /// Takes back a reorder buffer that is no longer needed.
    pub fn recycle(&mut self, mut reorder: Box<ReorderBuffer>) {
        if self.reorder_buffers.len() < REORDER_BUFFERS_KEPT_MAX {
            reorder.reset(REORDER_BYTES_KEPT);
            self.reorder_buffers.push(reorder);
        }
    }

    /// Parses one batch from the members that are live, executes it and settles what became of it.
    /// Returns how many requests were executed.
    pub fn run_batch<'c>(
        &mut self,
        input_of: impl Fn(Input) -> &'c [u8],
        fd_of: impl Fn(Input) -> i32,
        tools: &mut Tools<'_>,
    ) -> usize {
        let mut batch = Batch {
            jobs: ArrayVec::new(),
            steps: [0; BATCH_MAX],
        };
        for index in 0..self.members.len() {
            if self.members[index].stop == Stop::Live {
                let input = input_of(self.members[index].input);
                self.fill(index, input, &mut batch, tools);
                if batch.jobs.len() >= tools.batch_max {
                    break;
                }
            }
        }
        let Batch { jobs, steps } = batch;
        let mut done = [Done {
            status: Status::Skipped,
            end: 0,
        }; BATCH_MAX];
        let done = &mut done[..jobs.len()];
        if !jobs.is_empty() {
            if tools.observers.interests() & interest::REQUESTS == 0 {
                tools.engine.run(tools.now, &jobs, &mut self.outs, done);
            } else {
                let fd_of = |job: &Job<'_>| fd_of(self.members[job.out as usize].input);
                let sights =
                    observe::run(tools.engine, tools.now, &jobs, &mut self.outs, done, fd_of);
                tools.observers.show(&sights, tools.doorbells);
            }
        }
        let executed = done
            .iter()
            .filter(|done| done.status == Status::Done)
            .count();
        if executed < jobs.len() {
            self.rewind_unexecuted(&jobs, &steps, done, &input_of, tools);
        }
        self.place_slots(done);
        tools.port.ship_full();
        executed
    }

    /// Bytes that a reply of the members that have more to be parsed is guessed to take at most;
    /// `unknown` for members without a guess. None if there are no such members.
    pub fn reply_bytes_guess(&self, unknown: usize) -> Option<usize> {
        let live = self
            .members
            .iter()
            .filter(|member| member.stop == Stop::Live);
        live.map(|member| member.reply_bytes_guess.unwrap_or(unknown))
            .max()
    }

    /// Parses no more of the members whose replies are guessed to take more than `free` bytes each.
    pub fn stop_above(&mut self, free: usize, unknown: usize) {
        for member in &mut self.members {
            let guess = member.reply_bytes_guess.unwrap_or(unknown);
            if member.stop == Stop::Live && guess > free {
                member.stop = Stop::Full;
            }
        }
    }

    /// Lets the members go on that had their share of a turn. Returns whether there were any.
    pub fn revive_spent(&mut self) -> bool {
        let mut any = false;
        for member in &mut self.members {
            if member.stop == Stop::Spent {
                member.stop = Stop::Live;
                member.requests = 0;
                any = true;
            }
        }
        any
    }

    /// Bytes of replies so far.
    pub fn reply_bytes(&self) -> usize {
        self.outs.iter().map(Vec::len).sum()
    }

    /// Parses one member's requests into the batch.
    fn fill<'a>(
        &mut self,
        index: usize,
        input: &'a [u8],
        batch: &mut Batch<'a>,
        tools: &mut Tools<'_>,
    ) {
        let Burst {
            members,
            outs,
            forwarded,
            dump_guard,
            reorder_buffers,
        } = self;
        let (member, out) = (&mut members[index], &mut outs[index]);
        member.batch_parser = member.parser;
        member.batch_at = member.at;
        member.steps = 0;
        member.last_job = None;
        loop {
            if member.requests >= tools.turn_requests {
                member.stop = Stop::Spent;
                return;
            }
            if member.at == input.len() {
                member.stop = Stop::Hungry(1);
                return;
            }
            if member.locked && !member.parser.is_binary() {
                member.stop = member.log_in(input, out, tools);
                if member.stop != Stop::Live {
                    return;
                }
                continue;
            }
            let (before, out_before) = (member.parser, out.len());
            let step = member.parser.next(&input[member.at..]);
            let step = if member.locked {
                locked_out(step)
            } else {
                step
            };
            let (used, then) = match step {
                Step::Request { used, request } => {
                    let keyhash = request.with_key(|key| tools.seed.keyhash(key));
                    match route(member, keyhash, &request, tools) {
                        Place::Here => {
                            member.last_job = Some(batch.jobs.len() as u8);
                            batch.steps[batch.jobs.len()] = member.steps;
                            batch.jobs.push(Job {
                                keyhash,
                                request,
                                out: index as u32,
                            });
                            member.steps += 1;
                            member.at += used;
                            member.requests += 1;
                            if batch.jobs.len() >= tools.batch_max {
                                return;
                            }
                            continue;
                        }
                        Place::Owner(owner) => {
                            let crossing = Outbound {
                                owner,
                                keyhash,
                                request,
                            };
                            let open = || reorder_buffers.pop().unwrap_or_default();
                            match member.cross(&crossing, out.len(), open, tools) {
                                Ok(slot) => {
                                    forwarded.push(Forwarded {
                                        member: index as u8,
                                        behind: member.last_job,
                                        slot,
                                        step: member.steps,
                                    });
                                    (used, Stop::Live)
                                }
                                Err(stop) => (0, stop),
                            }
                        }
                    }
                }
                Step::Need { need } => {
                    member.stop = Stop::Hungry(need);
                    return;
                }
                Step::Swallowed { used } => (used, Stop::Live),
                // What is answered here has to follow the replies of the jobs before it.
                Step::Refuse { .. } | Step::Fail { .. } | Step::Admin { .. }
                    if member.last_job.is_some() =>
                {
                    member.parser = before;
                    return;
                }
                Step::Refuse { .. } | Step::Fail { .. } | Step::Admin { .. }
                    if out.len() >= REPLY_BYTES_HIGH || tools.room == 0 =>
                {
                    (0, Stop::Full)
                }
                Step::Refuse { used, line, then } => {
                    out.extend_from_slice(line.as_bytes());
                    let close = then == After::Close;
                    (used, if close { Stop::Broken } else { Stop::Live })
                }
                Step::Fail {
                    used,
                    header,
                    status,
                    then,
                } => {
                    binary::emit::error(out, header, status);
                    let close = then == After::Close;
                    (used, if close { Stop::Close } else { Stop::Live })
                }
                Step::Admin { .. } if member.reorder.is_some() => (0, Stop::Reorder),
                Step::Admin {
                    used,
                    admin: Admin::Dump(kind),
                } => {
                    let is_stream = matches!(member.input, Input::Connection(_));
                    match begin_dump(kind, is_stream, out, tools) {
                        Some(taken) => {
                            *dump_guard = Some(taken);
                            (used, Stop::Dump(kind))
                        }
                        None => (used, Stop::Live),
                    }
                }
                Step::Admin {
                    used,
                    admin: Admin::Watch(interests),
                } => {
                    let is_stream = matches!(member.input, Input::Connection(_));
                    (used, begin_watch(interests, is_stream, out, tools))
                }
                Step::Admin {
                    used,
                    admin: Admin::Binary(header, command),
                } => {
                    let locked = &mut member.locked;
                    let outcome = binary_admin(header, command, locked, out, tools);
                    (used, member.conclude(outcome, out, tools))
                }
                Step::Admin { used, admin } => {
                    let outcome = administer(&admin, out, tools);
                    (used, member.conclude(outcome, out, tools))
                }
            };
            tools.room = tools.room.saturating_sub(out.len() - out_before);
            if used == 0 {
                member.parser = before;
            }
            member.at += used;
            member.steps += 1;
            member.requests += 1;
            if then != Stop::Live {
                if then == Stop::Full && matches!(member.input, Input::Datagram(_)) {
                    // A datagram's reply is sent as a whole or not at all.
                    tools.room += out.len();
                    *out = Vec::new();
                }
                member.stop = then;
                return;
            }
        }
    }

    /// Puts every member with a job that was not executed back to where that job was parsed, and
    /// takes back what it sent across since.
    #[cold]
    fn rewind_unexecuted<'c>(
        &mut self,
        jobs: &[Job<'_>],
        steps: &[u16; BATCH_MAX],
        done: &[Done],
        input_of: &impl Fn(Input) -> &'c [u8],
        tools: &mut Tools<'_>,
    ) {
        let mut rewound = [false; BURST_CONNECTIONS_MAX];
        for (job, done) in done.iter().enumerate() {
            let index = jobs[job].out as usize;
            if done.status == Status::Done || std::mem::replace(&mut rewound[index], true) {
                continue;
            }
            let member = &mut self.members[index];
            member.rewind(input_of(member.input), steps[job]);
            (member.stop, member.ask_owner) = match done.status {
                Status::AskOwner => (Stop::Live, true),
                _ => (Stop::Full, member.ask_owner),
            };
            let later = |forwarded: &&Forwarded| {
                usize::from(forwarded.member) == index && forwarded.step > steps[job]
            };
            if let Some(first) = self.forwarded.iter().find(later) {
                let reorder = member
                    .reorder
                    .as_mut()
                    .expect("what was forwarded left a slot");
                tools.tally.requests_crossed -= reorder.len() as u64 - u64::from(first.slot);
                reorder.truncate(first.slot);
                if let Input::Connection(key) = member.input {
                    tools.port.retract(key, first.slot);
                }
            }
        }
    }

    /// Says where the slots of this batch are, now that the replies before them are written.
    fn place_slots(&mut self, done: &[Done]) {
        for forwarded in self.forwarded.drain(..) {
            let Some(behind) = forwarded.behind else {
                continue;
            };
            let reorder = self.members[usize::from(forwarded.member)].reorder.as_mut();
            let reorder = reorder.expect("what was forwarded left a slot");
            if usize::from(forwarded.slot) < reorder.len() {
                reorder.place(forwarded.slot, done[usize::from(behind)].end);
            }
        }
    }
}
