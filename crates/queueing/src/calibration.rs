//! The costs of the paper's server.
//!
//! They are derived from what Minos (NSDI'19) states about its server of 8 cores at 2.4 GHz. The
//! figures do not use them: they take costs that `glimmer bench calibrate` has measured, and of
//! these here only the link.
//!
//! - At a GET:PUT ratio of 50:50 the link does not limit. Keyhash sharding then has 10% more
//!   throughput than size-aware sharding with its 6.3 Mops (§6.2): 1.14 µs of CPU time for a
//!   request of 1.22 packets on average. Profiling makes up the difference: 0.1 µs.
//! - One large core has to serve 1,390,000 packets per second at 6.2 Mops of the default workload
//!   (§6.1), so a packet costs at most 0.72 µs.
//! - The paper's hand-off cores limit the throughput at 10% less than keyhash sharding's (§6.1), so
//!   receiving and handing over a request takes 0.18 µs.
//! - The link has 40 Gb/s, and is 93% busy at 6.2 Mops (§6.4): 50 bytes per packet besides the
//!   value.
//!
//! The rest is estimated, and matters little: polling, taking from a queue, stealing, locks.

use crate::{Costs, Service, Wire};

/// CPU time of each step on the paper's server.
pub const COSTS: Costs = Costs {
    receive_ns: 100.0,
    get: Service {
        execute_ns: 180.0,
        packet_ns: 700.0,
    },
    put: Service {
        execute_ns: 210.0,
        packet_ns: 700.0,
    },
    poll_ns: 50.0,
    enqueue_ns: 80.0,
    dequeue_ns: 50.0,
    steal_ns: 30.0,
    profile_ns: 100.0,
};

/// The link of the paper's server.
pub const WIRE: Wire = Wire {
    byte_ns: 0.2,
    overhead_bytes: 50,
    // 7 machines with 8 threads (§5.3), each with a TX queue of its own.
    clients: 7 * 8,
};
