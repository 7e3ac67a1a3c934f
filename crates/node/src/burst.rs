//! From received bytes to replies: the connections that are served together, and the batches their requests form.
//!
//! A burst takes up to [`BURST_CONNECTIONS_MAX`] connections. Their requests, pipelined on one or waiting on many, go
//! through the engine in batches; there is no other path. Requests are parsed where they were received and borrow from there; nothing that a
//! batch has parsed is forgotten before the batch is settled, so a request that could not be executed is simply parsed again.

use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BATCH_MAX, BURST_CONNECTIONS_MAX, REPLY_BYTES_HIGH, REPORT_DATAGRAM_BYTES_MAX, WINDOW_MAX,
    WINDOWS_KEPT_MAX,
};
use glimmer_base::{Keyhash, Moment, Seed};
use glimmer_engine::{Done, Engine, Job, Place, Status};
use glimmer_proto::text::Dump;
use glimmer_proto::{Admin, After, Form, Parser, Request, Step, binary};

use crate::administer::{Outcome, administer, begin_dump, begin_watch, binary_admin};
use crate::config::Permits;
use crate::connection::{Connection, ConnectionKey};
use crate::errand::Permit;
use crate::frontdesk::Frontdesk;
use crate::mesh::doorbell::Doorbell;
use crate::mesh::parcel::Ticket;
use crate::mesh::port::Port;
use crate::observe::{self, Observers, interest};
use crate::report::Report;
use crate::stats::Tally;
use crate::switches::Switches;
use crate::wake::EventBell;
use crate::window::Window;

/// Bytes of early replies that an unused window keeps room for.
const WINDOW_BYTES_KEPT: usize = 4 << 10;

/// Why a connection's requests are not parsed any further in this burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// They are.
    Live,
    /// Nothing is complete: so many unfinished bytes are needed.
    Hungry(usize),
    /// It had its share of the turn.
    Spent,
    /// Its replies have to be sent first.
    Full,
    /// Requests that crossed over have to be answered first.
    Window,
    /// No box for requests to another worker was free.
    NoBox,
    /// Its next request has to cross over, which takes a connection; this is a datagram.
    Crossing,
    /// All items are to be listed for it.
    Dump(Dump),
    /// The rest of a long reply is to be made.
    Report,
    /// It is to be shown what happens.
    Watch(u32),
    /// Its last login was wrong, and the answer has to wait.
    Withheld,
    /// It is to be closed, because it broke the protocol.
    Broken,
    /// It is to be closed.
    Close,
}

/// Where a member's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In a connection's receive buffer.
    Connection(ConnectionKey),
    /// In a slot of the inbox.
    Datagram(u8),
}

/// A connection, or a datagram, while it is part of a burst.
pub(crate) struct Member {
    pub source: Source,
    pub parser: Parser,
    /// Bytes of its receive buffer that are finished.
    pub at: usize,
    pub stop: Stop,
    pub window: Option<Box<Window>>,
    /// What is left of a long reply, with [`Stop::Report`].
    pub report: Option<Box<Report>>,
    pub ask_owner: bool,
    /// It has yet to authenticate.
    pub locked: bool,
    /// Bytes that its replies are guessed to take, each; none if there is nothing to guess by.
    reply_bytes_guess: Option<usize>,
    /// Steps taken in this burst.
    pub requests: u32,
    /// Parser and position when the batch began, and steps taken since.
    batch_parser: Parser,
    pub batch_at: usize,
    steps: u16,
    /// The job that it added to the batch last.
    last_job: Option<u8>,
}

/// A request that crossed over during a batch.
struct Crossed {
    member: u8,
    /// The member's last job before it, whose reply its own follows.
    behind: Option<u8>,
    hole: u16,
    step: u16,
}

/// The connections of a burst.
pub(crate) struct Burst {
    pub members: ArrayVec<Member, BURST_CONNECTIONS_MAX>,
    /// The members' reply buffers.
    pub outs: ArrayVec<Vec<u8>, BURST_CONNECTIONS_MAX>,
    crossed: Vec<Crossed>,
    /// The right to list all items, on its way to the member that asked for it.
    pub permit: Option<Permit>,
    /// Windows that are not in use.
    #[expect(clippy::vec_box, reason = "the box itself moves into a connection")]
    windows: Vec<Box<Window>>,
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
    pub frontdesk: &'w dyn Frontdesk,
    pub tally: &'w mut Tally,
}

/// Requests parsed but not executed.
struct Batch<'a> {
    jobs: ArrayVec<Job<'a>, BATCH_MAX>,
    /// The step of its connection's parser that each job came from.
    steps: [u16; BATCH_MAX],
}

