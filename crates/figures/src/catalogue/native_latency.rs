//! MICA, Figure 13, over the native protocol: latency by throughput, over the kernel's sockets and
//! past the kernel.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use super::mica_transports::{Carrier, DPDK, XDP};
use crate::{
    Figure, Kind, Needs, Point, Run, Spec, latency_curve,
    systems::{self, Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
/// Uniform keys, 50% reads (MICA §5.3).
const MIX: Mix = Mix::new(false, 50);
const PEERS: [Server; 1] = [Server::Memcached];
/// The series over sockets.
const SERIES: &str = "glimmer erew, native";
/// Past the kernel, as the paper's system.
const BYPASSES: [Carrier; 2] = [XDP, DPDK];
/// Offered rates in thousands per second. Each system is offered those between these parts of its
/// maximum.
const RATES_K: [u32; 25] = [
    5, 10, 20, 30, 40, 50, 60, 70, 80, 100, 120, 150, 200, 400, 600, 800, 1000, 1500, 2000, 2500,
    3000, 3500, 4000, 5000, 6000,
];
const PART_MIN: f64 = 0.03;
const PART_MAX: f64 = 0.9;
const MEMORY_MIB: usize = 2048;
/// Sockets of the native client: few, so that requests that are due at the same time are sent
/// together.
const SOCKETS: usize = 4;
/// Requests in flight per socket when measuring the maximum.
const IN_FLIGHT: u32 = 512;
const LOST: &str = "lost, part";
/// A rate at which more of the requests than this part is lost has no point.
const LOST_MAX: f64 = 0.01;
const LATE: &str = "client late p99, µs";
const CLIENT_BUSY: &str = "client busy";

/// The figure.
pub struct NativeLatency;

/// One point.
struct Case<'a> {
    system: &'a Loaded,
    requests_per_s: f64,
}

/// A system and its load.
struct Loaded {
    server: Running,
    items: Items,
    /// Requests in flight on each connection when its maximum is measured, and connections, unless
    /// they are the usual ones.
    in_flight: u32,
    connections: Option<usize>,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousands = self.requests_per_s / 1e3;
        write!(out, "{} at {thousands:.0} k/s", self.system.server)
    }
}

impl Figure for NativeLatency {
    fn spec(&self) -> Spec {
        Spec {
            name: "native-latency",
            title: "Latency by throughput, tiny items, uniform, 50% GET, native protocol",
            source: "MICA (NSDI'14), Figure 13, §5.3",
            claim: "MICA's latency is between 24 and 52 µs. At a similar latency of 40 µs, MICA \
                    carries 69 Mops, more than two orders of magnitude more than Memcached, which \
                    uses the kernel's network stack.",
            here: "Requests arrive in an open loop with Poisson arrivals, and latency counts from \
                   the time at which a request was due. The client spins on one core, and the \
                   server has one worker on another. Our native client has 4 sockets or devices: \
                   sockets on loopback (`glimmer erew, native`), which send requests that are due \
                   at the same time as one segment batch, AF_XDP on a pair of virtual interfaces, \
                   and DPDK's ports over shared memory (`net_memif`), which are the paper's kind \
                   of stack without its network cards. memcached's client has 50 TCP connections. \
                   Each system is offered rates between 3% and 90% of its own maximum. A rate at \
                   which more than 1% of the requests are lost has no point. Points are medians; \
                   bars span the 5th to the 95th percentile.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 2048,
                peers: &PEERS,
            },
            columns: latency_curve::COLUMNS,
            plot: latency_curve::plot(SERIES),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let mut systems = vec![(System::native("erew"), IN_FLIGHT)];
        for carrier in &BYPASSES {
            let between = run.between(carrier.kind, carrier.name);
            let system = between.map(|it| System::native("erew").over(carrier.name, it));
            systems.extend(system.map(|system| (system, carrier.in_flight)));
        }
        let mut loaded = Vec::new();
        for (system, in_flight) in systems {
            loaded.push(Loaded {
                server: system.memory_mib(MEMORY_MIB).start(run, items)?,
                items,
                in_flight,
                connections: Some(SOCKETS),
            });
        }
        for system in systems::installed(PEERS.map(System::peer).into(), run) {
            loaded.push(Loaded {
                server: system.start(run, items)?,
                items,
                in_flight: 1,
                connections: None,
            });
        }
        let mut cases = Vec::new();
        for system in &loaded {
            run.say(format!("{}: its maximum", system.server));
            let in_flight = system.in_flight;
            let most = system.measure(run, Pace::Closed { in_flight }, 0)?;
            let most = most.operations_per_s();
            let range = most * PART_MIN..most * PART_MAX;
            let rates = RATES_K.iter().map(|&thousands| f64::from(thousands) * 1e3);
            let rates = rates.filter(|rate| range.contains(rate));
            let case = |requests_per_s| Case {
                system,
                requests_per_s,
            };
            cases.extend(rates.take(run.pick(usize::MAX, 2)).map(case));
        }
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, seed| {
            let point = measure_one(case, run, seed)?;
            Ok(point.into_iter().collect())
        })
    }
}

impl Loaded {
    fn measure(
        &self,
        run: &Run<'_>,
        pace: Pace,
        seed: u64,
    ) -> Result<glimmer_loadgen::load::Outcome> {
        let mut plan = Plan {
            seed,
            ..MIX.plan(run, self.items, 1, pace, 700)
        };
        plan.connections = self.connections.unwrap_or(plan.connections);
        self.server.measure(plan)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Option<Point>> {
    let pace = latency_curve::pace(case.requests_per_s);
    let found = case.system.measure(run, pace, seed)?;
    let all = (found.tally.operations() + found.tally.lost).max(1) as f64;
    let lost = found.tally.lost as f64 / all;
    if lost > run.pick(LOST_MAX, 1.0) {
        return Ok(None);
    }
    let name = case.system.server.name();
    let point = latency_curve::point(run, name, case.requests_per_s, &found);
    let late = found.lateness.value_at_quantile(0.99) as f64 / 1e3;
    let point = point.also(LOST, lost).also(LATE, late);
    Ok(Some(point.also(CLIENT_BUSY, found.client_busy())))
}
