//! From received bytes to replies: the connections that are served together, and the batches their
//! requests form.
//!
//! A burst takes up to [`BURST_CONNECTIONS_MAX`] connections. Their requests, pipelined on one or
//! waiting on many, go through the engine in batches; there is no other path. Requests are parsed
//! where they were received and borrow from there. Nothing that a batch has parsed is forgotten
//! before the batch is settled, so a request that could not be executed is simply parsed again.

use std::ops::ControlFlow::Break;

use arrayvec::ArrayVec;
use glimmer_base::limits::{BATCH_MAX, BURST_CONNECTIONS_MAX, REORDER_BUFFERS_KEPT_MAX};
use glimmer_dispatch::Decision;
use glimmer_engine::{Done, Job, LentParts, Status};

use super::intake::{Batch, Forwarded, Intake, Tools};
use super::member::{Member, Stop};
use super::reorder::ReorderBuffer;
use crate::core::Core;
use crate::forward::batch::Asker;
use crate::forward::port::Port;

/// Bytes of early replies that an unused reorder buffer keeps room for.
const REORDER_BYTES_KEPT: usize = 4 << 10;

/// The connections of a burst.
pub(crate) struct Burst {
    pub members: ArrayVec<Member, BURST_CONNECTIONS_MAX>,
    /// The members' reply buffers.
    pub outs: ArrayVec<Vec<u8>, BURST_CONNECTIONS_MAX>,
    /// What became of the jobs of the last batch: as many as it had are valid.
    done: [Done; BATCH_MAX],
    /// What the table lends to these replies.
    pub lent: LentParts,
    forwarded: Vec<Forwarded>,
    /// Reorder buffers that are not in use.
    #[expect(clippy::vec_box, reason = "the box itself moves into a connection")]
    reorder_buffers: Vec<Box<ReorderBuffer>>,
}

impl Burst {
    pub fn new() -> Burst {
        Burst {
            members: ArrayVec::new(),
            outs: ArrayVec::new(),
            done: [Done::SKIPPED; BATCH_MAX],
            lent: LentParts::default(),
            forwarded: Vec::new(),
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

    /// Executes what the members have, until none is live any more. `input_of` knows where a
    /// member's bytes are. Returns the bytes of replies.
    pub fn run_batches<'c>(
        &mut self,
        input_of: impl Fn(Asker) -> &'c [u8],
        core: &mut Core,
        port: &mut Port,
    ) -> usize {
        let mut reply_bytes = 0;
        while let Some(guess) = self.reply_bytes_guess(core.memory.reply_bytes_guess) {
            let free = core.memory.bytes_free().saturating_sub(reply_bytes);
            if free < guess && reply_bytes > 0 {
                self.stop_above(free, core.memory.reply_bytes_guess);
                continue;
            }
            let mut tools = Tools {
                turn_requests: core.shared.config.turn_requests,
                room: free,
                batch_max: (free / guess.max(1)).clamp(1, BATCH_MAX),
                core: &mut *core,
                port: &mut *port,
            };
            let executed = self.run_batch(&input_of, &mut tools);
            if !core.is_alone {
                port.account(&mut core.memory, &mut core.tally);
            }
            core.tally.batches += u64::from(executed > 0);
            core.tally.requests += executed as u64;
            core.pass_time(executed as u64);
            let before = std::mem::replace(&mut reply_bytes, self.reply_bytes());
            let each = (reply_bytes - before) / executed.max(1);
            core.memory.note_reply_bytes(each);
        }
        reply_bytes
    }

    /// Parses one batch from the members that are live, executes it and settles what became of it.
    /// Returns how many requests were executed.
    fn run_batch<'c>(
        &mut self,
        input_of: &impl Fn(Asker) -> &'c [u8],
        tools: &mut Tools<'_>,
    ) -> usize {
        let mut batch = Batch {
            jobs: ArrayVec::new(),
            steps: [0; BATCH_MAX],
            parts: 0,
        };
        for index in 0..self.members.len() {
            if self.members[index].stop == Stop::Live {
                let input = input_of(self.members[index].asker);
                self.fill(index, input, &mut batch, tools);
                if batch.jobs.len() >= tools.batch_max {
                    break;
                }
            }
        }
        let Batch { jobs, steps, parts } = &batch;
        if !jobs.is_empty() {
            let (core, done) = (&mut *tools.core, &mut self.done[..jobs.len()]);
            self.lent.lend_to(members_to_lend_to(&self.members));
            self.lent.lend_medium(core.memory.budget.is_scarce());
            (core.engine).run_with(core.now, jobs, &mut self.outs, &mut self.lent, done);
            for out in self.lent.buffers_of_parts() {
                self.members[out as usize].has_lent = true;
            }
            if core.counting.is_on() {
                let profile = core.shared.plans.profile(core.me);
                let is_visitor = |member: usize| self.members[member].is_visitor;
                core.counting.note(profile, (jobs, done), is_visitor);
            }
        }
        if *parts != 0 {
            self.add_parts(*parts, jobs);
        }
        let is_done = |done: &&Done| done.status == Status::Done;
        let executed = self.done[..jobs.len()].iter().filter(is_done).count();
        if executed < jobs.len() {
            self.rewind_unexecuted(jobs, steps, input_of, tools);
        }
        if !tools.core.is_alone {
            self.place_slots();
            tools.port.ship_full();
        }
        executed
    }

