//! Requests over memcached's UDP protocol: the datagrams that one call to a device brings are
//! parsed where they lie and go through the engine as one burst, and their replies leave together.
//! A datagram whose requests other workers execute is pending (`pending.rs`) until it has their
//! replies.

use std::{iter, mem};

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BURST_CONNECTIONS_MAX, DATAGRAM_REQUESTS_PER_TURN_MAX, PENDING_PER_TURN_MAX, REPLY_BYTES_HIGH,
    REPLY_DATAGRAMS_MAX,
};
use glimmer_proto::Parser;
use glimmer_proto::udp::{self as frame, HEADER_BYTES};
use glimmer_transport::packet::{Message, PacketDevice, PacketSender, RxBatch, TxBatch};

use super::accelerated::Accelerated;
use super::pending::{Pending, PendingTable, ReplyTo, is_too_large, number_of};
use super::source::{PacketSource, count_sent};
use crate::core::Core;
use crate::forward::batch::Asker;
use crate::forward::port::Port;
use crate::hot::Tender;
use crate::stream::burst::Burst;
use crate::stream::member::{Member, Stop};
use crate::stream::send_queue::Tail;

const _: () = assert!(REPLY_DATAGRAMS_MAX <= u16::MAX as usize);

/// Instead of a reply of more than [`REPLY_DATAGRAMS_MAX`] datagrams, or one that there is no
/// memory for.
const TOO_LARGE: &[u8] = b"SERVER_ERROR reply too large for UDP\r\n";

/// A datagram whose requests are being executed.
#[derive(Clone, Copy)]
struct Datagram<'b> {
    to: ReplyTo,
    bytes: &'b [u8],
}

/// The datagrams of one burst.
type Datagrams<'b> = ArrayVec<Datagram<'b>, BURST_CONNECTIONS_MAX>;

/// What a worker serves memcached's UDP protocol with.
pub(crate) struct Memcached {
    burst: Burst,
    /// The number of the next datagram.
    next_number: u64,
    pub(super) pending: PendingTable,
    /// Complete replies of datagrams that were pending.
    finished: Vec<(ReplyTo, Vec<u8>)>,
    accelerated: Option<Accelerated>,
}

impl Memcached {
    pub fn new(accelerated: Option<Accelerated>) -> Memcached {
        Memcached {
            burst: Burst::new(),
            next_number: 0,
            pending: PendingTable::default(),
            finished: Vec::new(),
            accelerated,
        }
    }

    /// Answers what was received at a device, which has this number among the worker's sources.
    pub fn answer(
        &mut self,
        batch: &RxBatch,
        (source, device): (usize, &mut dyn PacketDevice),
        core: &mut Core,
        port: &mut Port,
    ) {
        let mut datagrams = Datagrams::new();
        for index in 0..batch.count() {
            let peer = batch.peer(index);
            for bytes in batch.segments(index) {
                let Some((id, request)) = frame::request(bytes) else {
                    core.tally.datagrams_dropped += 1;
                    continue;
                };
                let to = ReplyTo { source, peer, id };
                if self.accelerated.is_some() && self.is_accelerated(to, request, device, core) {
                    continue;
                }
                if self.pending.is_full() {
                    core.tally.datagrams_dropped += 1;
                    continue;
                }
                datagrams.push(Datagram { to, bytes });
                if datagrams.is_full() {
                    self.run(&datagrams, device, core, port);
                    datagrams.clear();
                }
            }
        }
        if !datagrams.is_empty() {
            self.run(&datagrams, device, core, port);
        }
        if self.accelerated.is_some() {
            self.end_accelerated(device, core);
        }
    }

    /// Answers a datagram from the accelerator's slots, if they have what it asks for. The reply
    /// leaves with others.
    fn is_accelerated(
        &mut self,
        to: ReplyTo,
        request: &[u8],
        device: &mut dyn PacketDevice,
        core: &mut Core,
    ) -> bool {
        let config = &core.shared.config;
        let Some(accelerated) = self.accelerated.as_mut().filter(|_| !config.locked) else {
            return false;
        };
        let protocol = (config.accepts, &core.hasher);
        let is_answered = accelerated.answer(to, request, protocol, core.now);
        if accelerated.reply_bytes() >= REPLY_BYTES_HIGH {
            send_accelerated(accelerated, device, core);
        }
        is_answered
    }

