//! Requests over memcached's UDP protocol: the datagrams that one call to a device brings are
//! parsed where they lie and go through the engine as one burst, and their replies leave together.
//! None of them becomes a connection unless a request of it has to be forwarded to another worker.

use std::net::SocketAddr;

use arrayvec::ArrayVec;
use glimmer_base::limits::{BURST_CONNECTIONS_MAX, REPLY_DATAGRAMS_MAX};
use glimmer_proto::Parser;
use glimmer_proto::udp::{self as frame, HEADER_BYTES};
use glimmer_transport::packet::{Message, PacketDevice, RxBatch, TxBatch};

use super::answer::{Answer, TOO_LARGE, bounded};
use super::source::count_sent;
use crate::core::Core;
use crate::forward::port::Port;
use crate::stream::Streams;
use crate::stream::burst::Burst;
use crate::stream::connection::{Connection, Link};
use crate::stream::member::{Input, Member, Stop};

const _: () = assert!(REPLY_DATAGRAMS_MAX <= u16::MAX as usize);

/// A request that is being answered.
#[derive(Clone, Copy)]
struct Datagram<'b> {
    peer: SocketAddr,
    bytes: &'b [u8],
    /// What its reply repeats.
    id: u16,
}

/// The requests of one burst, by the number that each has in the burst.
type Datagrams<'b> = ArrayVec<Datagram<'b>, BURST_CONNECTIONS_MAX>;

/// Where a burst came in: the number of the source, and its device.
type At<'d> = (usize, &'d mut dyn PacketDevice);

/// What a worker serves memcached's UDP protocol with.
pub(crate) struct Memcached {
    burst: Burst,
}

impl Memcached {
    pub fn new() -> Memcached {
        Memcached {
            burst: Burst::new(),
        }
    }

    /// Answers what was received at a device.
    pub fn answer(
        &mut self,
        batch: &RxBatch,
        (source, device): At<'_>,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
    ) {
        let mut datagrams = Datagrams::new();
        for index in 0..batch.count() {
            let peer = batch.peer(index);
            for bytes in batch.segments(index) {
                let Some((id, _)) = frame::request(bytes) else {
                    core.tally.datagrams_dropped += 1;
                    continue;
                };
                datagrams.push(Datagram { peer, bytes, id });
                if datagrams.is_full() {
                    self.run(&datagrams, (source, &mut *device), core, streams, port);
                    datagrams.clear();
                }
            }
        }
        if !datagrams.is_empty() {
            self.run(&datagrams, (source, device), core, streams, port);
        }
    }

    /// Executes a burst, and sends its replies.
    fn run(
        &mut self,
        datagrams: &Datagrams<'_>,
        (source, device): At<'_>,
        core: &mut Core,
        streams: &mut Streams,
        port: &mut Port,
    ) {
        let burst = &mut self.burst;
        let config = &core.shared.config;
        let parser = Parser::accepting(config.accepts, config.limits);
        for number in 0..datagrams.len() {
            let copy_max = core.plan.copy_max();
            let member = Member::datagram(number as u8, HEADER_BYTES, parser, copy_max);
            burst.members.push(member);
            burst.outs.push(core.memory.pool.take());
        }
        let input_of = |input| match input {
            Input::Datagram(number) => datagrams[usize::from(number)].bytes,
            Input::Connection(_) => &[],
        };
        // A datagram holds 64 KiB at most, so that its requests need not take turns with others.
        burst.run_batches(input_of, core, port);
        while burst.revive_spent() {
            burst.run_batches(input_of, core, port);
        }
        for (number, datagram) in datagrams.iter().enumerate() {
            match burst.members[number].stop {
                Stop::Forward => promote(burst, number, (datagram, source), core, streams),
                Stop::Full => refuse(&mut burst.outs[number]),
                _ => {}
            }
        }
        let mut replies = TxBatch::new(device);
        for (datagram, out) in datagrams.iter().zip(&burst.outs) {
            for (header, payload) in frame::reply(datagram.id, bounded(out)) {
                replies.push(Message::framed(datagram.peer, header, payload));
            }
        }
        count_sent(replies.finish(), core);
        burst.members.clear();
        for out in burst.outs.drain(..) {
            core.memory.pool.give(out);
        }
    }
}

/// Sends the reply to a datagram that was a connection.
pub(super) fn send_answer(answer: &Answer, device: &mut dyn PacketDevice, core: &mut Core) {
    let mut replies = TxBatch::new(device);
    for (header, payload) in frame::reply(answer.id, bounded(&answer.reply)) {
        replies.push(Message::framed(answer.peer, header, payload));
    }
    count_sent(replies.finish(), core);
}

/// Replies that there is no room for the reply.
#[cold]
fn refuse(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(TOO_LARGE);
}

/// Makes a connection of a datagram whose next request has to be forwarded.
#[cold]
fn promote(
    burst: &mut Burst,
    number: usize,
    (datagram, source): (&Datagram<'_>, usize),
    core: &mut Core,
    streams: &mut Streams,
) {
    let member = &burst.members[number];
    let rest = &datagram.bytes[member.at..];
    let made = &mut burst.outs[number];
    if core.memory.room() < rest.len() + made.len() {
        return refuse(made);
    }
    // The burst's buffer is far larger than most replies, and a flood of datagrams would keep
    // one for each.
    let answer = Answer {
        source,
        peer: datagram.peer,
        id: datagram.id,
        reply: made.to_vec(),
    };
    let link = Link::Datagram(Box::new(answer));
    let mut connection = Connection::new(link, member.parser, core.now.ms);
    connection.rx = rest.to_vec();
    connection.ended = true;
    connection.hand_to = member.hand_to;
    connection.sum = member.sum;
    made.clear();
    streams.adopt(connection, core);
}
