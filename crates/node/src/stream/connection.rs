//! What a worker knows about one client.

use std::sync::Arc;

use glimmer_base::limits::{
    BUFFER_BYTES, BUFFER_BYTES_KEPT_MAX, HELD_MS_MAX, MEMORY_WAIT_MS_MAX, PROGRESS_BYTES_PER_MS,
    RECEIVE_BYTES_SCARCE, REPLY_BYTES_HIGH,
};
use glimmer_proto::{Parser, Sum};
use glimmer_transport::Received;
use glimmer_transport::stream::ByteStream;

use super::ready::Lane;
use super::registry::SocketEntry;
use super::reorder::ReorderBuffer;
use super::send_queue::SendQueue;
use super::visit::{Absent, Home};
use crate::admin::dump::DumpCursor;
use crate::admin::long_reply::LongReply;
use crate::admin::observe::CloseReason;
use crate::budget::pool::{Budget, Charge, Pool};
use crate::feeds::Feed;

/// One client's stream, what has been received of it and what is to be sent.
///
/// **Invariants.** A connection is parsed only while it has no reorder buffer and nothing to send.
/// `rx` and `tx` have memory behind them only while they hold something. `queued` says that exactly
/// one of the worker's lists (ready, starved, waiting for a batch) names it.
pub(crate) struct Connection {
    pub stream: Box<dyn ByteStream>,
    /// Its entry in the connection registry.
    pub entry: Arc<SocketEntry>,
    pub parser: Parser,
    /// Received bytes; those before `rx_start` are finished.
    pub rx: Vec<u8>,
    pub rx_start: usize,
    /// Unfinished bytes before which the parser is not worth calling.
    pub need: usize,
    /// Replies.
    pub tx: SendQueue,
    pub reorder: Option<Box<ReorderBuffer>>,
    /// The client has yet to authenticate.
    pub locked: bool,
    /// What the parts of its command come to so far that is answered with one sum.
    pub sum: Sum,
    /// Wrong logins so far.
    pub login_failures: u32,
    /// The answer to a wrong login, until it may be sent; nothing is received or parsed meanwhile.
    pub withheld: Option<Vec<u8>>,
    /// All items are being listed for it, or the rest of a long reply is to be made; it is not
    /// parsed meanwhile.
    pub continuation: Option<Continuation>,
    /// What it has yet to be shown, if it watches; it is not parsed any more.
    pub feed: Option<Arc<Feed>>,
    /// Where it is at home, if this worker serves it for one request.
    pub visit: Option<Home>,
    /// It has had the request for which it visits this worker, or its turn there.
    pub has_been_served: bool,
    /// Its next request is for its home alone.
    pub is_wanted_at_home: bool,
    /// It visits a worker with a request that is timed, from this moment on, in nanoseconds.
    pub timed_since_ns: Option<u64>,
    /// Why it is to be closed, for those who watch connections.
    pub reason: CloseReason,
    /// More may be received: the poller said so, and no receive has found the socket empty since.
    pub readable: bool,
    /// The poller said that the peer will send no more.
    pub hung_up: bool,
    /// The end has been received.
    pub ended: bool,
    /// To be closed once everything is sent.
    pub closing: bool,
    pub queued: bool,
    /// It is a member of the burst that is being served.
    pub is_served: bool,
    /// The worker that the next request goes to: an attempt to execute it here said so.
    pub hand_to: Option<u16>,
    /// Bytes of its replies of late, each, as a guess at the next ones; unknown before its first.
    pub reply_bytes_guess: Option<usize>,
    /// Bytes of the replies of its last burst.
    pub burst_reply_bytes: usize,
    /// The last value that it sent was longer than an ordinary buffer.
    pub sends_large: bool,
    /// The value that its next request reads is copied, whatever its size.
    pub copies_any: bool,
    /// Bytes of memory that the budget has counted.
    pub counted: Charge,
    /// When a byte was last received or sent, in milliseconds since the epoch.
    pub progress_ms: u64,
    /// Since when it has held memory, in milliseconds since the epoch.
    pub held_since_ms: Option<u64>,
    /// When it stopped making enough progress: each byte that it sends or takes moves this on
    /// towards now. In milliseconds since the epoch, and meaningless while it holds nothing.
    pace_ms: u64,
    /// Since when it has waited for memory.
    waits_since_ms: Option<u64>,
}

/// What a connection has to be sent before it is parsed again.
pub(crate) enum Continuation {
    /// A listing of all items, which is here.
    Dump(Box<DumpCursor>),
    /// A listing of all items, which is with another worker.
    Away,
    /// Nothing: the connection itself is with another worker, and this is its place.
    Visiting,
    /// The rest of a long reply, whose next piece is made here.
    LongReply(Box<LongReply>),
}