    /// Sends the replies that the accelerator has, and brings in keys that it wants.
    fn end_accelerated(&mut self, device: &mut dyn PacketDevice, core: &mut Core) {
        let Some(accelerated) = &mut self.accelerated else {
            return;
        };
        if accelerated.count() > 0 {
            send_accelerated(accelerated, device, core);
        }
        if accelerated.has_samples()
            && let Some(tender) = &mut core.tender
        {
            let Tender {
                accelerator,
                offers,
                ..
            } = &mut **tender;
            accelerator.sampled(accelerated.samples(), core.now, offers);
            accelerated.clear_samples();
            tender.bring_in(core.now, &mut *core.engine, &core.shared);
        }
    }

    /// Executes a burst, and sends the replies that are complete.
    fn run(
        &mut self,
        datagrams: &Datagrams<'_>,
        device: &mut dyn PacketDevice,
        core: &mut Core,
        port: &mut Port,
    ) {
        let config = &core.shared.config;
        let (first, size_max) = (self.next_number, core.plan.size_max());
        self.next_number += datagrams.len() as u64;
        for number in first..self.next_number {
            let bytes = datagrams[(number - first) as usize].bytes;
            let begin = bytes.get(HEADER_BYTES).copied().unwrap_or_default();
            let parser = Parser::of_datagram(config.accepts, config.limits, begin);
            let member = Member::datagram(number, HEADER_BYTES, parser, size_max);
            self.burst.members.push(member);
            self.burst.outs.push(core.memory.pool.take());
        }
        let bytes_of = |number| datagrams[(number - first) as usize].bytes;
        execute(&mut self.burst, bytes_of, core, port);
        for (index, datagram) in datagrams.iter().enumerate() {
            if is_open(&self.burst.members[index]) {
                self.park(index, (datagram.to, datagram.bytes), Vec::new(), core);
            }
        }
        let mut replies = TxBatch::new(device);
        for (datagram, out) in datagrams.iter().zip(&self.burst.outs) {
            push_reply(&datagram.to, out, &mut replies);
        }
        count_sent(replies.finish(), core);
        core.end_burst();
        self.end_burst(core);
    }

    fn end_burst(&mut self, core: &mut Core) {
        self.burst.members.clear();
        for out in self.burst.outs.drain(..) {
            core.memory.pool.give(out);
        }
    }

    /// Has a member's datagram wait for what it lacks, with the `reply` that it has so far and what
    /// was made in this burst; or leaves an error line in its buffer.
    #[cold]
    fn park(
        &mut self,
        index: usize,
        (to, bytes): (ReplyTo, &[u8]),
        mut reply: Vec<u8>,
        core: &mut Core,
    ) {
        let (member, made) = (&mut self.burst.members[index], &mut self.burst.outs[index]);
        let unused = Member::datagram(0, 0, member.session.parser, 0);
        let mut member = mem::replace(member, unused);
        let rest = match member.stop {
            Stop::Reorder | Stop::OutOfCredit | Stop::Full => bytes[member.at..].to_vec(),
            _ => Vec::new(),
        };
        let is_refused = member.stop == Stop::Full && made.is_empty();
        if is_refused || core.memory.room() < rest.len() + made.len() {
            // Replies that come home find no datagram that waits for them.
            made.clear();
            made.extend_from_slice(TOO_LARGE);
            return;
        }
        // What was made is copied: the burst's buffer is far larger than most replies, and a flood
        // of datagrams would keep one for each.
        match member.reorder.take() {
            Some(mut reorder) if reorder.len() > 0 => {
                reorder.close_with(made.to_vec(), iter::empty());
                member.reorder = Some(reorder);
            }
            unused => {
                reply.extend_from_slice(made);
                unused.into_iter().for_each(|it| self.burst.recycle(it));
            }
        }
        self.burst.outs[index].clear();
        let number = number_of(&member);
        let pending = Pending::new(to, rest, member, reply);
        (self.pending).insert(number, pending, &mut core.memory.budget);
    }

