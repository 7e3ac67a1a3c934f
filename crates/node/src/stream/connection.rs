//! What a worker knows about one client.

use std::sync::Arc;

use glimmer_base::limits::{BUFFER_BYTES, REPLY_BYTES_HIGH};
use glimmer_engine::LentPart;
use glimmer_proto::{Parser, Rest, Sum};
use glimmer_transport::stream::ByteStream;
use glimmer_transport::{Readiness, Received};

use super::incoming::LargeValue;
use super::patience::Patience;
use super::phase::Phase;
use super::ready::Lane;
use super::receive_buffer::ReceiveBuffer;
use super::registry::SocketEntry;
use super::send_queue::SendQueue;
use super::visit::{Absent, Visit};
use crate::admin::observe::CloseReason;
use crate::budget::pool::{Budget, Charge, Pool};

/// One client's stream, what has been received of it and what is to be sent.
///
/// **Invariants.** A connection is parsed only in the phase [`Phase::Open`], with nothing to send.
/// `rx` and `tx` have memory behind them only while they hold something.
pub(crate) struct Connection {
    pub stream: Box<dyn ByteStream>,
    /// Its entry in the connection registry.
    pub entry: Arc<SocketEntry>,
    pub session: Session,
    pub rx: ReceiveBuffer,
    pub tx: SendQueue,
    pub input: Input,
    pub phase: Phase,
    pub turn: Turn,
    /// How this worker comes to serve it, if its home is another one.
    pub visit: Option<Visit>,
    /// Its next request is for its home alone.
    pub is_wanted_at_home: bool,
    /// It is to be closed once everything is sent, for this reason.
    pub closes: Option<CloseReason>,
    /// Bytes of its replies of late, each, as a guess at the next ones; unknown before its first.
    pub reply_bytes_guess: Option<usize>,
    /// Bytes of the replies of its last burst.
    pub burst_reply_bytes: usize,
    /// The value that its next request reads is copied, whatever its size.
    pub copies_any: bool,
    /// Bytes of memory that the budget has counted.
    pub counted: Charge,
    pub patience: Patience,
    /// Since when it has waited for the limits of its user or its address, in milliseconds since
    /// the epoch.
    pub throttled_since_ms: Option<u64>,
}

/// How far the conversation with a client has come.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    pub parser: Parser,
    /// What is looked at before a request is taken.
    pub gate: Gate,
    /// Its user or its address has an account.
    pub is_metered: bool,
    /// Its requests of this burst are refused: its user or its address is over its limit.
    pub refuses: bool,
    /// The number of its user. 0: it has not logged in, or its user has no rights of its own and
    /// may do everything.
    pub user: u16,
    /// Wrong logins so far.
    pub login_failures: u32,
    /// What the parts of its command come to so far that is answered with one sum.
    pub sum: Sum,
    /// The worker that the next request goes to: an attempt to execute it here said so.
    pub hand_to: Option<u16>,
}

/// What is looked at before a request is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing.
    Open,
    /// Whether it is a login: the client has yet to authenticate.
    Locked,
    /// Whether its user may do this.
    Judged,
}

impl Session {
    /// A client that has said nothing.
    pub fn new(parser: Parser, locked: bool) -> Session {
        Session {
            parser,
            gate: match locked {
                true => Gate::Locked,
                false => Gate::Open,
            },
            is_metered: false,
            refuses: false,
            user: 0,
            login_failures: 0,
            sum: Sum::default(),
            hand_to: None,
        }
    }
}

impl Session {
    /// Whether the client has yet to authenticate.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.gate == Gate::Locked
    }

    /// The client has authenticated as the user of this number.
    pub fn admit(&mut self, user: u16) {
        self.user = user;
        self.is_metered |= user != 0;
        self.gate = match user {
            0 => Gate::Open,
            _ => Gate::Judged,
        };
    }

    /// The client has yet to authenticate, or again. Returns the number of the user that it was.
    pub fn lock(&mut self) -> u16 {
        self.gate = Gate::Locked;
        std::mem::take(&mut self.user)
    }
}

