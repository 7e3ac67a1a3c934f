//! MICA, Table 1: requests directed by clients to the core of their key, compared with requests
//! directed by the server's cores.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::{
    driver::Dialect,
    load::{Pace, Plan},
};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Mark, Plot},
    systems::{Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
const WORKERS: usize = 2;
pub(super) const MEMORY_MIB: usize = 4096;
/// Sockets of the client, and requests in flight on each.
const SOCKETS: usize = 4;
const IN_FLIGHT: u32 = 512;
const PANEL: &str = "";
const BY_CLIENT: &str = "directed by the client";
const BY_SERVER: &str = "directed by the server";
pub(super) const SERVER_NS: &str = "server CPU per request, ns";
const RATE: &str = "operations per s, measured";
pub(super) const LOST: &str = "lost, part";
/// MICA's throughput in Mops with 50% GET: the workload, directed by the server, directed by the
/// client.
const PAPER: [(Mix, f64, f64); 2] = [
    (Mix::new(false, 50), 33.9, 76.9),
    (Mix::new(true, 50), 28.1, 70.4),
];

fn paper() -> Vec<Mark> {
    let loads = ["uniform, 50% GET", "skewed, 50% GET"];
    let of_two_cores = |mops: f64| mops * 1e6 / 8.0;
    let marks = PAPER.into_iter().zip(loads);
    marks
        .flat_map(|((_, by_server, by_client), load)| {
            [(BY_SERVER, by_server), (BY_CLIENT, by_client)]
                .map(|(series, mops)| Mark::bar(PANEL, series, load, of_two_cores(mops)))
        })
        .collect()
}

/// The figure.
pub struct Direction;

/// One bar.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    mix: Mix,
    by_server: bool,
}

impl Case<'_> {
    fn series(&self) -> &'static str {
        match self.by_server {
            false => BY_CLIENT,
            true => BY_SERVER,
        }
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.mix, self.series())
    }
}

impl Figure for Direction {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-table1",
            title: "Request direction: by the client, by the server",
            source: "MICA (NSDI'14), Table 1, §5.5",
            claim: "Software-only request direction achieves only 40.0 to 44.1% of the throughput \
                    of client-assisted direction, because cores have to communicate (50% GET, tiny \
                    items, EREW, 16 cores).",
            here: "One EREW server with two workers serves the native protocol, one request per \
                   datagram. Its clients either send each request to the port of its owner, or use \
                   both ports in turn, so that the workers have to hand over half of the requests. \
                   In the paper, 15 of 16 requests cross, because there are 16 cores; here, \
                   crossings affect about half as large a share of the requests. The paper's \
                   packets bypass the kernel and ours do not, so crossing is a smaller part of the \
                   cost of a request. Server and client share two cores. Bars therefore show the \
                   throughput for which the workers have CPU time: two workers divided by the CPU \
                   time that a request costs both of them together.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 1024),
            columns: Columns {
                panel: "panel",
                series: "direction",
                x: "workload",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second").columns(1).paper(
                "MICA, Table 1, for two of its 16 cores: 76.9 and 70.4 Mops directed by clients, \
                 33.9 and 28.1 by software",
                paper(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let system = System::native("erew").threads(WORKERS);
        let system = system.memory_mib(MEMORY_MIB).directing();
        let server = system.start(run, items)?;
        let mut cases = Vec::new();
        for mix in run.pick(&Mix::ALL[..], &Mix::ALL[..2]) {
            cases.extend([false, true].map(|by_server| Case {
                server: &server,
                items,
                mix: *mix,
                by_server,
            }));
        }
        run.rounds(run.repeat(7), &mut cases, measure_one)
    }
}

/// As many requests in flight as keep native workers busy, with large bursts.
pub(super) fn saturating(mix: Mix, run: &Run<'_>, items: Items, seed: u64) -> Plan {
    let pace = Pace::Closed {
        in_flight: IN_FLIGHT,
    };
    Plan {
        connections: SOCKETS,
        seed,
        ..mix.plan(run, items, 1, pace, 700)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let plan = saturating(case.mix, run, case.items, seed);
    let outcome = match case.by_server {
        false => case.server.measure(plan)?,
        true => (case.server).measure_as(Dialect::NativeUndirected, plan)?,
    };
    let all = (outcome.tally.operations() + outcome.tally.lost).max(1) as f64;
    let capacity = case.server.capacity_per_s(&outcome);
    let point = Point::new(PANEL, case.series(), case.mix.to_string(), capacity);
    Ok(point
        .also(SERVER_NS, outcome.server_ns_per_operation())
        .also(RATE, outcome.operations_per_s())
        .also(LOST, outcome.tally.lost as f64 / all))
}
