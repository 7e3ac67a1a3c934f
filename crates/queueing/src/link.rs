//! A direction of the shared link: the packets of all its queues take turns on it.

use crate::{costs::Wire, request::Request};
use glimmer_dispatch::PACKET_BYTES;
use std::collections::VecDeque;

/// A message, of which some packets are still to be sent, and the request that it completes. The
/// slices of a reply are messages of their own, and the last one completes it.
#[derive(Clone, Copy, Debug)]
struct Message {
    completes: Option<Request>,
    bytes_left: u32,
    packets_left: u32,
}

/// One queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    packets: u32,
}

/// A packet has been sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The queue of the packet.
    pub queue: usize,
    /// The request whose message it completed.
    pub completed: Option<Request>,
}

/// One direction of the link.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    queues: Vec<Queue>,
    /// The queue of the packet that is being sent.
    sending: Option<usize>,
    /// Time during which the link was busy, in nanoseconds.
    pub busy_ns: f64,
    /// When the link is free, in nanoseconds; infinite if it is idle.
    pub free_ns: f64,
}

impl Link {
    /// A link with this many queues.
    pub fn new(wire: Wire, queues: usize) -> Link {
        Link {
            wire,
            queues: vec![Queue::default(); queues],
            sending: None,
            busy_ns: 0.0,
            free_ns: f64::INFINITY,
        }
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Packets that wait in a queue, with the one that is being sent.
    pub fn packets(&self, queue: usize) -> u32 {
        self.queues[queue].packets
    }

    /// Puts a message with these bytes of a value, in this many packets, into a queue.
    pub fn send(
        &mut self,
        now_ns: f64,
        to: usize,
        completes: Option<Request>,
        bytes: u32,
        packets: u32,
    ) {
        let queue = &mut self.queues[to];
        queue.packets += packets;
        queue.messages.push_back(Message {
            completes,
            bytes_left: bytes,
            packets_left: packets,
        });
        if self.sending.is_none() {
            self.begin(now_ns, to);
        }
    }

    /// The packet has been sent, and the next one begins.
    pub fn on_free(&mut self, now_ns: f64) -> Sent {
        let queue = self.sending.take().expect("a packet was being sent");
        let of = &mut self.queues[queue];
        of.packets -= 1;
        let first = of.messages.front_mut().expect("the packet's message");
        first.packets_left -= 1;
        first.bytes_left -= first.bytes_left.min(PACKET_BYTES);
        let mut completed = None;
        if first.packets_left == 0 {
            completed = first.completes;
            of.messages.pop_front();
        }
        self.free_ns = f64::INFINITY;
        let queues = self.queues.len();
        let mut turns = (1..=queues).map(|place| (queue + place) % queues);
        if let Some(next) = turns.find(|&next| self.queues[next].packets > 0) {
            self.begin(now_ns, next);
        }
        Sent { queue, completed }
    }

    fn begin(&mut self, now_ns: f64, queue: usize) {
        let first = self.queues[queue].messages.front().expect("a packet");
        let bytes = first.bytes_left.min(PACKET_BYTES) + self.wire.overhead_bytes;
        let time_ns = f64::from(bytes) * self.wire.byte_ns;
        self.busy_ns += time_ns;
        self.free_ns = now_ns + time_ns;
        self.sending = Some(queue);
    }
}
