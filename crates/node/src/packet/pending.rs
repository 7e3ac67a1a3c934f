//! Datagrams of memcached's UDP protocol that wait for other workers, which execute requests of
//! theirs.

use std::collections::{BTreeMap, VecDeque};
use std::iter;
use std::net::SocketAddr;

use glimmer_base::limits::{
    BATCH_MAX, BURST_CONNECTIONS_MAX, FORWARD_BATCHES_PER_PEER, PENDING_DATAGRAMS_MAX,
    REPLY_DATAGRAMS_MAX,
};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::udp::PAYLOAD_BYTES;

use crate::budget::pool::{Budget, Charge};
use crate::forward::batch::Asker;
use crate::stream::member::{Member, Stop};
use crate::stream::send_queue::Tail;

/// Datagrams that try again together: half of the credit for one worker is left to connections.
const RESUMED_MAX: usize = FORWARD_BATCHES_PER_PEER * BATCH_MAX / 2;

/// Where the reply to a datagram goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyTo {
    /// The number of the packet device at which the datagram came in.
    pub source: usize,
    pub peer: SocketAddr,
    /// The request's id.
    pub id: u16,
}

/// A datagram that waits for replies from other workers, or for credit.
pub(super) struct Pending {
    pub to: ReplyTo,
    /// Its requests that have not been parsed.
    pub rest: Vec<u8>,
    /// Its place in the next burst, with the reorder buffer of the replies that it waits for.
    pub member: Member,
    /// Its replies so far, in order.
    pub reply: Vec<u8>,
    /// Bytes of memory that the budget has counted.
    counted: Charge,
}

impl Pending {
    pub fn new(to: ReplyTo, rest: Vec<u8>, member: Member, reply: Vec<u8>) -> Pending {
        Pending {
            to,
            rest,
            member,
            reply,
            counted: Charge::default(),
        }
    }

    /// Whether it has everything that it waited for, or none of it matters any more.
    fn is_ready(&self) -> bool {
        let reorder = self.member.reorder.as_deref();
        is_too_large(&self.reply) || reorder.is_none_or(|reorder| reorder.is_complete())
    }

    fn recharge(&mut self, bytes: usize, budget: &mut Budget) {
        let charge = Charge { bytes, buffers: 0 };
        budget.recharge_held(self.counted, charge);
        self.counted = charge;
    }

    fn bytes(&self) -> usize {
        let reorder = self.member.reorder.as_deref();
        let reorder = reorder.map_or(0, |reorder| reorder.capacity());
        self.rest.capacity() + self.reply.capacity() + reorder
    }
}

/// Whether a reply takes more datagrams than it may.
pub(super) fn is_too_large(reply: &[u8]) -> bool {
    reply.len() > REPLY_DATAGRAMS_MAX * PAYLOAD_BYTES
}

/// The pending datagrams of a worker, at most [`PENDING_DATAGRAMS_MAX`].
#[derive(Default)]
pub(super) struct PendingTable {
    /// By the number that the worker gave the datagram.
    datagrams: BTreeMap<u64, Pending>,
    /// Those that may go on.
    ready: VecDeque<u64>,
    /// Those that wait for credit for requests to other workers.
    out_of_credit: VecDeque<u64>,
}

impl PendingTable {
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Whether there is no room for every datagram of another burst.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.datagrams.len() + BURST_CONNECTIONS_MAX > PENDING_DATAGRAMS_MAX
    }

    /// Whether a datagram may go on.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Adds a datagram. It waits for its reorder buffer if it has one, and else for credit if it
    /// lacks that.
    pub fn insert(&mut self, number: u64, mut pending: Pending, budget: &mut Budget) {
        if pending.is_ready() {
            match pending.member.stop {
                Stop::OutOfCredit => self.out_of_credit.push_back(number),
                _ => self.ready.push_back(number),
            }
        }
        pending.recharge(pending.bytes(), budget);
        self.datagrams.insert(number, pending);
    }

    /// Takes the next datagram that may go on.
    pub fn next_ready(&mut self, budget: &mut Budget) -> Option<Pending> {
        while let Some(number) = self.ready.pop_front() {
            if let Some(mut pending) = self.datagrams.remove(&number) {
                pending.recharge(0, budget);
                return Some(pending);
            }
        }
        None
    }

    /// A reply of this slot came home.
    pub fn join(&mut self, number: u64, slot: u16, reply: &[u8], budget: &mut Budget) {
        let Some(pending) = self.datagrams.get_mut(&number) else {
            return;
        };
        if let Some(reorder) = &mut pending.member.reorder {
            // Nothing is lent to a datagram.
            let mut tail = Tail {
                bytes: &mut pending.reply,
                lent: &mut Vec::new(),
            };
            reorder.fill(slot, reply, &mut iter::empty(), &mut tail);
            pending.recharge(pending.bytes(), budget);
            if pending.is_ready() {
                self.ready.push_back(number);
            }
        }
    }

    /// A part of a command that is answered with one sum had this outcome elsewhere.
    pub fn add_part(&mut self, number: u64, kind: OutcomeKind) {
        if let Some(pending) = self.datagrams.get_mut(&number) {
            pending.member.session.sum.add(kind);
        }
    }

    /// Whether the reply of this slot is the next one that its datagram waits for, or no datagram
    /// waits for it.
    pub fn awaits(&self, number: u64, slot: u16) -> bool {
        let pending = self.datagrams.get(&number);
        let reorder = pending.and_then(|pending| pending.member.reorder.as_deref());
        reorder.is_none_or(|reorder| reorder.next() == Some(slot))
    }

    /// Whether datagrams wait for credit, and none may go on.
    #[inline]
    pub fn awaits_only_credit(&self) -> bool {
        !self.out_of_credit.is_empty() && self.ready.is_empty()
    }

    /// There may be credit for requests to other workers: lets the datagrams try again that have
    /// waited for longest.
    pub fn resume_out_of_credit(&mut self) {
        let count = self.out_of_credit.len().min(RESUMED_MAX);
        self.ready.extend(self.out_of_credit.drain(..count));
    }
}

/// The number of a datagram that waits.
pub(super) fn number_of(member: &Member) -> u64 {
    match member.asker {
        Asker::Datagram(number) => number,
        Asker::Connection(_) => unreachable!("connections have bursts of their own"),
    }
}