    /// Goes on with pending datagrams that have what they waited for, as many as one turn may, and
    /// sends the replies that are complete.
    pub fn go_on(&mut self, sources: &mut [PacketSource], core: &mut Core, port: &mut Port) {
        let steps_before = core.steps();
        for _ in 0..PENDING_PER_TURN_MAX {
            if core.steps() - steps_before >= DATAGRAM_REQUESTS_PER_TURN_MAX {
                break;
            }
            let Some(pending) = self.pending.next_ready(&mut core.memory.budget) else {
                break;
            };
            let Pending {
                to,
                rest,
                mut member,
                mut reply,
                ..
            } = pending;
            if let Some(mut reorder) = member.reorder.take() {
                match reorder.is_complete() {
                    true => reorder.finish(&mut Tail {
                        bytes: &mut reply,
                        lent: &mut Vec::new(),
                    }),
                    false => reorder.take_local(),
                };
                self.burst.recycle(reorder);
            }
            if !rest.is_empty() && !is_too_large(&reply) {
                (member.at, member.stop) = (0, Stop::Live);
                (member.requests, member.surcharge) = (0, 0);
                self.burst.members.push(member);
                self.burst.outs.push(core.memory.pool.take());
                execute(&mut self.burst, |_| &rest[..], core, port);
                if is_open(&self.burst.members[0]) {
                    self.park(0, (to, &rest), mem::take(&mut reply), core);
                }
                reply.extend_from_slice(&self.burst.outs[0]);
                self.end_burst(core);
            }
            self.finished.push((to, reply));
        }
        self.finished.sort_by_key(|(to, _)| to.source);
        let is_one = |one: &(ReplyTo, _), other: &(ReplyTo, _)| one.0.source == other.0.source;
        for some in self.finished.chunk_by(is_one) {
            let source = &mut sources[some[0].0.source];
            let mut replies = TxBatch::new(&mut *source.device);
            some.iter()
                .for_each(|(to, reply)| push_reply(to, reply, &mut replies));
            count_sent(replies.finish(), core);
        }
        core.end_burst();
        self.finished.clear();
    }
}

/// Whether a member has to wait for something before its datagram is answered.
#[inline]
fn is_open(member: &Member) -> bool {
    let is_stopped = matches!(member.stop, Stop::Reorder | Stop::OutOfCredit | Stop::Full);
    is_stopped || member.reorder.is_some()
}

/// Executes what the members of a burst have.
fn execute<'b>(
    burst: &mut Burst,
    bytes_of: impl Fn(u64) -> &'b [u8],
    core: &mut Core,
    port: &mut Port,
) {
    let input_of = |asker| match asker {
        Asker::Datagram(number) => bytes_of(number),
        Asker::Connection(_) => &[],
    };
    // A datagram holds 64 KiB at most, so that its requests need not take turns with others.
    burst.run_batches(input_of, core, port);
    while burst.revive_spent() {
        burst.run_batches(input_of, core, port);
    }
}

/// Sends the replies of the accelerator.
fn send_accelerated(accelerated: &mut Accelerated, device: &mut dyn PacketDevice, core: &mut Core) {
    core.tally.requests += accelerated.count() as u64;
    let mut replies = TxBatch::new(device);
    for (to, reply) in accelerated.replies() {
        push_reply(to, reply, &mut replies);
    }
    count_sent(replies.finish(), core);
    accelerated.clear_replies();
}

/// Adds the datagrams of a reply, or of an error line if there are too many.
#[inline]
fn push_reply<'r, S: PacketSender + ?Sized>(
    to: &ReplyTo,
    reply: &'r [u8],
    replies: &mut TxBatch<'r, '_, S>,
) {
    let reply = match is_too_large(reply) {
        true => TOO_LARGE,
        false => reply,
    };
    for (header, payload) in frame::reply(to.id, reply) {
        replies.push(Message::framed(to.peer, header, payload));
    }
}
