//! CPU time of requests, measured at a running server.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::{Latency, Outcome, Pace, Plan};

use crate::{
    Run,
    calibration::{Requests, Sample, Together, Transport},
    systems::{Items, Running, System},
    workload::Mix,
};

/// A server of ours with one worker, to be reached over a transport.
pub(crate) fn system(transport: Transport) -> System {
    match transport {
        Transport::Tcp | Transport::TcpBatches => System::glimmer("crcw"),
        Transport::Native => System::native("crcw"),
    }
}

/// Sizes of values in bytes, up to the largest of the paper's workload.
const SIZES: [u32; 8] = [8, 400, 1400, 4200, 14_000, 70_000, 250_000, 500_000];
/// Bytes of the value of a small GET: the second of [`SIZES`].
const SMALL: usize = 1;
/// Requests in flight for which a small GET is measured. With fewer, a worker sleeps between them,
/// and falling asleep and waking up costs CPU time that is no part of a request.
const TOGETHER: [u32; 4] = [8, 16, 32, 64];
/// Bytes of all values of one size: more than a core's private caches hold.
const VALUES_BYTES: u64 = 64 << 20;
const KEYS_MAX: u64 = 100_000;
/// Bytes of values in flight to or from native sockets, except that one value always is: what the
/// kernel's usual buffer of a socket holds. If more are, datagrams are lost, and a request that
/// lost one costs the server time without being counted.
const NATIVE_BYTES_MAX: u32 = 256 << 10;

/// Connections over which values of this size are asked for.
fn connections(transport: Transport, value_bytes: u32) -> u32 {
    let all = transport.connections();
    match transport {
        Transport::Tcp | Transport::TcpBatches => all,
        Transport::Native => (NATIVE_BYTES_MAX / value_bytes).clamp(1, all),
    }
}

/// Servers with one worker, one for each size of value and each verb.
pub struct Bench {
    transport: Transport,
    gets: Vec<Stored>,
    puts: Vec<Stored>,
}

/// A server, and what is stored in it.
struct Stored {
    server: Running,
    items: Items,
}

impl fmt::Display for Bench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "costs over {}", self.transport.name())
    }
}

impl Bench {
    /// Starts the servers.
    pub fn start(run: &Run<'_>, transport: Transport) -> Result<Bench> {
        let bytes = run.pick(VALUES_BYTES, 4 << 20);
        let start = |value_bytes: u32| {
            let items = Items {
                keys: (bytes / u64::from(value_bytes)).clamp(2, run.pick(KEYS_MAX, 2000)),
                key_bytes: 8,
                value_bytes,
            };
            let server = system(transport).start(run, items)?;
            Ok(Stored { server, items })
        };
        let all = || SIZES.into_iter().map(start).collect::<Result<Vec<_>>>();
        Ok(Bench {
            transport,
            gets: all()?,
            puts: all()?,
        })
    }

    /// Measures every size, and small GETs by how many are in flight, once.
    pub fn measure(&self, run: &Run<'_>, seed: u64) -> Result<Requests> {
        let transport = self.transport;
        let burst = transport.burst();
        let sized = |stored: &Stored, gets_percent: u32| {
            let connections = connections(transport, stored.items.value_bytes);
            let found = stored.measure(run, seed, gets_percent, connections, burst)?;
            Ok(Sample {
                bytes: stored.items.value_bytes,
                nanoseconds: vec![found.server_ns_per_operation()],
            })
        };
        let get = self.gets.iter().map(|stored| sized(stored, 100));
        let put = self.puts.iter().map(|stored| sized(stored, 0));
        let (get, put) = (get.collect::<Result<_>>()?, put.collect::<Result<_>>()?);
        let small = &self.gets[SMALL];
        let together = |requests: u32| {
            let (connections, in_flight) = match transport {
                Transport::TcpBatches => {
                    let connections = transport.connections();
                    (connections, requests / connections)
                }
                Transport::Tcp | Transport::Native => (requests, 1),
            };
            let found = small.measure(run, seed, 100, connections, in_flight)?;
            Ok(Together {
                requests,
                nanoseconds: vec![found.server_ns_per_operation()],
            })
        };
        let together = TOGETHER.into_iter().map(together);
        let together = together.collect::<Result<_>>()?;
        let alone = small.measure(run, seed, 100, 1, 1)?;
        Ok(Requests {
            transport,
            get,
            put,
            together,
            alone_ns: vec![Latency::of(&alone.latency_ns()).p50_us * 1e3],
        })
    }
}

impl Stored {
    fn measure(
        &self,
        run: &Run<'_>,
        seed: u64,
        gets_percent: u32,
        connections: u32,
        in_flight: u32,
    ) -> Result<Outcome> {
        let pace = Pace::Closed { in_flight };
        let plan = Plan {
            seed,
            connections: connections as usize,
            kernel_timestamps: true,
            ..Mix::new(false, gets_percent).plan(run, self.items, 1, pace, 250)
        };
        self.server.measure(plan)
    }
}