/// Why nothing could be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is room to receive.
    Made,
    /// This many bytes of memory are missing.
    Missing(usize),
}

impl Connection {
    /// A client's stream, and its entry in the connection registry.
    pub fn new(
        (stream, entry): (Box<dyn ByteStream>, Arc<SocketEntry>),
        parser: Parser,
        now_ms: u64,
    ) -> Connection {
        Connection {
            stream,
            entry,
            parser,
            rx: Vec::new(),
            rx_start: 0,
            need: 1,
            tx: SendQueue::default(),
            reorder: None,
            login_failures: 0,
            withheld: None,
            continuation: None,
            feed: None,
            visit: None,
            has_been_served: false,
            is_wanted_at_home: false,
            timed_since_ns: None,
            reason: CloseReason::Normal,
            locked: false,
            sum: Sum::default(),
            // Bytes may have come before the poller watched; then it reports them at once. Looking
            // first costs a system call.
            readable: false,
            hung_up: false,
            ended: false,
            closing: false,
            queued: false,
            is_served: false,
            hand_to: None,
            reply_bytes_guess: None,
            burst_reply_bytes: 0,
            sends_large: false,
            copies_any: false,
            counted: Charge::default(),
            progress_ms: now_ms,
            held_since_ms: None,
            pace_ms: now_ms,
            waits_since_ms: None,
        }
    }

    /// The place that a connection leaves behind while it visits another worker.
    pub fn absent(of: &Connection, now_ms: u64) -> Connection {
        let stream = Box::new(Absent);
        let mut place = Connection::new((stream, of.entry.clone()), of.parser, now_ms);
        place.continuation = Some(Continuation::Visiting);
        place
    }

    /// Whether another worker may serve it for its next request.
    #[inline]
    pub fn may_visit(&self) -> bool {
        self.is_settled()
            && self.visit.is_none()
            && self.feed.is_none()
            && !self.locked
            && !self.closing
    }

    /// Whether any worker may serve it for what has arrived. It holds little, because its memory
    /// counts nowhere until it is taken.
    pub fn may_be_shared(&self) -> bool {
        self.may_visit()
            && self.is_runnable()
            && !self.is_wanted_at_home
            && self.rx.capacity() <= BUFFER_BYTES
    }

    /// Whether it may get another home: no list names it but that of the ready ones.
    pub fn may_move(&self) -> bool {
        self.may_visit() && self.waits_since_ms.is_none()
    }

    /// Where it waits for its turn: with those that are sent much, or send much.
    #[inline]
    pub fn lane(&self) -> Lane {
        Lane::of(self.burst_reply_bytes.max(self.need))
    }

