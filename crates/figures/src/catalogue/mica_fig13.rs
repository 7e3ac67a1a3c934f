//! MICA, Figure 13: latency by throughput.

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
const OURS: &str = "glimmer crcw";
/// Offered rates, as fractions of the fastest system's maximum with one request in flight per
/// connection.
const PARTS: [f64; 12] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9,
];
/// No system is offered more than this fraction of its own maximum: beyond saturation, an open loop
/// only measures the length of the queue.
const OWN_PART_MAX: f64 = 0.92;
const LATE: &str = "client late p99, µs";
const MEAN: &str = "mean, µs";

/// The figure.
pub struct Latency;

/// One point.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    requests_per_s: f64,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} at {:.0} k/s",
            self.server,
            self.requests_per_s / 1e3
        )
    }
}

impl Figure for Latency {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig13",
            title: "Latency by throughput, tiny items, uniform, 50% GET",
            source: "MICA (NSDI'14), Figure 13, §5.3",
            claim: "The original Memcached's latency is almost flat up to a certain throughput. \
                    MICA's latency is between 24 and 52 µs. At a similar latency of 40 µs, MICA \
                    carries 69 Mops, more than two orders of magnitude more than Memcached, which \
                    uses the kernel's network stack.",
            here: "Requests arrive in an open loop: Poisson arrivals on 50 connections, one \
                   request at a time. Latency counts from the time at which a request was due, so \
                   a stall delays every request that arrives during it. The client spins on one \
                   core, and the server has one worker on another. Points are medians; bars span \
                   the 5th to the 95th percentile. Both systems use the kernel's TCP with one \
                   packet per request. The kernel takes most of the time, so the distance between \
                   the systems is smaller than in the paper. Neither system is offered more than \
                   92% of its maximum.",
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
        let all = vec![System::glimmer("crcw"), System::peer(Server::Memcached)];
        let systems = systems::installed(all, run);
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let mut most = Vec::new();
        for server in &servers {
            run.say(format!("{server}: its maximum"));
            let pace = Pace::Closed { in_flight: 1 };
            let outcome = server.measure(MIX.plan(run, items, 1, pace, 1000))?;
            most.push(outcome.operations_per_s());
        }
        let fastest = most.iter().copied().fold(0.0, f64::max);
        let parts = run.pick(&PARTS[..], &PARTS[..2]);
        let mut cases = Vec::new();
        for part in parts {
            let requests_per_s = (fastest * part / 1e3).round().max(1.0) * 1e3;
            for (server, most) in servers.iter().zip(&most) {
                if requests_per_s <= most * OWN_PART_MAX {
                    cases.push(Case {
                        server,
                        items,
                        requests_per_s,
                    });
                }
            }
        }
        run.rounds(run.repeat(5), &mut cases, measure_one)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let pace = latency_curve::pace(case.requests_per_s);
    let plan = Plan {
        seed,
        ..MIX.plan(run, case.items, 1, pace, 700)
    };
    let found = case.server.measure(plan)?;
    let late = found.lateness.value_at_quantile(0.99) as f64 / 1e3;
    let point = latency_curve::point(run, case.server.name(), case.requests_per_s, &found);
    Ok(point
        .also(MEAN, found.latency_ns().mean() / 1e3)
        .also(LATE, late))
}
