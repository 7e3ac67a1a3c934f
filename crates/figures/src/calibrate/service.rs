//! CPU time of requests, measured at a running server.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::{
    load::{Latency, Outcome, Pace, Plan},
    workload::{self, Law, Workload},
};

use crate::{
    Run,
    calibration::{Requests, Sample, Together, Transport},
    systems::{Items, Running, System},
    workload::Mix,
};

/// Sizes of values in bytes, up to the largest of the paper's workload. The first three fit one
/// packet of every transport, with all headers.
const SIZES: [u32; 7] = [8, 400, 1200, 14_000, 70_000, 250_000, 500_000];
/// The place of the value of a small GET among [`SIZES`].
const SMALL: usize = 1;
/// Keys of the shortest values are one byte longer than those of other items of the server, and
/// those of each longer size have one byte more, so all of them differ.
const KEY_BYTES: usize = 9;
/// Requests in flight for which a small GET is measured. With fewer, a worker sleeps between them,
/// and falling asleep and waking up costs CPU time that is no part of a request.
const TOGETHER: [u32; 4] = [8, 16, 32, 64];
/// Bytes of all values of one size: more than a core's private caches hold.
const VALUES_BYTES: u64 = 64 << 20;
const KEYS_MAX: u64 = 100_000;
/// Bytes of values in flight where they may be lost, except that one value always is: what the
/// kernel's usual buffer of a socket holds. If more are, datagrams are lost, and a request that
/// lost one costs the server time without being counted.
const LOSSY_BYTES_MAX: u32 = 256 << 10;
/// The server's memory.
const MEMORY_MIB: usize = 2048;

/// A server with one worker, and what is stored in it.
pub struct Bench {
    transport: Transport,
    server: Running,
    /// Items with values of each of the sizes.
    sized: Vec<Items>,
}

impl fmt::Display for Bench {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "costs over {}", self.transport.name())
    }
}

/// What is in flight.
#[derive(Clone, Copy)]
struct InFlight {
    connections: u32,
    each: u32,
}

impl InFlight {
    /// This many requests.
    fn of(transport: Transport, requests: u32) -> InFlight {
        let connections = match transport.pipeline() {
            1 => requests,
            _ => transport.connections().min(requests),
        };
        InFlight {
            connections,
            each: requests / connections,
        }
    }

    /// As many as usual of values of this size.
    fn of_size(transport: Transport, value_bytes: u32) -> InFlight {
        let all = transport.in_flight();
        let requests = match transport.is_lossy() {
            true => (LOSSY_BYTES_MAX / value_bytes).clamp(1, all),
            false => all,
        };
        InFlight::of(transport, requests)
    }
}

impl Bench {
    /// Starts the server, which has the items of another workload as well.
    ///
    /// # Errors
    ///
    /// It does not start, or this machine cannot have the transport.
    pub fn start(run: &Run<'_>, transport: Transport, beside: Option<&Workload>) -> Result<Bench> {
        let system = match transport.past_kernel() {
            Some(kind) => {
                let between = run.transport(kind)?;
                System::native("crcw").over(transport.name(), between)
            }
            None if transport == Transport::Native => System::native("crcw"),
            None => System::glimmer("crcw"),
        };
        let bytes = run.pick(VALUES_BYTES, 4 << 20);
        let sizes = SIZES.into_iter().enumerate();
        let sized = sizes.map(|(place, value_bytes)| Items {
            keys: (bytes / u64::from(value_bytes)).clamp(2, run.pick(KEYS_MAX, 2000)),
            key_bytes: KEY_BYTES + place,
            value_bytes,
        });
        let sized: Vec<Items> = sized.collect();
        let writing = |items: &Items| items.workload(Law::Uniform, workload::Mix::reads(0.0));
        let mut workloads = (beside.cloned().into_iter()).chain(sized.iter().map(writing));
        let first = workloads.next().expect("there are sizes");
        let server = system.start_with(run, &first, MEMORY_MIB)?;
        workloads.try_for_each(|workload| server.store(run, &workload))?;
        Ok(Bench {
            transport,
            server,
            sized,
        })
    }

    /// The server.
    pub fn server(&self) -> &Running {
        &self.server
    }

    /// Measures every size, and small GETs by how many are in flight, once.
    pub fn measure(&self, run: &Run<'_>, seed: u64) -> Result<Requests> {
        let transport = self.transport;
        let sized = |items: &Items, gets_percent: u32| {
            let in_flight = InFlight::of_size(transport, items.value_bytes);
            let found = self.drive(run, seed, *items, gets_percent, in_flight)?;
            Ok(Sample {
                bytes: items.value_bytes,
                nanoseconds: vec![found.server_ns_per_operation()],
            })
        };
        let get = self.sized.iter().map(|items| sized(items, 100));
        let put = self.sized.iter().map(|items| sized(items, 0));
        let (get, put) = (get.collect::<Result<_>>()?, put.collect::<Result<_>>()?);
        let small = |requests| {
            let in_flight = InFlight::of(transport, requests);
            self.drive(run, seed, self.sized[SMALL], 100, in_flight)
        };
        let together = TOGETHER.into_iter().map(|requests| {
            Ok(Together {
                requests,
                nanoseconds: vec![small(requests)?.server_ns_per_operation()],
            })
        });
        let together = together.collect::<Result<_>>()?;
        let alone = self.sized.iter().map(|items| {
            let found = self.drive(run, seed, *items, 100, InFlight::of(transport, 1))?;
            Ok(Sample {
                bytes: items.value_bytes,
                nanoseconds: vec![Latency::of(&found.latency_ns()).p50_us * 1e3],
            })
        });
        Ok(Requests {
            transport,
            get,
            put,
            together,
            alone: alone.collect::<Result<_>>()?,
        })
    }

    fn drive(
        &self,
        run: &Run<'_>,
        seed: u64,
        items: Items,
        gets_percent: u32,
        in_flight: InFlight,
    ) -> Result<Outcome> {
        let pace = Pace::Closed {
            in_flight: in_flight.each,
        };
        let plan = Plan {
            seed,
            connections: in_flight.connections as usize,
            kernel_timestamps: self.transport.past_kernel().is_none(),
            ..Mix::new(false, gets_percent).plan(run, items, 1, pace, 250)
        };
        self.server.measure_by_busy_time(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_in_flight_than_a_socket_holds() {
        for transport in Transport::ALL {
            for value_bytes in SIZES {
                let InFlight { connections, each } = InFlight::of_size(transport, value_bytes);
                let requests = connections * each;
                let fits = requests * value_bytes <= LOSSY_BYTES_MAX || requests == 1;
                assert!(
                    fits || !transport.is_lossy(),
                    "{transport:?}, {value_bytes}"
                );
                let few = value_bytes * transport.in_flight() <= LOSSY_BYTES_MAX;
                let all = requests == transport.in_flight();
                assert!(
                    all || !few && transport.is_lossy(),
                    "{transport:?}, {value_bytes}"
                );
            }
        }
    }
}
