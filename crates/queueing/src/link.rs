//! The shared link: the packets of all TX queues take turns on it.

use crate::{
    costs::{Wire, packets},
    request::Request,
};
use glimmer_dispatch::PACKET_BYTES;
use std::collections::VecDeque;

/// Packets that wait in one TX queue at most. A reply that does not fit is lost.
const TX_PACKETS_MAX: u32 = 4096;

/// A reply, of which some packets are still to be sent.
#[derive(Clone, Copy, Debug)]
struct Reply {
    request: Request,
    bytes_left: u32,
    packets_left: u32,
}

/// One TX queue.
#[derive(Clone, Debug, Default)]
struct Tx {
    replies: VecDeque<Reply>,
    packets: u32,
}

/// The link of the server.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    queues: Vec<Tx>,
    /// The TX queue of the packet that is being sent.
    sending: Option<usize>,
    /// Time during which the link was busy, in nanoseconds.
    pub busy_ns: f64,
    /// When the link is free, in nanoseconds; infinite if it is idle.
    pub free_ns: f64,
}

impl Link {
    /// A link with a TX queue for each core.
    pub fn new(wire: Wire, cores: usize) -> Link {
        Link {
            wire,
            queues: vec![Tx::default(); cores],
            sending: None,
            busy_ns: 0.0,
            free_ns: f64::INFINITY,
        }
    }

    /// Puts a reply into the TX queue of a core. Returns whether it fits.
    pub fn send(&mut self, now_ns: f64, core: usize, request: Request) -> bool {
        let bytes = if request.is_read { request.bytes } else { 0 };
        let packets = packets(bytes);
        let tx = &mut self.queues[core];
        if tx.packets + packets > TX_PACKETS_MAX {
            return false;
        }
        tx.packets += packets;
        tx.replies.push_back(Reply {
            request,
            bytes_left: bytes,
            packets_left: packets,
        });
        if self.sending.is_none() {
            self.begin(now_ns, core);
        }
        true
    }

    /// The packet has been sent, and the next one begins. Returns the request whose reply was
    /// completed.
    pub fn on_free(&mut self, now_ns: f64) -> Option<Request> {
        let core = self.sending.take().expect("a packet was being sent");
        let tx = &mut self.queues[core];
        tx.packets -= 1;
        let first = tx.replies.front_mut().expect("the packet's reply");
        first.packets_left -= 1;
        first.bytes_left -= first.bytes_left.min(PACKET_BYTES);
        let completed = (first.packets_left == 0).then_some(first.request);
        if completed.is_some() {
            tx.replies.pop_front();
        }
        self.free_ns = f64::INFINITY;
        let cores = self.queues.len();
        let mut turns = (1..=cores).map(|place| (core + place) % cores);
        if let Some(next) = turns.find(|&core| self.queues[core].packets > 0) {
            self.begin(now_ns, next);
        }
        completed
    }

    fn begin(&mut self, now_ns: f64, core: usize) {
        let first = self.queues[core].replies.front().expect("a packet");
        let bytes = first.bytes_left.min(PACKET_BYTES) + self.wire.overhead_bytes;
        let time_ns = f64::from(bytes) * self.wire.byte_ns;
        self.busy_ns += time_ns;
        self.free_ns = now_ns + time_ns;
        self.sending = Some(core);
    }
}
