//! What each step of a request costs.

use glimmer_dispatch::PACKET_BYTES;

/// CPU time of each step, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Receiving one request of a batch.
    pub receive_ns: f64,
    /// Looking up the item, and everything else that does not depend on its size.
    pub execute_ns: f64,
    /// Copying one packet of the value, and sending or receiving it.
    pub packet_ns: f64,
    /// Reading a batch from an RX queue, whatever its length.
    pub poll_ns: f64,
    /// Putting a request into a software queue from where other cores take it.
    pub enqueue_ns: f64,
    /// Taking a request from a software queue.
    pub dequeue_ns: f64,
    /// What taking a request from another core costs in addition.
    pub steal_ns: f64,
    /// Counting the size of a request, and its share of merging the histograms.
    pub profile_ns: f64,
    /// Guarding a write where any core may write.
    pub lock_ns: f64,
}

impl Costs {
    /// A request costs `unit_ns` for each packet of its value, and nothing else costs anything.
    pub fn only_packets(unit_ns: f64) -> Costs {
        Costs {
            packet_ns: unit_ns,
            ..Costs::default()
        }
    }

    /// CPU time of a request that executes where it arrives, in nanoseconds.
    pub fn service_ns(&self, bytes: u32) -> f64 {
        self.receive_ns + self.execute_ns + self.packet_ns * f64::from(packets(bytes))
    }
}

/// The link of the server, which has both directions at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Time of a byte on the link, in nanoseconds.
    pub byte_ns: f64,
    /// Bytes of a packet besides those of the value: headers, key, and gaps between frames.
    pub overhead_bytes: u32,
    /// Machines that send requests. Their packets take turns.
    pub clients: usize,
}

impl Wire {
    /// The time that a reply with this many bytes of a value takes, in nanoseconds.
    pub fn reply_ns(&self, bytes: u32) -> f64 {
        let all = f64::from(bytes) + f64::from(packets(bytes)) * f64::from(self.overhead_bytes);
        all * self.byte_ns
    }
}

/// Packets that a value of this many bytes takes. There is one at least.
pub fn packets(bytes: u32) -> u32 {
    bytes.div_ceil(PACKET_BYTES).max(1)
}
