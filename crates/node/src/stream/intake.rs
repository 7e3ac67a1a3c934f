//! How the requests of one member enter a batch: what is the next request, where does it belong,
//! and may it enter now?

use std::ops::ControlFlow::{self, Break, Continue};

use arrayvec::ArrayVec;
use glimmer_base::Keyhash;
use glimmer_base::limits::{BATCH_MAX, PASSED_BYTES_FREE, PREPEND_REQUESTS, REORDER_SLOTS_MAX};
use glimmer_base::sync::weakened;
use glimmer_dispatch::{Ask, Decision};
use glimmer_engine::Job;
use glimmer_proto::StoreMode::{Prepend, PrependIf, Set};
use glimmer_proto::meta::Command;
use glimmer_proto::{Form, Parser, Request, Step, Verb};

use super::connection::Gate;
use super::incoming::LargeValue;
use super::key::ConnectionKey;
use super::member::{Member, Stop};
use super::queue::QueuePlace;
use super::reorder::ReorderBuffer;
use crate::core::Core;
use crate::dispatch::ask::ask;
use crate::forward::batch::{Asker, CompletionTag};
use crate::forward::port::Port;

/// What a batch is made with.
pub(super) struct Tools<'w> {
    pub core: &'w mut Core,
    pub port: &'w mut Port,
    /// Requests of one member in one burst.
    pub turn_requests: u32,
    /// Bytes that replies to commands without a key may still take.
    pub room: usize,
    /// Jobs per batch: fewer than [`BATCH_MAX`] when memory for replies is short.
    pub batch_max: usize,
}

/// Further requests that the turn of its connection counts for a request.
fn surcharge_of(request: &Request<'_>) -> u32 {
    match is_prepend(request) {
        true => PREPEND_REQUESTS - 1,
        false => 0,
    }
}

/// Whether a request puts bytes in front of a value.
fn is_prepend(request: &Request<'_>) -> bool {
    match request.verb {
        Verb::Store { mode, .. } => matches!(mode, Prepend | PrependIf(_)),
        Verb::Meta {
            command: Command::Store,
            ..
        } => {
            let flags = request.meta_flags();
            // Few requests have the letter.
            let has_letter = flags
                .text
                .iter()
                .any(|byte| byte.eq_ignore_ascii_case(&b'p'));
            has_letter && flags.options().mode == Some(b'P')
        }
        _ => false,
    }
}

/// Requests parsed but not executed.
pub(super) struct Batch<'a> {
    pub jobs: ArrayVec<Job<'a>, BATCH_MAX>,
    /// The step of its connection's parser that each job came from.
    pub steps: [u16; BATCH_MAX],
    /// One bit for each job that is a part of a command that is answered with one sum.
    pub parts: u64,
}

impl<'a> Batch<'a> {
    /// Enters a job of a member.
    #[inline(always)]
    fn push(&mut self, member: &mut Member, job: Job<'a>) {
        member.last_job = Some(self.jobs.len() as u8);
        self.steps[self.jobs.len()] = member.steps;
        self.parts |= u64::from(job.request.is_part()) << self.jobs.len();
        self.jobs.push(job);
    }
}

/// One member while its requests enter a batch.
pub(super) struct Intake<'i, 'a> {
    pub index: usize,
    pub member: &'i mut Member,
    pub out: &'i mut Vec<u8>,
    pub forwarded: &'i mut Vec<Forwarded>,
    #[expect(clippy::vec_box, reason = "the box itself moves into a connection")]
    pub reorder_buffers: &'i mut Vec<Box<ReorderBuffer>>,
    pub batch: &'i mut Batch<'a>,
}

