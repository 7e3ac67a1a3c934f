//! Requests over UDP: the datagrams of one system call are parsed where they lie and go through the
//! engine as one burst, and their replies leave together. None of them becomes a connection unless
//! a request of it has to cross over to another worker.

use std::io;
use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BURST_CONNECTIONS_MAX, DATAGRAM_BURSTS_PER_TURN_MAX, REPLY_DATAGRAMS_MAX,
};
use glimmer_proto::Parser;
use glimmer_proto::udp::{self as frame, HEADER_BYTES};
use glimmer_transport::Poller;
use glimmer_transport::udp::{DATAGRAMS_MAX, Departed, Inbox, Outgoing, Socket};

use super::answer::{Answer, TOO_LARGE, bounded};
use crate::admin::alarm::Failure;
use crate::core::Core;
use crate::forward::port::Port;
use crate::stream::Streams;
use crate::stream::burst::Burst;
use crate::stream::connection::{Connection, Link};
use crate::stream::member::{Input, Member, Stop};
use crate::stream::registry::SocketEntry;

const _: () = assert!(
    DATAGRAMS_MAX <= BURST_CONNECTIONS_MAX,
    "all that one system call brings is one burst"
);
const _: () = assert!(REPLY_DATAGRAMS_MAX <= u16::MAX as usize);

/// A socket at which requests come in.
pub(crate) struct DatagramSource {
    socket: Socket,
    watched_by: Watch,
    /// The kernel's count of datagrams that it dropped, as last told.
    drops: u32,
    /// Its token in the poller.
    token: u64,
}

impl DatagramSource {
    /// A socket that the poller will watch under this token.
    pub fn new(socket: Socket, token: u64) -> DatagramSource {
        DatagramSource {
            socket,
            watched_by: Watch::Poller,
            drops: 0,
            token,
        }
    }
}

/// Who looks whether datagrams have come.
///
/// The kernel reports every datagram that arrives, and every one that has been sent, to a poller
/// that watches the socket. Where they come in full bursts that takes more of both ends' time than
/// anything the server does with them, and tells it nothing: so then it is the worker that looks,
/// in every turn, until a look finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Poller,
    Worker,
    /// No more requests are taken.
    Nobody,
}

/// One worker's sockets for datagrams of memcached's UDP protocol.
pub(crate) struct Packets {
    sources: Vec<DatagramSource>,
    /// Datagrams being answered.
    inbox: Inbox,
    burst: Burst,
}

impl Packets {
    pub fn new(sources: Vec<DatagramSource>) -> Packets {
        Packets {
            sources,
            inbox: Inbox::default(),
            burst: Burst::new(),
        }
    }

    /// Has the poller watch the sockets.
    pub fn watch(&self, poller: &Poller) -> io::Result<()> {
        for source in &self.sources {
            poller.watch_level(&source.socket, source.token)?;
        }
        Ok(())
    }

    /// Enters the sockets into the connection registry.
    pub fn register(&self, core: &Core) {
        for source in &self.sources {
            let entry = SocketEntry::listening(&source.socket, true, core.now.ms);
            core.shared.registry.add(Arc::new(entry));
        }
    }

