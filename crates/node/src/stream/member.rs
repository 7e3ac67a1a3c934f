//! A connection, or a datagram, while it is part of a burst.

use glimmer_base::limits::{DRAFT_BYTES_MIN, LARGE_REPLY_BYTES, REPLY_BYTES_HIGH};
use glimmer_engine::{Headway, Job, Upload};
use glimmer_proto::text::lines;
use glimmer_proto::{
    Admin, AdminCommand, After, Announced, Control, Denial, Parser, Step, Sum, control,
};

use super::connection::{Connection, Gate, Session};
use super::incoming::{Announcement, Incoming, LargeValue};
use super::key::ConnectionKey;
use super::phase::Phase;
use super::queue::Queue;
use super::receive_buffer::ReceiveBuffer;
use super::reorder::ReorderBuffer;
use crate::admin::commands::{
    ControlClient, Outcome, administer, administer_control, begin_dump, begin_watch, refuse,
};
use crate::admin::dump::DumpCursor;
use crate::admin::handler::Audited;
use crate::admin::login::{Attempt, Verdict, attempt};
use crate::admin::long_reply::Progress;
use crate::admin::transfer::Transfer;
use crate::core::Core;
use crate::forward::batch::Asker;

/// Why a connection's requests are not parsed any further in this burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// They are.
    Live,
    /// Nothing is complete: the parser needs this many bytes.
    Hungry(usize),
    /// It had its share of the turn.
    Spent,
    /// Its replies have to be sent first.
    Full,
    /// The value that its next request reads, of this many bytes, is copied with other large ones.
    Large(u32),
    /// Its next request is for another worker, which its connection visits for that.
    Visit(usize),
    /// It visits this worker, and its next request is for its home alone.
    AtHome,
    /// Requests that crossed over have to be answered first.
    Reorder,
    /// It is out of credit: no batch for requests to another worker was free.
    OutOfCredit,
    /// A phase begins in which more of its reply is made ([`Rare::begins`]).
    Begins,
    /// The commands of its transaction are executed.
    Replay,
    /// It is to be shown what happens.
    Watch(u32),
    /// Its next command has to wait until the next turn, whose allowance it may be for.
    Postponed,
    /// Its next command has to wait for a short time.
    AwaitsNews,
    /// Its last login was wrong, and the answer has to wait.
    Withheld,
    /// It is to be closed, because it broke the protocol.
    Broken,
    /// It is to be closed.
    Close,
}

/// A connection, or a datagram, while it is part of a burst.
pub(crate) struct Member {
    pub asker: Asker,
    pub session: Session,
    /// Bytes of its receive buffer that are finished.
    pub at: usize,
    pub stop: Stop,
    pub reorder: Option<Box<ReorderBuffer>>,
    /// What few members have.
    pub rare: Option<Box<Rare>>,
    /// It is a connection that visits this worker.
    pub is_visitor: bool,
    /// Bytes that its replies are guessed to take, each; none if there is nothing to guess by.
    pub reply_bytes_guess: Option<usize>,
    /// A value of more bytes is not read before the plan was asked.
    pub size_max: u32,
    /// A value of more bytes is not copied in this burst.
    pub copy_max: u32,
    /// The client's number for observers: its descriptor, or 0 if it has none.
    pub client: i32,
    /// Why the request of its last step is denied, if it is.
    pub denial: Option<Denial>,
    /// Its replies of this burst have parts that the table lends.
    pub has_lent: bool,
    /// Steps taken in this burst.
    pub requests: u32,
    /// Those of them that only passed over a part of a refused value: no limit counts them.
    pub swallowed: u32,
    /// Further requests that its turn counts for prepends: no limit counts them.
    pub surcharge: u32,
    /// Parser, position and surcharge when the batch began, and steps taken since.
    pub batch_parser: Parser,
    pub batch_at: usize,
    pub batch_surcharge: u32,
    pub steps: u16,
    /// The job that it added to the batch last.
    pub last_job: Option<u8>,
}

