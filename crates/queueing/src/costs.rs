//! What each step of a request costs.

use glimmer_dispatch::PACKET_BYTES;

/// CPU time of each step, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Receiving one request of a batch.
    pub receive_ns: f64,
    /// Executing a request that reads.
    pub get: Service,
    /// Executing a request that writes, with its lock.
    pub put: Service,
    /// Reading a batch from an RX queue, whatever its length.
    pub poll_ns: f64,
    /// Putting a request into the software queue of a core.
    pub enqueue_ns: f64,
    /// Taking a request from a software queue.
    pub dequeue_ns: f64,
    /// What that costs in addition where any core may take, or from the RX queue of another core.
    pub steal_ns: f64,
    /// Counting the size of a request, and its share of merging the histograms.
    pub profile_ns: f64,
}

/// CPU time of executing a request, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    /// Looking up the item, and everything else that does not depend on its size.
    pub execute_ns: f64,
    /// Copying one packet of the value, and sending or receiving it.
    pub packet_ns: f64,
}

impl Service {
    /// The time of the packets of a value of this many bytes.
    pub fn packets_ns(&self, bytes: u32) -> f64 {
        self.packet_ns * f64::from(packets(bytes))
    }
}

impl Costs {
    /// A request costs `unit_ns` for each packet of its value, and nothing else costs anything.
    pub fn only_packets(unit_ns: f64) -> Costs {
        let service = Service {
            execute_ns: 0.0,
            packet_ns: unit_ns,
        };
        Costs {
            get: service,
            put: service,
            ..Costs::default()
        }
    }

    /// The time of executing a request of this kind.
    pub fn service(&self, is_read: bool) -> Service {
        match is_read {
            true => self.get,
            false => self.put,
        }
    }
}

/// The link of the server, which has both directions at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Time of a byte on the link, in nanoseconds.
    pub byte_ns: f64,
    /// Bytes of a packet besides those of the value: headers, key, and gaps between frames.
    pub overhead_bytes: u32,
    /// Threads that send requests. Their packets take turns.
    pub clients: usize,
}

impl Wire {
    /// The time that a message with this many bytes of a value takes, in nanoseconds.
    pub fn message_ns(&self, bytes: u32) -> f64 {
        let all = f64::from(bytes) + f64::from(packets(bytes)) * f64::from(self.overhead_bytes);
        all * self.byte_ns
    }
}

/// Packets that a value of this many bytes takes. There is one at least.
pub fn packets(bytes: u32) -> u32 {
    bytes.div_ceil(PACKET_BYTES).max(1)
}
