//! MICA, Figure 13, over the native protocol: latency by throughput for requests in bursts without
//! connections.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Figure, Kind, Needs, Point, Run, Spec, latency_curve,
    systems::{self, Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
/// Uniform keys, 50% reads (MICA §5.3).
const MIX: Mix = Mix::new(false, 50);
const PEERS: [Server; 1] = [Server::Memcached];
const OURS: &str = "glimmer erew, native";
/// Offered rates, as fractions of each system's maximum.
const PARTS: [f64; 10] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Sockets of the native client: few, so that requests that are due at the same time are sent
/// together.
const SOCKETS: usize = 4;
/// Requests in flight per socket when measuring the maximum.
const IN_FLIGHT: u32 = 512;
const LOST: &str = "lost, part";

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
    is_native: bool,
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
                   server has one worker on another. memcached's client has 50 TCP connections. \
                   The native client has 4 UDP sockets and sends requests that are due at the same \
                   time as one segment batch. Both use the kernel's network stack, which the \
                   paper's MICA does not. Each system is offered up to 90% of its own maximum. \
                   Points are medians; bars span the 5th to the 95th percentile; p99 is in the \
                   data.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 2048,
                peers: &PEERS,
            },
            columns: latency_curve::COLUMNS,
            plot: latency_curve::plot(OURS),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let all = vec![System::native("erew"), System::peer(Server::Memcached)];
        let mut loaded = Vec::new();
        for system in systems::installed(all, run) {
            loaded.push(Loaded {
                server: system.start(run, items)?,
                items,
                is_native: system.name() == OURS,
            });
        }
        let parts = run.pick(&PARTS[..], &PARTS[..2]);
        let mut cases = Vec::new();
        for system in &loaded {
            run.say(format!("{}: its maximum", system.server));
            let in_flight = if system.is_native { IN_FLIGHT } else { 1 };
            let most = system.measure(run, Pace::Closed { in_flight }, 0)?;
            let most = most.operations_per_s();
            cases.extend(parts.iter().map(|part| Case {
                system,
                requests_per_s: (most * part / 1e3).round().max(1.0) * 1e3,
            }));
        }
        run.rounds(run.repeat(5), &mut cases, measure_one)
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
        if self.is_native {
            plan.connections = SOCKETS;
        }
        self.server.measure(plan)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let pace = latency_curve::pace(case.requests_per_s);
    let found = case.system.measure(run, pace, seed)?;
    let all = (found.tally.operations() + found.tally.lost).max(1) as f64;
    let name = case.system.server.name();
    let point = latency_curve::point(name, case.requests_per_s, &found);
    Ok(point.also(LOST, found.tally.lost as f64 / all))
}