/// What few members have. Apart, so that the others need not be made and dropped with it.
#[derive(Default)]
pub(crate) struct Rare {
    /// The phase that begins with [`Stop::Begins`].
    pub begins: Phase,
    /// The value of its next request, if it is large.
    pub value: Option<Box<LargeValue>>,
    /// The commands of its transaction that are not kept in its buffer.
    pub queue: Option<Box<Queue>>,
    /// Bytes of the value that its requests of this burst have found in place.
    pub placed_bytes: usize,
}

impl Rare {
    /// What the buffer has of this.
    #[cold]
    fn of(rx: &mut ReceiveBuffer) -> Box<Rare> {
        Box::new(Rare {
            value: rx.value.take(),
            queue: rx.queue.take(),
            ..Rare::default()
        })
    }
}

impl Member {
    /// A connection, and the most bytes of a value that are read, and copied, for it.
    #[inline(always)]
    pub fn new(
        key: ConnectionKey,
        connection: &mut Connection,
        (size_max, copy_max): (u32, u32),
    ) -> Member {
        // Nothing is known of its replies before the first: a large one waits with other large
        // ones.
        let copy_max = match connection.reply_bytes_guess {
            _ if connection.copies_any => Job::ANY_SIZE,
            None => (LARGE_REPLY_BYTES as u32).min(copy_max),
            Some(_) => copy_max,
        };
        Member {
            size_max,
            copy_max,
            client: connection.entry.fd,
            reply_bytes_guess: connection.reply_bytes_guess,
            is_visitor: connection.visit.is_some(),
            rare: match (&connection.rx.value, &connection.rx.queue) {
                (None, None) => None,
                _ => Some(Rare::of(&mut connection.rx)),
            },
            ..Member::at(
                Asker::Connection(key),
                connection.rx.start,
                connection.session,
            )
        }
    }

    /// The datagram with this number, whose next request begins at offset `at`.
    pub fn datagram(number: u64, at: usize, parser: Parser, size_max: u32) -> Member {
        Member {
            size_max,
            ..Member::at(Asker::Datagram(number), at, Session::new(parser, false))
        }
    }

    /// Whether it is a connection that may visit another worker for its next request.
    pub fn may_visit(&self) -> bool {
        self.is_connection() && !self.is_visitor && !self.session.is_locked()
    }

    /// Whether it is a connection, and no datagram.
    pub fn is_connection(&self) -> bool {
        matches!(self.asker, Asker::Connection(_))
    }

    /// Whether replies that other workers make come before its next one.
    pub fn awaits_replies(&self) -> bool {
        self.reorder
            .as_ref()
            .is_some_and(|reorder| reorder.len() > 0)
    }

    #[inline(always)]
    fn at(asker: Asker, at: usize, session: Session) -> Member {
        Member {
            reply_bytes_guess: None,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
            asker,
            session,
            at,
            stop: Stop::Live,
            reorder: None,
            rare: None,
            is_visitor: false,
            denial: None,
            has_lent: false,
            requests: 0,
            swallowed: 0,
            surcharge: 0,
            batch_parser: session.parser,
            batch_at: 0,
            batch_surcharge: 0,
            steps: 0,
            last_job: None,
        }
    }

    /// What few members have, for one that comes to have it.
    pub fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The value of its next request, if it is large.
    #[inline]
    fn value(&self) -> Option<&LargeValue> {
        self.rare.as_deref().and_then(|rare| rare.value.as_deref())
    }