/// What is known about further input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Input {
    /// Nothing has been reported since a receive found the socket empty. Bytes may have come before
    /// the poller watched; then it reports them at once. Looking first costs a system call.
    #[default]
    Nothing,
    /// The poller said that more may be received.
    Readable,
    /// The poller said that urgent data has come, in front of which a receive ends: only one that
    /// brings nothing finds the socket empty.
    Urgent,
    /// The poller said that the peer will send no more; what it has sent may be received.
    HungUp,
    /// The end has been received.
    Ended,
}

impl Input {
    /// Adds what the poller reported.
    #[inline]
    pub fn note(&mut self, ready: &Readiness) {
        let reported = match (ready.hung_up, ready.readable) {
            (true, _) => Input::HungUp,
            (false, _) if ready.urgent => Input::Urgent,
            (false, true) => Input::Readable,
            (false, false) => Input::Nothing,
        };
        *self = (*self).max(reported);
    }

    /// Whether it is worth receiving.
    #[inline]
    pub fn is_readable(self) -> bool {
        matches!(self, Input::Readable | Input::Urgent | Input::HungUp)
    }
}

/// Where a connection stands in its worker's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits for its client, for others, or for nothing.
    #[default]
    None,
    /// One of the worker's lists names it: it is ready, or waits for memory, for credit or for an
    /// allowance.
    Queued,
    /// It is a member of the burst that is being served.
    Served,
}

impl Connection {
    /// A client's stream, and its entry in the connection registry.
    pub fn new(
        (stream, entry): (Box<dyn ByteStream>, Arc<SocketEntry>),
        session: Session,
        now_ms: u64,
    ) -> Connection {
        Connection {
            stream,
            entry,
            session,
            rx: ReceiveBuffer::default(),
            tx: SendQueue::default(),
            input: Input::default(),
            phase: Phase::default(),
            turn: Turn::default(),
            visit: None,
            is_wanted_at_home: false,
            closes: None,
            reply_bytes_guess: None,
            burst_reply_bytes: 0,
            copies_any: false,
            counted: Charge::default(),
            patience: Patience::new(now_ms),
            throttled_since_ms: None,
        }
    }

    /// The place that a connection leaves behind while it visits another worker.
    pub fn absent(of: &Connection, now_ms: u64) -> Connection {
        let stream = Box::new(Absent);
        Connection {
            phase: Phase::Away,
            ..Connection::new((stream, of.entry.clone()), of.session, now_ms)
        }
    }

    /// Whether another worker may serve it for its next request.
    #[inline]
    pub fn may_visit(&self) -> bool {
        matches!(self.phase, Phase::Open)
            && self.tx.is_empty()
            && self.visit.is_none()
            && !self.session.is_locked()
            && self.closes.is_none()
    }

    /// Whether any worker may serve it for what has arrived. It holds little, because its memory
    /// counts nowhere until it is taken.
    pub fn may_be_shared(&self) -> bool {
        self.may_visit()
            && self.is_runnable()
            && !self.is_wanted_at_home
            && !self.session.is_metered
            && self.rx.capacity() <= BUFFER_BYTES
    }

    /// Whether it may get another home: no list names it but that of the ready ones.
    pub fn may_move(&self) -> bool {
        self.may_visit() && !self.patience.is_waiting()
    }

    /// Whether there is no value for which it would ask for a place now. While it waits for one it
    /// is not served, so it asks when all its replies have come and left.
    #[inline]
    pub fn awaits_no_place(&self) -> bool {
        self.rx.value.is_none() || !self.is_settled()
    }

    /// Where it waits for its turn: with those that are sent much, or send much.
    #[inline]
    pub fn lane(&self) -> Lane {
        Lane::of(self.burst_reply_bytes.max(self.rx.need))
    }

