//! Requests over UDP: the datagrams of one system call are parsed where they lie and go through the
//! engine as one burst, and their replies leave together. None of them becomes a connection unless
//! a request of it has to cross over to another worker.

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BURST_CONNECTIONS_MAX, DATAGRAM_BURSTS_PER_TURN_MAX, REPLY_DATAGRAMS_MAX,
};
use glimmer_proto::Parser;
use glimmer_proto::udp::{self as frame, HEADER_BYTES, PAYLOAD_BYTES};
use glimmer_transport::udp::{DATAGRAMS_MAX, Departed, Outgoing, Socket};

use crate::admin::alarm::Failure;
use crate::stream::connection::{Answer, Connection, Link};
use crate::stream::member::{Input, Member, Stop};
use crate::stream::ready::ReplyClass;
use crate::worker::Worker;

/// Instead of a reply of more than [`REPLY_DATAGRAMS_MAX`] datagrams, or one that there is no
/// memory for.
const TOO_LARGE: &[u8] = b"SERVER_ERROR reply too large for UDP\r\n";

const _: () = assert!(
    DATAGRAMS_MAX <= BURST_CONNECTIONS_MAX,
    "all that one system call brings is one burst"
);
const _: () = assert!(REPLY_DATAGRAMS_MAX <= u16::MAX as usize);

/// A socket at which requests come in.
pub(crate) struct DatagramSource {
    pub socket: Socket,
    pub watched_by: Watch,
    /// The kernel's count of datagrams that it dropped, as last told.
    pub drops: u32,
}

/// Who looks whether datagrams have come.
///
/// The kernel reports every datagram that arrives, and every one that has been sent, to a poller
/// that watches the socket. Where they come in full bursts that takes more of both ends' time than
/// anything the server does with them, and tells it nothing: so then it is the worker that looks,
/// in every turn, until a look finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Poller,
    Worker,
    /// No more requests are taken.
    Nobody,
}