    /// Notes that its next request has announced its value, which is to get a place in the table. A
    /// value of medium size gets one only while memory for buffers is scarce.
    #[cold]
    pub fn announce(&mut self, announced: &Announced<'_>, core: &Core) {
        let is_wanted = announced.value_bytes >= DRAFT_BYTES_MIN || core.memory.budget.is_scarce();
        if self.value().is_some() || !self.is_connection() || !is_wanted {
            return;
        }
        let announcement = announced.with_key(|key| Announcement {
            keyhash: core.hasher.keyhash(key),
            key: key.into(),
            value_at: announced.value_at,
            value_bytes: announced.value_bytes,
            since_ms: core.now.ms,
            is_refused: false,
            headway: Headway::new(0),
        });
        self.rare().value = Some(Box::new(LargeValue::Announced(announcement)));
    }

    /// Whether the value of its next request is complete, where it will lie.
    #[inline]
    pub fn has_value_in_place(&self) -> bool {
        matches!(self.value(), Some(LargeValue::InPlace(_)))
    }

    /// Takes the value that is complete.
    pub fn take_upload(&mut self) -> Option<Upload> {
        match *self.rare.as_deref_mut()?.value.take()? {
            LargeValue::InPlace(incoming) => Some(incoming.upload),
            LargeValue::Announced(_) | LargeValue::Queue(_) => None,
        }
    }

    /// Puts it back: its request is executed later.
    pub fn put_back(&mut self, upload: Upload) {
        let incoming = Incoming::complete(upload);
        self.rare().value = Some(Box::new(LargeValue::InPlace(incoming)));
    }

    /// Gives up the value that is in place, if there is one.
    #[inline]
    pub fn give_up_value(&mut self, core: &Core) {
        if let Some(upload) = self.take_upload() {
            drop(upload);
            core.shared.end_upload();
        }
    }

    /// Begins a batch: what follows is parsed again from here if it cannot be executed.
    pub fn begin_batch(&mut self) {
        self.batch_parser = self.session.parser;
        self.batch_at = self.at;
        self.batch_surcharge = self.surcharge;
        self.steps = 0;
        self.last_job = None;
    }