    /// Whether the parser has something to work on.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.rx.len() - self.rx_start >= self.need
    }

    /// Whether everything that was asked has been answered and sent.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.reorder.is_none()
            && self.continuation.is_none()
            && self.tx.is_empty()
            && self.withheld.is_none()
    }

    /// Whether this slot of its reorder buffer is the next to be filled, and what is in front of it
    /// has been taken, or is too little to be sent without it.
    pub fn awaits(&self, slot: u16) -> bool {
        let is_next = |reorder: &ReorderBuffer| reorder.next() == Some(slot);
        self.tx.bytes.len() < REPLY_BYTES_HIGH && self.reorder.as_deref().is_some_and(is_next)
    }

    /// Whether its dump or its long reply should go on.
    #[inline]
    pub fn has_continuation(&self) -> bool {
        self.tx.is_empty()
            && matches!(
                self.continuation,
                Some(Continuation::Dump(_) | Continuation::LongReply(_))
            )
    }

    /// Whether it should be served.
    #[inline]
    pub fn is_runnable(&self) -> bool {
        self.is_settled() && !self.closing && (self.readable || self.has_input())
    }

    /// Whether nothing more will ever happen on it.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.is_settled() && (self.closing || (self.ended && !self.has_input()))
    }

    /// Makes room to receive into. An ordinary buffer is there for every turn; one that grows takes
    /// of the `room` for what connections hold. Bytes that arrive make it grow, not bytes that are
    /// announced: it doubles when it is full, up to [`BUFFER_BYTES_KEPT_MAX`], and then takes all
    /// that the value needs. Only an unused buffer that is there anyway is taken at once for all
    /// the bytes that are announced. While memory `is_scarce`, one that holds next to
    /// nothing and awaits no value receives into [`RECEIVE_BYTES_SCARCE`] bytes.
    #[inline]
    pub fn make_room(&mut self, pool: &mut Pool, room: usize, is_scarce: bool) -> Room {
        if self.rx_start == self.rx.len() {
            self.rx.clear();
            self.rx_start = 0;
        }
        let spare = self.rx.capacity() - self.rx.len();
        if self.rx_start == 0 && spare > 0 && self.rx.capacity() >= BUFFER_BYTES {
            return Room::Made;
        }
        if is_scarce && !self.awaits_value() {
            let rest = &self.rx[self.rx_start..];
            if rest.len() <= RECEIVE_BYTES_SCARCE / 2 {
                let mut rx = Vec::with_capacity(RECEIVE_BYTES_SCARCE);
                rx.extend_from_slice(rest);
                pool.give(std::mem::replace(&mut self.rx, rx));
                self.rx_start = 0;
                return Room::Made;
            }
        }
        self.make_more_room(pool, room, is_scarce)
    }

    #[inline]
    fn make_more_room(&mut self, pool: &mut Pool, room: usize, is_scarce: bool) -> Room {
        if self.rx.capacity() < BUFFER_BYTES {
            let missing = BUFFER_BYTES - self.rx.capacity();
            if self.need > BUFFER_BYTES && self.growth() > 0 && room < missing {
                return Room::Missing(missing);
            }
            let mut rx = pool.take();
            rx.extend_from_slice(&self.rx[self.rx_start..]);
            self.rx = rx;
            self.rx_start = 0;
        }
        if self.rx_start > 0 {
            self.rx.copy_within(self.rx_start.., 0);
            self.rx.truncate(self.rx.len() - self.rx_start);
            self.rx_start = 0;
        }
        let capacity = self.rx.capacity();
        if self.rx.len() < capacity {
            return Room::Made;
        }
        if self.awaits_value()
            && !is_scarce
            && self.need <= capacity.saturating_add(room)
            && let Some(mut rx) = pool.take_large(self.need)
        {
            if rx.capacity() - capacity <= room {
                rx.extend_from_slice(&self.rx);
                pool.give(std::mem::replace(&mut self.rx, rx));
                return Room::Made;
            }
            pool.give(rx);
        }
        let wanted = match self.awaits_value() {
            true => self.grown(),
            false => capacity * 2,
        };
        if room < wanted - capacity {
            return Room::Missing(wanted - capacity);
        }
        self.rx.reserve_exact(wanted - self.rx.len());
        Room::Made
    }

    /// Bytes by which its buffer is about to grow for the value that it receives: none if it
    /// receives none, if an ordinary buffer holds the value, or if there is space in the buffer.
    pub fn growth(&self) -> usize {
        let capacity = self.rx.capacity();
        let is_full = self.rx.len() - self.rx_start == capacity;
        match self.awaits_value() && is_full && self.need > BUFFER_BYTES {
            true => self.grown() - capacity,
            false => 0,
        }
    }

    /// The next size of the buffer for the value that it receives. Buffers that are not kept for
    /// any time have the value's size, so that the allocator can use their memory for the next one.
    fn grown(&self) -> usize {
        let doubled = (2 * self.rx.capacity()).max(BUFFER_BYTES);
        match doubled > BUFFER_BYTES_KEPT_MAX {
            true => self.need,
            false => doubled.min(self.need),
        }
    }

    /// Whether the missing bytes belong to a value whose length is known, so that it can be refused
    /// and swallowed.
    pub fn awaits_value(&self) -> bool {
        self.need > self.rx.len() - self.rx_start + 1
    }

    /// Gives up on receiving the value that is awaited.
    pub fn refuse_value(&mut self) {
        self.parser.refuse_value();
        self.need = 1;
    }

    /// Receives once into the room that was made, at most `bytes_max` bytes. Returns the number of
    /// bytes.
    #[inline]
    pub fn receive(&mut self, bytes_max: usize, now_ms: u64) -> usize {
        let received = self.stream.receive_at_most(&mut self.rx, bytes_max);
        let bytes = self.note_received(received);
        self.note_progress(bytes, now_ms);
        bytes
    }

    /// Notes whether more may be received. Returns the number of bytes.
    #[inline]
    fn note_received(&mut self, received: Received) -> usize {
        match received {
            Received::Full(bytes) => bytes,
            Received::Drained(bytes) => {
                self.readable = self.hung_up;
                bytes
            }
            Received::Ended => {
                self.readable = false;
                self.ended = true;
                0
            }
        }
    }

    fn note_progress(&mut self, bytes: usize, now_ms: u64) {
        if bytes > 0 {
            self.progress_ms = now_ms;
            let made_up_ms = bytes as u64 / PROGRESS_BYTES_PER_MS;
            self.pace_ms = now_ms.min(self.pace_ms + made_up_ms);
        }
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
        self.note_progress(bytes, now_ms);
        Some(bytes)
    }

    /// Gives back the memory of an empty receive buffer.
    #[inline]
    pub fn trim(&mut self, pool: &mut Pool) {
        let rest = self.rx.len() - self.rx_start;
        if rest == 0 {
            if self.rx.capacity() > 0 {
                pool.give(std::mem::take(&mut self.rx));
            }
            self.rx_start = 0;
        }
    }

    /// Moves what it holds into buffers of its size, where they are at least twice as large. What
    /// is in them is copied, so that this is for when memory is scarce.
    #[cold]
    pub fn compact(&mut self, pool: &mut Pool) {
        let rest = self.rx.len() - self.rx_start;
        if rest <= self.rx.capacity() / 2 && self.rx.capacity() >= BUFFER_BYTES {
            let small = self.rx[self.rx_start..].to_vec();
            pool.give(std::mem::replace(&mut self.rx, small));
            self.rx_start = 0;
        }
        self.tx.compact(pool);
    }

    /// The memory behind the connection.
    #[inline]
    pub fn charge(&self) -> Charge {
        let reorder = self
            .reorder
            .as_ref()
            .map_or(0, |reorder| reorder.capacity());
        let withheld = self.withheld.as_ref().map_or(0, Vec::capacity);
        let (rx, tx) = (self.rx.capacity(), self.tx.bytes.capacity());
        Charge {
            bytes: rx + self.tx.memory_bytes() + reorder + withheld,
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

    /// Notes that it has got an answer, or everything that it was to be sent: what it holds from
    /// here on it holds for something else.
    #[inline]
    pub fn end_hold(&mut self) {
        self.held_since_ms = None;
    }

    /// Notes whether it holds memory, and from when on.
    #[inline]
    pub fn note_held(&mut self, now_ms: u64) {
        if self.counted.bytes == 0 {
            self.held_since_ms = None;
        } else if self.held_since_ms.is_none() {
            self.held_since_ms = Some(now_ms);
            self.pace_ms = now_ms;
        }
    }

    /// For how long it has held memory without enough progress, if it waits for its client: to
    /// send the rest of a request, or to take replies. Nothing if it waits for this server.
    pub fn stalled_ms(&self, now_ms: u64) -> Option<u64> {
        let held_ms = now_ms.saturating_sub(self.held_since_ms?);
        // Replies that are not sent yet wait for those before them, which other workers make.
        let awaits_client =
            self.tx.awaits_client() || (self.reorder.is_none() && self.continuation.is_none());
        let stalled_ms = now_ms.saturating_sub(self.pace_ms);
        let stalled_ms = stalled_ms.max(held_ms.saturating_sub(HELD_MS_MAX));
        let is_idle = !self.queued && !self.is_served;
        (awaits_client && is_idle).then_some(stalled_ms)
    }

    /// Notes that it has to wait for memory.
    pub fn note_wait(&mut self, now_ms: u64) {
        self.waits_since_ms.get_or_insert(now_ms);
    }

    /// Notes that it has the memory that it waited for, or waits no longer. Its client is not to
    /// blame for the wait.
    #[inline]
    pub fn end_wait(&mut self, now_ms: u64) {
        if self.waits_since_ms.take().is_some() {
            self.pace_ms = now_ms;
        }
    }

    /// For how long it has waited for memory.
    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        (self.waits_since_ms).map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }

    /// Whether it has waited for memory for too long.
    pub fn has_waited_enough(&self, now_ms: u64) -> bool {
        self.waited_ms(now_ms) >= MEMORY_WAIT_MS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_proto::{Accepts, Limits};
    use glimmer_transport::stream::{LocalStream, StreamFaults};
    use std::net::SocketAddr;

    /// One that has held memory since 1,000 ms.
    fn holder() -> Connection {
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let [stream, _] = LocalStream::pair(StreamFaults::default(), [peer; 2], 1);
        let entry = Arc::new(SocketEntry::connected(&stream, 0, 0));
        let limits = Limits {
            item_bytes_max: 1 << 20,
        };
        let parser = Parser::accepting(Accepts::Any, limits);
        let mut holder = Connection::new((Box::new(stream), entry), parser, 0);
        holder.counted.bytes = 100;
        holder.note_held(1_000);
        holder
    }

    #[test]
    fn a_byte_now_and_then_is_no_progress() {
        let (mut slow, mut fast) = (holder(), holder());
        for ms in 1_001..=10_000 {
            if ms % 1_000 == 0 {
                slow.note_progress(1, ms);
            }
            fast.note_progress(PROGRESS_BYTES_PER_MS as usize, ms);
        }
        assert_eq!(slow.stalled_ms(10_000), Some(9_000));
        assert_eq!(fast.stalled_ms(10_000), Some(0));
        assert_eq!(fast.stalled_ms(10_007), Some(7));
        fast.queued = true;
        assert_eq!(fast.stalled_ms(10_007), None, "it waits for this server");
        fast.note_wait(10_007);
        fast.end_wait(12_000);
        fast.queued = false;
        assert_eq!(fast.stalled_ms(12_001), Some(1), "it has waited");
    }
}