impl Worker {
    /// Answers the datagrams that wait at one socket.
    pub fn serve_datagrams(&mut self, source: usize) {
        let mut bursts = 0;
        while bursts < DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = self.sockets[source].socket.receive(&mut self.inbox);
            if received > 0 {
                if let Some(drops) = self.inbox.drops() {
                    self.note_drops(source, drops);
                }
                self.answer_inbox(source);
            }
            if received < DATAGRAMS_MAX {
                if bursts == 0 && received == 0 {
                    self.watch_by(source, Watch::Poller);
                }
                return;
            }
            bursts += 1;
            self.watch_by(source, Watch::Worker);
        }
    }

    #[cold]
    fn note_drops(&mut self, source: usize, drops: u32) {
        let before = std::mem::replace(&mut self.sockets[source].drops, drops);
        if drops != before {
            let dropped = drops.wrapping_sub(before);
            self.note_failure(Failure::Overflow, dropped.into(), None);
        }
    }

    /// Answers the datagrams at the sockets that the worker itself watches.
    pub fn look_for_datagrams(&mut self) {
        for source in 0..self.sockets.len() {
            if self.sockets[source].watched_by == Watch::Worker {
                self.serve_datagrams(source);
            }
        }
    }

    /// Whether there are sockets at which the worker itself has to look.
    #[inline]
    pub fn watches_datagrams(&self) -> bool {
        (self.sockets.iter()).any(|source| source.watched_by == Watch::Worker)
    }

    /// Leaves it to somebody else to watch a socket. If the kernel refuses, all stays as it is
    /// until the next time.
    fn watch_by(&mut self, source: usize, who: Watch) {
        let DatagramSource {
            socket, watched_by, ..
        } = &self.sockets[source];
        if *watched_by == who {
            return;
        }
        let changed = match who {
            Watch::Poller => self.poller.watch_level(socket, self.socket_token(source)),
            Watch::Worker | Watch::Nobody if *watched_by == Watch::Poller => {
                self.poller.forget(socket)
            }
            Watch::Worker | Watch::Nobody => Ok(()),
        };
        if changed.is_ok() {
            self.sockets[source].watched_by = who;
        }
    }

    /// Takes no more datagrams; the sockets stay open for what is yet to be answered.
    pub fn forget_sockets(&mut self) {
        for source in 0..self.sockets.len() {
            self.watch_by(source, Watch::Nobody);
        }
        self.forget_native();
    }

    fn answer_inbox(&mut self, source: usize) {
        let config = &self.shared.config;
        let parser = Parser::accepting(config.accepts, config.limits);
        for slot in 0..self.inbox.count() {
            let datagram = self.inbox.datagram(slot);
            self.tally.bytes_read += datagram.len() as u64;
            if frame::request(datagram).is_some() {
                let member = Member::datagram(slot as u8, HEADER_BYTES, parser);
                self.burst.members.push(member);
                self.burst.outs.push(self.pool.take());
            } else {
                self.tally.datagrams_dropped += 1;
            }
        }
        self.tally.datagrams_received += self.inbox.count() as u64;
        // A datagram holds 64 KiB at most, so that its requests need not take turns with others.
        self.run_batches();
        while self.burst.revive_spent() {
            self.run_batches();
        }
        for index in 0..self.burst.members.len() {
            match self.burst.members[index].stop {
                Stop::Forward => self.seat_datagram(index, source),
                Stop::Full => {
                    self.burst.outs[index].clear();
                    self.burst.outs[index].extend_from_slice(TOO_LARGE);
                }
                _ => {}
            }
        }
        self.send_replies(source);
        self.burst.members.clear();
        for out in self.burst.outs.drain(..) {
            self.pool.give(out);
        }
    }

    /// Sends what the burst replies.
    fn send_replies(&mut self, source: usize) {
        let Worker {
            burst,
            inbox,
            sockets,
            ..
        } = self;
        let mut outgoing = Departure::new(&sockets[source].socket);
        for (member, out) in burst.members.iter().zip(&burst.outs) {
            if let Input::Datagram(slot) = member.input {
                let slot = usize::from(slot);
                let Some((id, _)) = frame::request(inbox.datagram(slot)) else {
                    continue;
                };
                for (header, payload) in frame::reply(id, bounded(out)) {
                    outgoing.push(Outgoing {
                        peer: inbox.peer(slot),
                        header,
                        payload,
                    });
                }
            }
        }
        let departed = outgoing.finish();
        self.count_departed(departed);
    }

    fn count_departed(&mut self, (departed, unsent): (Departed, u64)) {
        self.tally.datagrams_sent += departed.datagrams;
        self.tally.bytes_written += departed.bytes;
        if unsent > 0 {
            self.note_failure(Failure::Send, unsent, None);
        }
    }

    /// Makes a connection of a datagram whose next request has to cross over.
    #[cold]
    fn seat_datagram(&mut self, index: usize, source: usize) {
        let member = &self.burst.members[index];
        let Input::Datagram(slot) = member.input else {
            return;
        };
        let slot = usize::from(slot);
        let datagram = self.inbox.datagram(slot);
        let Some((id, _)) = frame::request(datagram) else {
            return;
        };
        let rest = &datagram[member.at..];
        let made = &self.burst.outs[index];
        if self.room() < rest.len() + made.len() {
            self.burst.outs[index].clear();
            self.burst.outs[index].extend_from_slice(TOO_LARGE);
            return;
        }
        // The burst's buffer is far larger than most replies, and a flood of datagrams would keep
        // one for each.
        let answer = Answer {
            source,
            peer: *self.inbox.peer(slot),
            id,
            reply: made.to_vec(),
        };
        self.burst.outs[index].clear();
        let link = Link::Datagram(Box::new(answer));
        let mut connection = Connection::new(link, member.parser, self.now.ms);
        connection.rx = rest.to_vec();
        connection.ended = true;
        connection.ask_owner = member.ask_owner;
        connection.queued = true;
        connection.recharge(&mut self.budget);
        let key = self.connections.insert(connection);
        self.ready.push(key, ReplyClass::Small);
    }

    /// Sends the reply to a datagram that was a connection.
    pub fn send_answer(&mut self, answer: &Answer) {
        let mut outgoing = Departure::new(&self.sockets[answer.source].socket);
        for (header, payload) in frame::reply(answer.id, bounded(&answer.reply)) {
            outgoing.push(Outgoing {
                peer: &answer.peer,
                header,
                payload,
            });
        }
        let departed = outgoing.finish();
        self.count_departed(departed);
    }
}

/// Whether a reply takes more datagrams than it may.
pub(crate) fn is_too_large(reply: &[u8]) -> bool {
    reply.len() > REPLY_DATAGRAMS_MAX * PAYLOAD_BYTES
}

fn bounded(reply: &[u8]) -> &[u8] {
    if is_too_large(reply) {
        TOO_LARGE
    } else {
        reply
    }
}

/// Datagrams that leave with one system call. Once the socket is full, the rest is lost without
/// another one.
struct Departure<'a> {
    socket: &'a Socket,
    datagrams: ArrayVec<Outgoing<'a>, DATAGRAMS_MAX>,
    departed: Departed,
    all: u64,
}

impl<'a> Departure<'a> {
    fn new(socket: &'a Socket) -> Self {
        Departure {
            socket,
            datagrams: ArrayVec::new(),
            departed: Departed::default(),
            all: 0,
        }
    }

    #[inline]
    fn push(&mut self, datagram: Outgoing<'a>) {
        self.all += 1;
        if self.departed.is_full {
            return;
        }
        self.datagrams.push(datagram);
        if self.datagrams.is_full() {
            self.leave();
        }
    }

    fn leave(&mut self) {
        let departed = self.socket.send(&self.datagrams);
        self.departed.datagrams += departed.datagrams;
        self.departed.bytes += departed.bytes;
        self.departed.is_full = departed.is_full;
        self.datagrams.clear();
    }

    /// Sends the rest. Returns what left, and how many datagrams did not.
    fn finish(mut self) -> (Departed, u64) {
        if !self.datagrams.is_empty() {
            self.leave();
        }
        (self.departed, self.all - self.departed.datagrams)
    }
}