    /// Answers the datagrams that wait at one socket.
    pub fn serve(
        &mut self,
        source: usize,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
        poller: &Poller,
    ) {
        let mut bursts = 0;
        while bursts < DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = self.sources[source].socket.receive(&mut self.inbox);
            if received > 0 {
                if let Some(drops) = self.inbox.drops() {
                    self.note_drops(source, drops, core);
                }
                self.answer_inbox(source, core, streams, port);
            }
            if received < DATAGRAMS_MAX {
                if bursts == 0 && received == 0 {
                    self.watch_by(source, Watch::Poller, poller);
                }
                return;
            }
            bursts += 1;
            self.watch_by(source, Watch::Worker, poller);
        }
    }

    /// Answers the datagrams that wait at every socket.
    pub fn serve_all(
        &mut self,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
        poller: &Poller,
    ) {
        for source in 0..self.sources.len() {
            self.serve(source, core, streams, port, poller);
        }
    }

    /// Answers the datagrams at the sockets that the worker itself watches.
    pub fn look(
        &mut self,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
        poller: &Poller,
    ) {
        for source in 0..self.sources.len() {
            if self.sources[source].watched_by == Watch::Worker {
                self.serve(source, core, streams, port, poller);
            }
        }
    }

    /// Whether there are sockets at which the worker itself has to look.
    #[inline]
    pub fn is_busy(&self) -> bool {
        (self.sources.iter()).any(|source| source.watched_by == Watch::Worker)
    }

    /// Takes no more datagrams; the sockets stay open for what is yet to be answered.
    pub fn forget(&mut self, poller: &Poller) {
        for source in 0..self.sources.len() {
            self.watch_by(source, Watch::Nobody, poller);
        }
    }

    /// Sends replies to datagrams that were connections.
    pub fn send_answers(&self, answers: impl Iterator<Item = Answer>, core: &mut Core) {
        for answer in answers {
            let mut outgoing = Departure::new(&self.sources[answer.source].socket);
            for (header, payload) in frame::reply(answer.id, bounded(&answer.reply)) {
                outgoing.push(Outgoing {
                    peer: &answer.peer,
                    header,
                    payload,
                });
            }
            count_departed(outgoing.finish(), core);
        }
    }

    #[cold]
    fn note_drops(&mut self, source: usize, drops: u32, core: &mut Core) {
        let before = std::mem::replace(&mut self.sources[source].drops, drops);
        if drops != before {
            let dropped = drops.wrapping_sub(before);
            core.note_failure(Failure::Overflow, dropped.into(), None);
        }
    }

    /// Leaves it to another to watch a socket. If the kernel refuses, all stays as it is until the
    /// next time.
    fn watch_by(&mut self, source: usize, who: Watch, poller: &Poller) {
        let source = &mut self.sources[source];
        if source.watched_by == who {
            return;
        }
        let changed = match who {
            Watch::Poller => poller.watch_level(&source.socket, source.token),
            Watch::Worker | Watch::Nobody if source.watched_by == Watch::Poller => {
                poller.forget(&source.socket)
            }
            Watch::Worker | Watch::Nobody => Ok(()),
        };
        if changed.is_ok() {
            source.watched_by = who;
        }
    }

    fn answer_inbox(
        &mut self,
        source: usize,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
    ) {
        let Packets { inbox, burst, .. } = self;
        let config = &core.shared.config;
        let parser = Parser::accepting(config.accepts, config.limits);
        for slot in 0..inbox.count() {
            let datagram = inbox.datagram(slot);
            core.tally.bytes_read += datagram.len() as u64;
            if frame::request(datagram).is_some() {
                let member = Member::datagram(slot as u8, HEADER_BYTES, parser);
                burst.members.push(member);
                burst.outs.push(core.memory.pool.take());
            } else {
                core.tally.datagrams_dropped += 1;
            }
        }
        core.tally.datagrams_received += inbox.count() as u64;
        let inbox = &*inbox;
        let input_of = |input| match input {
            Input::Datagram(slot) => inbox.datagram(slot.into()),
            Input::Connection(_) => &[],
        };
        // A datagram holds 64 KiB at most, so that its requests need not take turns with others.
        burst.run_batches(input_of, |_| 0, core, port);
        while burst.revive_spent() {
            burst.run_batches(input_of, |_| 0, core, port);
        }
        for index in 0..self.burst.members.len() {
            match self.burst.members[index].stop {
                Stop::Forward => self.promote(index, source, core, streams),
                Stop::Full => self.refuse(index),
                _ => {}
            }
        }
        self.send_replies(source, core);
        self.burst.members.clear();
        for out in self.burst.outs.drain(..) {
            core.memory.pool.give(out);
        }
    }

    /// Sends what the burst replies.
    fn send_replies(&mut self, source: usize, core: &mut Core) {
        let Packets {
            sources,
            inbox,
            burst,
        } = self;
        let mut outgoing = Departure::new(&sources[source].socket);
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
        count_departed(outgoing.finish(), core);
    }

    /// Replies that there is no room for the reply.
    #[cold]
    fn refuse(&mut self, index: usize) {
        let out = &mut self.burst.outs[index];
        out.clear();
        out.extend_from_slice(TOO_LARGE);
    }

    /// Makes a connection of a datagram whose next request has to be forwarded.
    #[cold]
    fn promote(&mut self, index: usize, source: usize, core: &mut Core, streams: &mut Streams) {
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
        if core.memory.room() < rest.len() + made.len() {
            return self.refuse(index);
        }
        // The burst's buffer is far larger than most replies, and a flood of datagrams would keep
        // one for each.
        let answer = Answer {
            source,
            peer: *self.inbox.peer(slot),
            id,
            reply: made.to_vec(),
        };
        let link = Link::Datagram(Box::new(answer));
        let mut connection = Connection::new(link, member.parser, core.now.ms);
        connection.rx = rest.to_vec();
        connection.ended = true;
        connection.ask_owner = member.ask_owner;
        self.burst.outs[index].clear();
        streams.adopt(connection, core);
    }
}

fn count_departed((departed, unsent): (Departed, u64), core: &mut Core) {
    core.tally.datagrams_sent += departed.datagrams;
    core.tally.bytes_written += departed.bytes;
    if unsent > 0 {
        core.note_failure(Failure::Send, unsent, None);
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