    /// Whether everything that was asked has been answered and sent.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.phase.is_settled() && self.tx.is_empty()
    }

    /// Whether this slot of its reorder buffer is the next to be filled, and what is in front of it
    /// has been taken, or is too little to be sent without it.
    pub fn awaits(&self, slot: u16) -> bool {
        let next = self.phase.reorder().and_then(|reorder| reorder.next());
        self.tx.unsent_bytes() < REPLY_BYTES_HIGH && next == Some(slot)
    }

    /// Whether there are values in its replies that the table lends.
    #[inline]
    pub fn borrows(&self) -> bool {
        let reorder = self.phase.reorder();
        self.tx.borrows() || reorder.is_some_and(|it| it.lent().next().is_some())
    }

    /// The parts of its replies that are lent.
    pub fn lent(&self) -> impl Iterator<Item = &LentPart> {
        let early = self.phase.reorder().map(|reorder| reorder.lent());
        self.tx.lent().chain(early.into_iter().flatten())
    }

    /// Bytes of the values in its replies that are lent.
    pub fn lent_bytes(&self) -> usize {
        self.lent().map(|part| part.value.bytes()).sum()
    }

    /// Whether the next piece of its reply should be made.
    #[inline]
    pub fn should_produce(&self) -> bool {
        self.tx.is_empty() && self.phase.is_producing()
    }

    /// Whether it should be served.
    #[inline]
    pub fn is_runnable(&self) -> bool {
        self.is_settled()
            && self.closes.is_none()
            && (self.input.is_readable() || self.rx.has_input() || self.rx.has_ahead())
    }

    /// Whether it may ask for the place that it wants in the table.
    pub fn asks_for_place(&self) -> bool {
        self.rx.awaits_place() && self.is_settled() && self.closes.is_none()
    }

    /// Whether more of a line of keys is to be received, although its first keys cannot be answered
    /// before the client takes the replies that it has. Some clients send all of a line first.
    #[inline]
    pub fn reads_ahead(&self, room: usize) -> bool {
        self.tx.awaits_client() && self.may_read_ahead(room)
    }

    #[cold]
    fn may_read_ahead(&self, room: usize) -> bool {
        self.input.is_readable()
            && !self.rx.has_ahead()
            && self.closes.is_none()
            && matches!(self.phase, Phase::Open)
            && self.session.parser.is_in_keys()
            && self.rx.may_grow_ahead(room)
    }

    /// Whether it has a part of a request, or its stream a part of a record, and awaits the rest,
    /// or keeps commands of a transaction in the table.
    pub fn awaits_rest(&self) -> bool {
        let parser = &self.session.parser;
        self.rx.len() > 0
            || self.rx.has_places()
            || parser.rest() == Rest::Arriving
            || parser.passes_over()
            || self.stream.held_bytes() > 0
    }

    /// Whether nothing more will ever happen on it.
    #[inline]
    pub fn is_finished(&self) -> bool {
        let has_ended = self.input == Input::Ended && !self.rx.has_input() && !self.rx.has_ahead();
        self.is_settled() && (self.closes.is_some() || has_ended)
    }

    /// Has it closed once everything is sent. The first reason stays.
    pub fn close_for(&mut self, reason: CloseReason) {
        self.closes.get_or_insert(reason);
    }

    /// Gives up on receiving the value that is awaited.
    pub fn refuse_value(&mut self) {
        self.session.parser.refuse_value();
        self.rx.need = 1;
    }

    /// Receives once into the room that was made, at most `bytes_max` bytes. Returns the number of
    /// bytes.
    #[inline]
    pub fn receive(&mut self, bytes_max: usize, now_ms: u64) -> usize {
        let received = self.stream.receive_at_most(&mut self.rx.bytes, bytes_max);
        let bytes = self.note_received(received);
        self.patience.note_progress(bytes, now_ms);
        bytes
    }

    /// Notes whether more may be received. Returns the number of bytes.
    #[inline]
    fn note_received(&mut self, received: Received) -> usize {
        match received {
            Received::Full(bytes) => bytes,
            Received::Drained(bytes) => {
                if self.input == Input::Readable || (self.input == Input::Urgent && bytes == 0) {
                    self.input = Input::Nothing;
                }
                bytes
            }
            Received::Ended => {
                self.input = Input::Ended;
                0
            }
        }
    }

    /// Receives once into the place of its value, at most this many bytes of it. Returns the number
    /// of bytes.
    pub fn receive_in_place(&mut self, bytes_max: usize, pool: &mut Pool, now_ms: u64) -> usize {
        let Some(LargeValue::InPlace(incoming)) = self.rx.value.as_deref_mut() else {
            return 0;
        };
        let into = (&mut self.rx.bytes, pool);
        let received = incoming.receive(&mut *self.stream, bytes_max, into);
        if incoming.missing() == 0 {
            self.rx.need = 1;
        }
        let bytes = self.note_received(received);
        self.patience.note_progress(bytes, now_ms);
        bytes
    }

    /// Receives once into a buffer that is not its own, at most `bytes_max` bytes, and forgets
    /// them. Returns their number.
    pub fn pass_over(&mut self, scratch: &mut Vec<u8>, bytes_max: usize) -> usize {
        scratch.clear();
        let received = self.stream.receive_at_most(scratch, bytes_max);
        self.note_received(received)
    }

    /// Sends at most `bytes_max` bytes. Returns the number of bytes, or nothing if the connection
    /// failed.
    #[inline]
    pub fn transmit(&mut self, pool: &mut Pool, bytes_max: usize, now_ms: u64) -> Option<usize> {
        let bytes = self.tx.send(&mut *self.stream, pool, bytes_max)?;
        self.patience.note_progress(bytes, now_ms);
        Some(bytes)
    }

    /// Moves what it holds into buffers of its size, where they are at least twice as large. What
    /// is in them is copied, so that this is for when memory is scarce.
    #[cold]
    pub fn compact(&mut self, pool: &mut Pool) {
        self.rx.compact(pool);
        self.tx.compact(pool);
    }

    /// The memory behind the connection.
    #[inline]
    pub fn charge(&self) -> Charge {
        let phase = match &self.phase {
            Phase::Reordering(reorder) => reorder.capacity(),
            Phase::Withheld(reply) => reply.capacity(),
            _ => 0,
        };
        let (rx, tx) = (self.rx.capacity(), self.tx.capacity());
        let queue = (self.rx.queue.as_ref()).map_or(0, |queue| queue.buffer_bytes());
        Charge {
            bytes: rx + tx + phase + queue,
            buffers: usize::from(rx > 0) + usize::from(tx > 0),
        }
    }

    /// Notes that replies took this many bytes each. The guess follows large replies at once and
    /// forgets them slowly.
    #[inline]
    pub fn note_reply_bytes(&mut self, each: usize) {
        let guess = self.reply_bytes_guess.unwrap_or(0);
        self.reply_bytes_guess = Some(each.max(guess - guess / 4));
    }

    /// Brings the budget up to date with the memory behind the connection.
    #[inline]
    pub fn recharge(&mut self, budget: &mut Budget) {
        let charge = self.charge();
        budget.recharge_held(self.counted, charge);
        self.counted = charge;
    }

    /// Whether it waits for its client to send something, and for nothing that this server does.
    pub fn awaits_client(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.turn == Turn::None && self.tx.is_empty()
    }

    /// For how long it has held memory without enough progress, if it waits for its client: to
    /// send the rest of a request, or to take replies. Nothing if it waits for this server.
    pub fn stalled_ms(&self, now_ms: u64) -> Option<u64> {
        // What it has received of a value lies in the table.
        self.stalled_if(!self.rx.is_in_place(), now_ms)
    }

    /// The same for memory that its stream holds.
    pub fn encrypted_stalled_ms(&self, now_ms: u64) -> Option<u64> {
        self.stalled_if(self.stream.held_bytes() > 0, now_ms)
    }

    fn stalled_if(&self, holds: bool, now_ms: u64) -> Option<u64> {
        // Replies that are not sent yet wait for those before them, which other workers make.
        let awaits_client = self.tx.awaits_client() || self.phase.awaits_client();
        let stalled_ms = self.patience.stalled_ms(now_ms)?;
        (holds && awaits_client && self.turn == Turn::None).then_some(stalled_ms)
    }
}