    /// Its next step, or the reason why it has none: [`Stop::Live`] after a login, which is not a
    /// step.
    pub fn next_step<'a>(
        &mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
        core: &mut Core,
    ) -> Result<Step<'a>, Stop> {
        if self.at == input.len() {
            return Err(Stop::Hungry(1));
        }
        match self.session.gate {
            Gate::Open => return Ok(self.session.parser.next(&input[self.at..])),
            Gate::Judged => return Ok(self.next_judged(&input[self.at..], core)),
            Gate::Locked => {}
        }
        if !self.session.parser.has_login() {
            self.log_in(input, out, core)?;
            return Err(Stop::Live);
        }
        Ok(self.next_locked(&input[self.at..]))
    }

    /// Its next step while it has yet to authenticate by commands of its protocol.
    #[cold]
    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        // Nothing of it is in the batch, so that no step has to be taken again.
        self.begin_batch();
        self.session.parser.next_locked(input)
    }

    /// Moves past a step of this many bytes.
    #[inline(always)]
    pub fn pass(&mut self, used: usize) {
        self.at += used;
        self.steps += 1;
        self.requests += 1;
    }

    /// Whether a step that no engine executes may be answered now. `Err`: it has to wait, for the
    /// replies to the jobs before it with [`Stop::Live`].
    pub fn may_answer(
        &self,
        step: &Step<'_>,
        out: &[u8],
        room: usize,
        core: &Core,
    ) -> Result<(), Stop> {
        // What is denied begins a batch: what follows is parsed again from after it.
        if self.last_job.is_some() || (self.denial.is_some() && self.steps > 0) {
            return Err(Stop::Live);
        }
        if out.len() >= REPLY_BYTES_HIGH || room == 0 {
            return Err(Stop::Full);
        }
        let may_end_sum = matches!(step, Step::Admin { .. }) || self.denial.is_some();
        if may_end_sum && self.reorder.is_some() {
            return Err(Stop::Reorder);
        }
        let command = match step {
            Step::Admin {
                admin: Admin::Control(Control::Login(_), _),
                ..
            } if self.has_lent => {
                // If it is wrong, its answer is withheld with all that has not been sent. Only
                // bytes are: what is lent is sent first.
                return Err(Stop::Full);
            }
            Step::Admin { admin, .. } if self.is_connection() => admin.command(),
            _ => None,
        };
        match command {
            Some(AdminCommand::Dispatch) if !core.shared.switches.may_change_plan(core.now.ms) => {
                Err(Stop::AwaitsNews)
            }
            Some(_) if core.allowance.is_spent() => Err(Stop::Postponed),
            _ => Ok(()),
        }
    }

    /// Answers a step that no engine executes, of these bytes.
    #[cold]
    pub fn answer(
        &mut self,
        step: Step<'_>,
        input: &[u8],
        out: &mut Vec<u8>,
        core: &mut Core,
    ) -> Stop {
        core.answered += 1;
        let is_stream = self.is_connection();
        core.allowance.begin_command(is_stream);
        if let Some(denial) = self.denial {
            self.note_denial(denial, core);
            // No sum will tell what the keys before came to.
            self.session.sum = Sum::default();
        }
        let mut is_denied = self.denial.is_some();
        let stop = match step {
            Step::Refuse { line, then, .. } => {
                out.extend_from_slice(line.as_bytes());
                match then {
                    After::Close => Stop::Broken,
                    _ => Stop::Live,
                }
            }
            Step::Answer {
                words, text, then, ..
            } => {
                words.emit(&Control::Answered(text), control::Answer::Done, out);
                match then {
                    After::Close => Stop::Close,
                    After::Replay => Stop::Replay,
                    After::Continue => Stop::Live,
                }
            }
            Step::Admin { admin, .. } => {
                let denial = self.judge_admin(&admin, core);
                is_denied = denial.is_some();
                let is_permitted = !refuse(&admin, denial, is_stream, out, core);
                if let Some(command) = admin.command().filter(|_| is_stream) {
                    let words = admin.words();
                    let what = Audited::Command {
                        command,
                        words,
                        is_permitted,
                    };
                    core.audit(self.client, what);
                }
                match is_permitted {
                    true => self.carry_out(admin, input, out, core),
                    false => Stop::Live,
                }
            }
            Step::Request { .. }
            | Step::Need { .. }
            | Step::Queue { .. }
            | Step::Swallowed { .. } => Stop::Live,
        };
        core.allowance.end_command();
        match is_denied && self.has_lost_user(core) {
            true => Stop::Close,
            false => stop,
        }
    }

    /// Carries out a command without a key.
    #[cold]
    fn carry_out(
        &mut self,
        admin: Admin<'_>,
        input: &[u8],
        out: &mut Vec<u8>,
        core: &mut Core,
    ) -> Stop {
        if admin.command().is_some() {
            core.allowance.spend_on_command(0);
        }
        if !admin.only_looks() {
            // What it changes may be work for every worker and connection.
            core.allowance.spend_all();
        }
        match admin {
            Admin::Dump(kind) => {
                let (Some(guard), Asker::Connection(key)) =
                    (begin_dump(kind, out, core), self.asker)
                else {
                    return Stop::Live;
                };
                let cursor = DumpCursor::new(kind, guard, core.me, key);
                self.rare().begins = Phase::Dump(Box::new(cursor));
                Stop::Begins
            }
            Admin::Prefixes => {
                let Some(usage) = core.shared.observers().usage() else {
                    out.extend_from_slice(lines::NO_PREFIXES.as_bytes());
                    return Stop::Live;
                };
                if let Asker::Connection(key) = self.asker {
                    let cursor = DumpCursor::prefixes(usage, core.me, key);
                    self.rare().begins = Phase::Dump(Box::new(cursor));
                }
                Stop::Begins
            }
            Admin::Watch(interests) => match begin_watch(out) {
                true => Stop::Watch(interests),
                false => Stop::Live,
            },
            Admin::Control(Control::Scan(scan), words) => {
                if let Asker::Connection(key) = self.asker {
                    let cursor =
                        DumpCursor::keys(&scan, words, (core.me, core.engine.layout()), key);
                    self.rare().begins = Phase::Dump(Box::new(cursor));
                }
                Stop::Begins
            }
            Admin::Control(Control::RandomKey, words) => {
                if let Asker::Connection(key) = self.asker {
                    let seed = core.shared.config.clock.ns() ^ key.number().rotate_left(32);
                    let random = core.hasher.keyhash(&seed.to_le_bytes()).0;
                    let here = (core.me, core.engine.layout());
                    let search = DumpCursor::random_key(words, random, here, key);
                    self.rare().begins = Phase::Dump(Box::new(search));
                }
                Stop::Begins
            }
            Admin::Control(Control::Move(wanted), words) => {
                if let Asker::Connection(key) = self.asker {
                    let client = (words, self.client);
                    let here = (core.me, core.engine.layout());
                    let transfer = Transfer::new(&wanted, client, &core.hasher, here);
                    let transfer = DumpCursor::transfer(transfer, core.me, key);
                    self.rare().begins = Phase::Dump(Box::new(transfer));
                }
                Stop::Begins
            }
            Admin::Control(control, words) => {
                let client = ControlClient {
                    session: &mut self.session,
                    number: self.client,
                    id: match self.asker {
                        Asker::Connection(key) => {
                            key.number() * core.shared.workers() as u64 + core.me as u64
                        }
                        Asker::Datagram(_) => 0,
                    },
                };
                let outcome = administer_control(control, words, client, out, core);
                if matches!(outcome, Outcome::Withheld) {
                    let (before, ..) = self.parser_at(input, self.steps);
                    self.session.parser.take_back(&before);
                }
                self.conclude(outcome, out, core)
            }
            admin => {
                let outcome = administer(&admin, out, core);
                self.conclude(outcome, out, core)
            }
        }
    }

    /// Begins the reply to a command without a key if it has not been made yet, with its first
    /// piece. What is gathered is begun when the client has taken the replies before it.
    #[cold]
    fn conclude(&mut self, outcome: Outcome, out: &mut Vec<u8>, core: &mut Core) -> Stop {
        let mut report = match outcome {
            Outcome::Done => return Stop::Live,
            Outcome::Close => return Stop::Close,
            Outcome::Withheld => return Stop::Withheld,
            Outcome::LongReply(report) => report,
        };
        if !report.is_gathered() && report.advance(core, out) == Progress::Complete {
            return Stop::Live;
        }
        match self.asker {
            Asker::Connection(_) => {
                self.rare().begins = Phase::LongReply(Box::new(report));
                Stop::Begins
            }
            // What a datagram may ask for has a single piece.
            Asker::Datagram(_) => Stop::Full,
        }
    }

    /// Reads what is to authenticate the client; nothing of it is in the batch yet.
    #[cold]
    fn log_in(&mut self, input: &[u8], out: &mut Vec<u8>, core: &mut Core) -> Result<(), Stop> {
        let (used, line, verdict) = match attempt(&input[self.at..], self.client, core) {
            Attempt::Incomplete(need) => return Err(Stop::Hungry(need)),
            Attempt::Broken => return Err(Stop::Broken),
            Attempt::Answered {
                used,
                line,
                verdict,
            } => (used, line, verdict),
        };
        out.extend_from_slice(line.as_bytes());
        if let Verdict::Admitted(user) = verdict {
            self.session.admit(user);
        }
        self.at += used;
        self.requests += 1;
        // A batch is parsed again from where it began, and this is no request.
        self.batch_at = self.at;
        match verdict {
            Verdict::Wrong => Err(Stop::Withheld),
            Verdict::Full => Err(Stop::Close),
            Verdict::Admitted(_) | Verdict::Refused => Ok(()),
        }
    }
}