impl<'a> Intake<'_, 'a> {
    /// Takes the member's next request: what is it, where does it belong, and may it enter now? If
    /// not, the member stops; [`Stop::Live`] means until the next batch.
    #[inline(always)]
    pub fn take_next(&mut self, input: &'a [u8], tools: &mut Tools<'_>) -> ControlFlow<Stop> {
        let member = &mut *self.member;
        if member.requests + member.surcharge >= tools.turn_requests {
            return Break(Stop::Spent);
        }
        if member.session.gate == Gate::Open
            && let Some((used, request)) = member.session.parser.next_plain(&input[member.at..])
        {
            return self.enter(used, request, input, tools);
        }
        if member.at == input.len() {
            return Break(Stop::Hungry(1));
        }
        self.take_step(input, tools)
    }

    /// [`take_next`](Self::take_next) for everything but the most frequent requests.
    #[inline(never)]
    fn take_step(&mut self, input: &'a [u8], tools: &mut Tools<'_>) -> ControlFlow<Stop> {
        let step = match self.member.next_step(input, self.out, tools.core) {
            Ok(step) => step,
            Err(stop) => return Break(stop),
        };
        let (used, then) = match step {
            Step::Request { used, request } if self.member.has_value_in_place() => {
                return self.store_upload(used, request, input, tools);
            }
            Step::Request { used, request } => {
                self.member.surcharge += surcharge_of(&request);
                return self.enter(used, request, input, tools);
            }
            Step::Need { need, announced } => {
                if let Some(announced) = announced {
                    self.member.announce(&announced, tools.core);
                }
                return Break(Stop::Hungry(need));
            }
            Step::Swallowed { used } => {
                // After a job, it may be taken again.
                let is_part = self.member.last_job.is_none() && used >= PASSED_BYTES_FREE;
                self.member.swallowed += u32::from(is_part);
                (used, Stop::Live)
            }
            Step::Queue { used, line } => return self.keep((used, line), input, tools),
            Step::Admin { .. } if self.member.is_visitor => {
                self.member.rewind(input, self.member.steps);
                return Break(Stop::AtHome);
            }
            Step::Refuse { used, .. } | Step::Answer { used, .. } | Step::Admin { used, .. } => {
                if let Err(stop) = self
                    .member
                    .may_answer(&step, self.out, tools.room, tools.core)
                {
                    self.member.rewind(input, self.member.steps);
                    return Break(stop);
                }
                let (member, before) = (&mut *self.member, self.out.len());
                let then = member.answer(step, input, self.out, tools.core);
                tools.room = tools.room.saturating_sub(self.out.len() - before);
                (used, then)
            }
        };
        self.member.pass(used);
        if self.member.denial.is_some() {
            self.member.begin_batch();
        }
        // A value in place was that of a request that is wrong.
        self.member.give_up_value(tools.core);
        if then != Stop::Replay {
            self.member.give_up_queue();
        }
        match then {
            Stop::Live => Continue(()),
            stop => Break(stop),
        }
    }

    /// Keeps a part of a command of a transaction.
    #[cold]
    #[inline(never)]
    fn keep(
        &mut self,
        (used, line): (usize, &'static str),
        input: &'a [u8],
        tools: &mut Tools<'_>,
    ) -> ControlFlow<Stop> {
        let (member, step) = (&mut *self.member, Step::Queue { used, line });
        if let Err(stop) = member.may_answer(&step, self.out, tools.room, tools.core) {
            member.rewind(input, member.steps);
            return Break(stop);
        }
        let Some(line) = member.keep(&input[member.at..][..used], line) else {
            member.rewind(input, member.steps);
            member.await_queue_place(used, tools.core);
            return Break(Stop::Hungry(1));
        };
        self.out.extend_from_slice(line.as_bytes());
        tools.core.answered += u64::from(!line.is_empty());
        tools.room = tools.room.saturating_sub(line.len());
        member.pass(used);
        // What is kept is not looked at again.
        member.begin_batch();
        Continue(())
    }

    /// Executes a store whose value is in place, at once: it is the first step of its connection in
    /// this burst. If another worker executes it, the connection visits that one, or the value is
    /// copied on the way there.
    #[cold]
    #[inline(never)]
    fn store_upload(
        &mut self,
        used: usize,
        request: Request<'_>,
        input: &[u8],
        tools: &mut Tools<'_>,
    ) -> ControlFlow<Stop> {
        let core = &mut *tools.core;
        let keyhash = request.with_key(|key| core.hasher.keyhash(key));
        let decision = match core.plan.layout().may_run(core.me, keyhash, false) {
            true if core.is_alone || self.member.is_visitor => Decision::Run,
            true => destination(self.member, keyhash, ask(&request.verb), core),
            false if self.member.is_visitor => {
                self.member.rewind(input, self.member.steps);
                return Break(Stop::AtHome);
            }
            false => Decision::HandTo(core.plan.layout().home(core.me, keyhash)),
        };
        let Some(mut upload) = self.member.take_upload() else {
            unreachable!("the value is in place");
        };
        self.member.rare().placed_bytes = upload.bytes();
        if decision == Decision::Run {
            let job = Job {
                keyhash,
                request,
                out: self.index as u32,
                size_max: Job::ANY_SIZE,
                copy_max: Job::ANY_SIZE,
                client: self.member.client,
            };
            match core.engine.store_upload(core.now, &job, upload, self.out) {
                Ok(done) => {
                    core.note_upload(&job, done, self.member.is_visitor);
                    if let Some(kind) = done.kind.filter(|_| job.request.is_part()) {
                        self.member.session.sum.add(kind);
                    }
                    self.member.pass(used);
                    self.member.begin_batch();
                    return Continue(());
                }
                Err(back) => upload = back,
            }
        }
        let to = match decision {
            Decision::HandTo(to) => to,
            Decision::Run => core.plan.layout().home(core.me, keyhash),
        };
        if self.member.may_visit() && core.may_depart() {
            self.member.put_back(upload);
            self.member.rewind(input, self.member.steps);
            return Break(Stop::Visit(to));
        }
        let mut value = Vec::new();
        upload.copy_to(0..upload.bytes(), &mut value);
        match self.forward(to, keyhash, &request.with_value(&value), tools) {
            Ok(()) => {
                drop(upload);
                tools.core.shared.end_upload();
                self.member.pass(used);
                Continue(())
            }
            Err(stop) => {
                self.member.put_back(upload);
                self.member.rewind(input, self.member.steps);
                Break(stop)
            }
        }
    }

    /// Enters a request into the batch, or forwards it.
    #[inline(always)]
    fn enter(
        &mut self,
        used: usize,
        request: Request<'a>,
        input: &[u8],
        tools: &mut Tools<'_>,
    ) -> ControlFlow<Stop> {
        let keyhash = match request.has_base64_key() {
            true => keyhash_of_decoded(&{ request }, tools.core),
            false => tools.core.hasher.keyhash(request.key),
        };
        let decision = match tools.core.is_alone || self.member.is_visitor {
            true if tools.core.plan.keeps_order() && self.member.is_visitor => {
                // The plan has changed: the request belongs to the owner of its key.
                self.member.rewind(input, self.member.steps);
                return Break(Stop::AtHome);
            }
            true => Decision::Run,
            false => destination(self.member, keyhash, ask(&request.verb), tools.core),
        };
        match decision {
            Decision::Run => {
                let job = Job {
                    keyhash,
                    request,
                    out: self.index as u32,
                    size_max: self.member.size_max,
                    copy_max: self.member.copy_max,
                    client: self.member.client,
                };
                self.batch.push(self.member, job);
                self.member.pass(used);
                Continue(())
            }
            Decision::HandTo(to) => self.hand_to(to, keyhash, (used, &{ request }), input, tools),
        }
    }

    /// Has another worker execute a request: the connection visits that worker, or the request is
    /// forwarded to it.
    #[inline(never)]
    fn hand_to(
        &mut self,
        to: usize,
        keyhash: Keyhash,
        (used, request): (usize, &Request<'_>),
        input: &[u8],
        tools: &mut Tools<'_>,
    ) -> ControlFlow<Stop> {
        let handed = match self.visits(&request.verb, tools.core) {
            true if self.member.awaits_replies() => Err(Stop::Reorder),
            true => Err(Stop::Visit(to)),
            false => self.forward(to, keyhash, request, tools),
        };
        if let Err(stop) = handed {
            self.member.rewind(input, self.member.steps);
            return Break(stop);
        }
        self.member.pass(used);
        match tools.core.plan.keeps_order() {
            true => Continue(()),
            false => Break(Stop::Reorder),
        }
    }

    /// Whether the connection itself goes to the worker that executes a request: its value is too
    /// large for this worker. A read says so only after its lookup.
    fn visits(&self, verb: &Verb<'_>, core: &Core) -> bool {
        let is_large = |bytes| bytes >= core.plan.large_from();
        self.member.may_visit()
            && self.member.session.hand_to.is_none()
            && matches!(ask(verb), Ask::Write { bytes } if is_large(bytes))
    }

    /// Forwards a request to the worker that executes it, and reserves a slot for its reply after
    /// the replies so far. If jobs of the member precede it, the slot is placed when they are done.
    /// Fails with the reason why the request has to wait.
    fn forward(
        &mut self,
        to: usize,
        keyhash: Keyhash,
        request: &Request<'_>,
        tools: &mut Tools<'_>,
    ) -> Result<(), Stop> {
        let member = &mut *self.member;
        let reorder = member.reorder.as_ref();
        if reorder.is_some_and(|reorder| reorder.len() >= REORDER_SLOTS_MAX) {
            return Err(Stop::Reorder);
        }
        if !tools.port.has_credit(to) {
            return Err(Stop::OutOfCredit);
        }
        if weakened("acknowledged_before_change")
            && reorder.is_none()
            && member.last_job.is_none()
            && let (Verb::Store { mode: Set, .. }, Form::Text(_)) = (request.verb, request.form)
        {
            let tag = CompletionTag {
                asker: Asker::Connection(ConnectionKey::default()),
                slot: 0,
                client: member.client,
            };
            tools.port.put(to, tag, keyhash, request);
            self.out.extend_from_slice(b"STORED\r\n");
            return Ok(());
        }
        let open = || self.reorder_buffers.pop().unwrap_or_default();
        let reorder = member.reorder.get_or_insert_with(open);
        if !request.verb.is_read() {
            reorder.written.insert(to);
        }
        let slot = reorder.reserve(self.out.len());
        let tag = CompletionTag {
            asker: member.asker,
            slot,
            client: member.client,
        };
        tools.port.put(to, tag, keyhash, request);
        member.session.hand_to = None;
        self.forwarded.push(Forwarded {
            member: self.index as u8,
            after: member.last_job,
            slot,
            step: member.steps,
        });
        tools.core.tally.requests_crossed += 1;
        Ok(())
    }
}

impl Member {
    /// The parser, the position and the surcharge before the step with this number: parses again
    /// from where the batch began.
    pub fn parser_at(&self, input: &[u8], step: u16) -> (Parser, usize, u32) {
        let (mut parser, mut at) = (self.batch_parser, self.batch_at);
        let mut surcharge = self.batch_surcharge;
        for _ in 0..step {
            match parser.next(&input[at..]) {
                Step::Request { used, request } => {
                    at += used;
                    surcharge += surcharge_of(&request);
                }
                Step::Admin { used, .. }
                | Step::Refuse { used, .. }
                | Step::Answer { used, .. }
                | Step::Queue { used, .. }
                | Step::Swallowed { used } => at += used,
                Step::Need { .. } => unreachable!("the step was taken before"),
            }
        }
        (parser, at, surcharge)
    }

    /// Goes back to before the step with this number.
    pub fn rewind(&mut self, input: &[u8], step: u16) {
        (self.session.parser, self.at, self.surcharge) = self.parser_at(input, step);
        self.requests = self.requests.saturating_sub(u32::from(self.steps - step));
        self.steps = step;
        if let Some(rare) = self.rare.as_deref_mut()
            && let Some(LargeValue::Announced(_) | LargeValue::Queue(_)) = rare.value.as_deref()
        {
            // That was a later request.
            rare.value = None;
        }
    }

    /// Notes that the commands of its transaction need one more place of at least this many bytes.
    fn await_queue_place(&mut self, bytes: usize, core: &Core) {
        self.rare().value = Some(Box::new(LargeValue::Queue(QueuePlace {
            bytes,
            since_ms: core.now.ms,
            is_refused: false,
            begun: None,
        })));
    }

    /// Keeps bytes of a command of its transaction. Returns the reply that is due then, which is
    /// `line` if they are kept; none if there has to be one more place for them.
    #[cold]
    pub fn keep(&mut self, bytes: &[u8], line: &'static str) -> Option<&'static str> {
        let is_connection = self.is_connection();
        let queue = self.rare().queue.get_or_insert_default();
        if queue.keep(bytes) {
            return Some(line);
        }
        if !queue.is_refused && is_connection {
            return None;
        }
        let line = self.session.parser.refuse_queue(line);
        self.give_up_queue();
        Some(line)
    }

    /// Gives up the commands that it keeps, if no transaction is under way whose they are.
    pub fn give_up_queue(&mut self) {
        if let Some(queue) = self
            .rare
            .as_deref_mut()
            .and_then(|rare| rare.queue.as_mut())
            && !self.session.parser.queues_apart()
        {
            queue.give_up();
        }
    }
}

/// A request that was forwarded during a batch.
pub(super) struct Forwarded {
    pub member: u8,
    /// The member's last job before this request. Its own reply follows that job's reply.
    pub after: Option<u8>,
    pub slot: u16,
    pub step: u16,
}

/// The keyhash of a key that came in base64.
#[cold]
fn keyhash_of_decoded(request: &Request<'_>, core: &Core) -> Keyhash {
    request.with_key(|key| core.hasher.keyhash(key))
}

/// The worker that executes a member's request, where there are several.
#[inline]
fn destination(member: &Member, keyhash: Keyhash, ask: Ask, core: &Core) -> Decision {
    if let Some(worker) = member.session.hand_to.map(usize::from)
        && core
            .plan
            .layout()
            .may_run(worker, keyhash, ask == Ask::Read)
    {
        return Decision::HandTo(worker);
    }
    let decision = core.plan.on_arrival(core.me, keyhash, ask);
    if decision == Decision::Run
        && ask == Ask::Read
        && let Some(reorder) = &member.reorder
    {
        // A read that any worker could execute follows an unanswered write of its key to the owner.
        let home = core.plan.layout().home(core.me, keyhash);
        if home != core.me && reorder.written.contains(home) {
            return Decision::HandTo(home);
        }
    }
    decision
}