impl Member {
    pub fn new(key: ConnectionKey, connection: &Connection) -> Member {
        Member {
            reply_bytes_guess: connection.reply_bytes_guess,
            ask_owner: connection.ask_owner,
            locked: connection.locked,
            ..Member::at(
                Source::Connection(key),
                connection.rx_start,
                connection.parser,
            )
        }
    }

    /// A datagram in a slot of the inbox, whose request begins at offset `at`.
    pub fn datagram(slot: u8, at: usize, parser: Parser) -> Member {
        Member::at(Source::Datagram(slot), at, parser)
    }

    fn at(source: Source, at: usize, parser: Parser) -> Member {
        Member {
            reply_bytes_guess: None,
            source,
            parser,
            at,
            stop: Stop::Live,
            window: None,
            report: None,
            ask_owner: false,
            locked: false,
            requests: 0,
            batch_parser: parser,
            batch_at: 0,
            steps: 0,
            last_job: None,
        }
    }
}

impl Burst {
    pub fn new() -> Burst {
        Burst {
            members: ArrayVec::new(),
            outs: ArrayVec::new(),
            crossed: Vec::new(),
            permit: None,
            windows: Vec::new(),
        }
    }

    /// Takes back a window that is no longer needed.
    pub fn recycle(&mut self, mut window: Box<Window>) {
        if self.windows.len() < WINDOWS_KEPT_MAX {
            window.reset(WINDOW_BYTES_KEPT);
            self.windows.push(window);
        }
    }

