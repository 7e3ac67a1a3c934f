//! MICA, §1 and §4.2: the latency of batches, those that clients gather and those that arrive.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::{
    driver::Dialect,
    load::{Arrivals, Idle, Latency, Pace, Plan},
};

use super::mica_transports::{self, CLIENT_BUSY, LOST, SERVER_NS, SOCKETS};
use crate::{
    Columns, Figure, Kind, Needs, Point, Row, Run, Spec,
    plot::{Plot, Unit},
    systems::{Items, Running},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
/// As in MICA §5.3.
const MIX: Mix = Mix::new(false, 50);
/// Requests per second of all sizes of batches. Sockets execute twice as many one by one.
const RATE_PER_S: f64 = 100_000.0;
/// Requests in a batch, up to a burst of MICA's (§4.2).
const SIZES: [u32; 6] = [1, 2, 4, 8, 16, 32];
const GATHERED: &str = "gathered by the client, in one datagram";
const TOGETHER: &str = "due together, each in its own datagram";
const MEAN: &str = "mean, µs";
const P99: &str = "p99, µs";

/// The figure.
pub struct Batches;

/// One point.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    panel: &'static str,
    size: u32,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}: {}", self.panel, self.size, self.server)
    }
}

impl Figure for Batches {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-batches",
            title: "Latency by requests in a batch, tiny items, 50% GET",
            source: "MICA (NSDI'14), §1, §3.2 and §4.2",
            claim: "Batches that a client gathers lower the overhead of sockets and increase \
                    latency. Bursts of up to 32 packets lower the cost of a packet and add only \
                    trivial delay.",
            here: "An open loop with 100,000 requests per second, one client with 4 sockets or \
                   devices, and one EREW worker, over each transport of `mica-transports`. Above, \
                   requests are due one by one with Poisson arrivals, and each socket waits until \
                   it has as many as a batch holds and sends them in one datagram. Latency counts \
                   from when each was due. Below, as many requests are due at the same time on \
                   one socket, and each is sent in its own datagram, so that the server receives \
                   them as a burst. Batches then have Poisson arrivals. Points are medians; bars \
                   span the 5th to the 95th percentile.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 2048),
            columns: Columns {
                panel: "batches",
                series: "transport",
                x: "requests in a batch",
                y: "median latency, µs",
            },
            plot: Plot::lines("requests in a batch", "latency")
                .unit(Unit::Microseconds)
                .log_x()
                .log_y()
                .columns(1),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let all = mica_transports::start(run, items)?;
        let sizes = run.pick(&SIZES[..], &SIZES[..2]);
        let mut cases = Vec::new();
        for panel in [GATHERED, TOGETHER] {
            for &size in sizes {
                cases.extend(all.iter().map(|carried| Case {
                    server: &carried.server,
                    items,
                    panel,
                    size,
                }));
            }
        }
        run.rounds(run.repeat(5), &mut cases, measure_one)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let is_gathered = case.panel == GATHERED;
    let (gather, burst) = if is_gathered {
        (case.size, 1)
    } else {
        (1, case.size)
    };
    let pace = Pace::Open {
        arrivals: Arrivals::Poisson(RATE_PER_S / f64::from(burst)),
        burst,
        idle: Idle::Spin,
    };
    let plan = Plan {
        connections: SOCKETS,
        gather,
        seed,
        ..MIX.plan(run, case.items, 1, pace, 500)
    };
    let found = match is_gathered {
        true => case.server.measure_as(Dialect::NativePacked, plan)?,
        false => case.server.measure(plan)?,
    };
    let latency_ns = found.latency_ns();
    let us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    let all = (found.tally.operations() + found.tally.lost).max(1) as f64;
    let size = f64::from(case.size);
    Ok(Point::new(case.panel, case.server.name(), size, us(0.5))
        .also(Row::LOW, us(0.05))
        .also(Row::HIGH, us(0.95))
        .also(MEAN, latency_ns.mean() / 1e3)
        .also_if(P99, run.p99_us(&Latency::of(&latency_ns)))
        .also(SERVER_NS, found.server_ns_per_operation())
        .also(CLIENT_BUSY, found.client_busy())
        .also(LOST, found.tally.lost as f64 / all))
}