    /// Adds what the parts of commands came to that are answered with one sum.
    #[cold]
    fn add_parts(&mut self, parts: u64, jobs: &[Job<'_>]) {
        for (index, (job, done)) in jobs.iter().zip(&self.done).enumerate() {
            if let Some(kind) = done.kind.filter(|_| parts >> index & 1 != 0) {
                self.members[job.out as usize].session.sum.add(kind);
            }
        }
    }

    /// Bytes that a reply of the members that have more to be parsed is guessed to take at most;
    /// `unknown` for members without a guess. None if there are no such members.
    fn reply_bytes_guess(&self, unknown: usize) -> Option<usize> {
        let live = self
            .members
            .iter()
            .filter(|member| member.stop == Stop::Live);
        live.map(|member| member.reply_bytes_guess.unwrap_or(unknown))
            .max()
    }

    /// Parses no more of the members whose replies are guessed to take more than `free` bytes each.
    fn stop_above(&mut self, free: usize, unknown: usize) {
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
                (member.requests, member.surcharge) = (0, 0);
                any = true;
            }
        }
        any
    }

    /// Bytes of replies so far.
    fn reply_bytes(&self) -> usize {
        self.lent.bytes() + self.outs.iter().map(Vec::len).sum::<usize>()
    }

    /// Parses one member's requests into the batch, until the batch is full or the member stops.
    fn fill<'a>(
        &mut self,
        index: usize,
        input: &'a [u8],
        batch: &mut Batch<'a>,
        tools: &mut Tools<'_>,
    ) {
        let (member, out) = (&mut self.members[index], &mut self.outs[index]);
        let mut intake = Intake {
            index,
            member,
            out,
            forwarded: &mut self.forwarded,
            reorder_buffers: &mut self.reorder_buffers,
            batch,
        };
        intake.member.begin_batch();
        while intake.batch.jobs.len() < tools.batch_max {
            if let Break(stop) = intake.take_next(input, tools) {
                intake.member.stop = stop;
                if stop == Stop::Full && matches!(intake.member.asker, Asker::Datagram(_)) {
                    // A datagram's reply is sent as a whole or not at all.
                    tools.room += intake.out.len();
                    *intake.out = Vec::new();
                }
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
        input_of: &impl Fn(Asker) -> &'c [u8],
        tools: &mut Tools<'_>,
    ) {
        let mut rewound = [false; BURST_CONNECTIONS_MAX];
        for (job, done) in self.done[..jobs.len()].iter().enumerate() {
            let index = jobs[job].out as usize;
            if done.status == Status::Done || std::mem::replace(&mut rewound[index], true) {
                continue;
            }
            let member = &mut self.members[index];
            member.rewind(input_of(member.asker), steps[job]);
            // First of all, so that the member does not wait for a reply to what is taken back.
            let later = |forwarded: &&Forwarded| {
                usize::from(forwarded.member) == index && forwarded.step > steps[job]
            };
            if let Some(first) = self.forwarded.iter().find(later) {
                let reorder = member
                    .reorder
                    .as_mut()
                    .expect("what was forwarded left a slot");
                tools.core.tally.requests_crossed -= reorder.len() as u64 - u64::from(first.slot);
                reorder.truncate(first.slot);
                tools.port.retract(member.asker, first.slot);
            }
            member.stop = match done.status {
                Status::AskOwner => {
                    let home = tools
                        .core
                        .plan
                        .layout()
                        .home(tools.core.me, jobs[job].keyhash);
                    member.session.hand_to = (home != tools.core.me).then_some(home as u16);
                    Stop::Live
                }
                Status::Elsewhere { bytes } => elsewhere(member, bytes, tools.core),
                _ => Stop::Full,
            };
        }
    }

    /// Says where the slots of this batch are, now that the replies before them are written.
    fn place_slots(&mut self) {
        for forwarded in self.forwarded.drain(..) {
            let Some(after) = forwarded.after else {
                continue;
            };
            let reorder = self.members[usize::from(forwarded.member)].reorder.as_mut();
            let reorder = reorder.expect("what was forwarded left a slot");
            if usize::from(forwarded.slot) < reorder.len() {
                reorder.place(forwarded.slot, self.done[usize::from(after)].end);
            }
        }
    }
}

/// The members whose replies may show values that the table lends, one bit for each: connections.
fn members_to_lend_to(members: &[Member]) -> u64 {
    const _: () = assert!(BURST_CONNECTIONS_MAX <= u64::BITS as usize);
    let members = members.iter().enumerate();
    members.fold(0, |to, (nth, member)| {
        to | u64::from(member.is_connection()) << nth
    })
}

/// Decides where to execute a read whose value is larger than what is read before the plan was
/// asked, or than what is copied in this burst.
#[cold]
fn elsewhere(member: &mut Member, bytes: u32, core: &Core) -> Stop {
    // A visitor's request is executed here, whatever its size.
    let decision = match bytes <= member.size_max {
        true => Decision::Run,
        false => core.plan.on_sized(core.me, bytes),
    };
    let decision = match decision {
        // Many are away, and hold much.
        Decision::HandTo(_) if member.may_visit() && !core.may_depart() => Decision::Run,
        decision => decision,
    };
    match decision {
        Decision::HandTo(_) if member.may_visit() && member.awaits_replies() => {
            return Stop::Reorder;
        }
        Decision::HandTo(worker) if member.may_visit() => return Stop::Visit(worker),
        Decision::HandTo(worker) => member.session.hand_to = Some(worker as u16),
        Decision::Run if bytes > member.size_max => member.size_max = Job::ANY_SIZE,
        Decision::Run if member.awaits_replies() => return Stop::Reorder,
        Decision::Run => return Stop::Large(bytes),
    }
    Stop::Live
}