    /// Parses one batch from the members that are live, executes it and settles what became of it. Returns how many requests were
    /// executed.
    pub fn run_batch<'c>(
        &mut self,
        input_of: impl Fn(Source) -> &'c [u8],
        fd_of: impl Fn(Source) -> i32,
        tools: &mut Tools<'_>,
    ) -> usize {
        let mut batch = Batch {
            jobs: ArrayVec::new(),
            steps: [0; BATCH_MAX],
        };
        for index in 0..self.members.len() {
            if self.members[index].stop == Stop::Live {
                let input = input_of(self.members[index].source);
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
                let fd_of = |job: &Job<'_>| fd_of(self.members[job.out as usize].source);
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
        self.place_holes(done);
        tools.port.ship_full();
        executed
    }

    /// Bytes that a reply of the members that have more to be parsed is guessed to take at most; `unknown` for members without a guess.
    /// None if there are no such members.
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
            crossed,
            permit,
            windows,
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
                            let crossing = Crossing {
                                owner,
                                keyhash,
                                request,
                            };
                            let open = || windows.pop().unwrap_or_default();
                            match member.cross(&crossing, out.len(), open, tools) {
                                Ok(hole) => {
                                    crossed.push(Crossed {
                                        member: index as u8,
                                        behind: member.last_job,
                                        hole,
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
                Step::Admin { .. } if member.window.is_some() => (0, Stop::Window),
                Step::Admin {
                    used,
                    admin: Admin::Dump(kind),
                } => {
                    let is_stream = matches!(member.source, Source::Connection(_));
                    match begin_dump(kind, is_stream, out, tools) {
                        Some(taken) => {
                            *permit = Some(taken);
                            (used, Stop::Dump(kind))
                        }
                        None => (used, Stop::Live),
                    }
                }
                Step::Admin {
                    used,
                    admin: Admin::Watch(interests),
                } => {
                    let is_stream = matches!(member.source, Source::Connection(_));
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
                if then == Stop::Full && matches!(member.source, Source::Datagram(_)) {
                    // A datagram's reply is sent as a whole or not at all.
                    tools.room += out.len();
                    *out = Vec::new();
                }
                member.stop = then;
                return;
            }
        }
    }

    /// Puts every member with a job that was not executed back to where that job was parsed, and takes back what it sent across since.
    #[cold]
    fn rewind_unexecuted<'c>(
        &mut self,
        jobs: &[Job<'_>],
        steps: &[u16; BATCH_MAX],
        done: &[Done],
        input_of: &impl Fn(Source) -> &'c [u8],
        tools: &mut Tools<'_>,
    ) {
        let mut rewound = [false; BURST_CONNECTIONS_MAX];
        for (job, done) in done.iter().enumerate() {
            let index = jobs[job].out as usize;
            if done.status == Status::Done || std::mem::replace(&mut rewound[index], true) {
                continue;
            }
            let member = &mut self.members[index];
            member.rewind(input_of(member.source), steps[job]);
            (member.stop, member.ask_owner) = match done.status {
                Status::AskOwner => (Stop::Live, true),
                _ => (Stop::Full, member.ask_owner),
            };
            let later = |crossed: &&Crossed| {
                usize::from(crossed.member) == index && crossed.step > steps[job]
            };
            if let Some(first) = self.crossed.iter().find(later) {
                let window = member.window.as_mut().expect("what crossed left a hole");
                tools.tally.requests_crossed -= window.len() as u64 - u64::from(first.hole);
                window.truncate(first.hole);
                if let Source::Connection(key) = member.source {
                    tools.port.retract(key, first.hole);
                }
            }
        }
    }

    /// Says where the holes of this batch are, now that the replies before them are written.
    fn place_holes(&mut self, done: &[Done]) {
        for crossed in self.crossed.drain(..) {
            let Some(behind) = crossed.behind else {
                continue;
            };
            let window = self.members[usize::from(crossed.member)].window.as_mut();
            let window = window.expect("what crossed left a hole");
            if usize::from(crossed.hole) < window.len() {
                window.place(crossed.hole, done[usize::from(behind)].end);
            }
        }
    }
}

impl Member {
    /// Sends a request across and digs a hole for its reply at offset `at` of the local ones (with jobs before it, the right offset is
    /// known when they are done), or says why that has to wait.
    fn cross(
        &mut self,
        crossing: &Crossing<'_>,
        at: usize,
        open: impl FnOnce() -> Box<Window>,
        tools: &mut Tools<'_>,
    ) -> Result<u16, Stop> {
        let Source::Connection(connection) = self.source else {
            return Err(Stop::Crossing);
        };
        if self
            .window
            .as_ref()
            .is_some_and(|window| window.len() >= WINDOW_MAX)
        {
            return Err(Stop::Window);
        }
        if !tools.port.has_room(crossing.owner) {
            return Err(Stop::NoBox);
        }
        let window = self.window.get_or_insert_with(open);
        if !crossing.request.verb.is_read() {
            window.written.insert(crossing.owner);
        }
        let hole = window.dig(at);
        let ticket = Ticket { connection, hole };
        tools
            .port
            .put(crossing.owner, ticket, crossing.keyhash, &crossing.request);
        self.ask_owner = false;
        tools.tally.requests_crossed += 1;
        Ok(hole)
    }

    /// Begins the reply to a command without a key if it has not been made yet: the first piece, or
    /// for a datagram as much as a datagram's reply may take.
    #[cold]
    fn conclude(&mut self, outcome: Outcome, out: &mut Vec<u8>, tools: &mut Tools<'_>) -> Stop {
        let mut report = match outcome {
            Outcome::Done(stop) => return stop,
            Outcome::Report(report) => report,
        };
        let begin = out.len();
        while report.advance(tools.engine, tools.frontdesk, tools.now, out) {
            if let Source::Connection(_) = self.source {
                self.report = Some(Box::new(report));
                return Stop::Report;
            }
            if out.len() - begin >= REPORT_DATAGRAM_BYTES_MAX.min(tools.room) {
                return Stop::Full;
            }
        }
        Stop::Live
    }

    /// Parses again from where the batch began, up to the step with this number.
    fn rewind(&mut self, input: &[u8], step: u16) {
        self.parser = self.batch_parser;
        self.at = self.batch_at;
        for _ in 0..step {
            match self.parser.next(&input[self.at..]) {
                Step::Request { used, .. }
                | Step::Admin { used, .. }
                | Step::Refuse { used, .. }
                | Step::Fail { used, .. }
                | Step::Swallowed { used } => self.at += used,
                Step::Need { .. } => unreachable!("the step was taken before"),
            }
        }
        self.requests = self.requests.saturating_sub(u32::from(self.steps - step));
        self.steps = step;
    }
}

/// What a client of the binary protocol that has yet to say who it is gets for this: nothing but a way to say so, and the version.
fn locked_out(step: Step<'_>) -> Step<'_> {
    let (used, header) = match step {
        Step::Request { used, request } => match request.form {
            Form::Binary(header) => (used, header),
            _ => return step,
        },
        Step::Admin {
            used,
            admin: Admin::Binary(header, command),
        } if !command.is_open_to_all() => (used, header),
        _ => return step,
    };
    Step::Fail {
        used,
        header,
        status: binary::Status::AuthError,
        then: After::Close,
    }
}

/// A request on its way to another worker.
struct Crossing<'a> {
    owner: usize,
    keyhash: Keyhash,
    request: Request<'a>,
}

/// Where a member's request is executed.
#[inline]
fn route(member: &Member, keyhash: Keyhash, request: &Request<'_>, tools: &Tools<'_>) -> Place {
    if tools.alone {
        return Place::Here;
    }
    let is_read = request.verb.is_read();
    let place = tools.engine.place(keyhash, is_read);
    if place == Place::Here && is_read && (member.ask_owner || member.window.is_some()) {
        // A read that may run anywhere follows an unanswered write of its key to the owner.
        let owner = tools.engine.owner(keyhash);
        let written = member
            .window
            .as_ref()
            .is_some_and(|window| window.written.contains(owner));
        if owner != tools.me && (member.ask_owner || written) {
            return Place::Owner(owner);
        }
    }
    place
}
