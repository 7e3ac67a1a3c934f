//! MICA, §3.2.2: what it is worth that the datagrams of a flow come to one core.

use std::{collections::HashMap, fmt};

use anyhow::Result;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Plot, Unit},
    systems::{Items, Running, System},
    workload::{Mix, PIPELINE},
};

const ITEMS: Items = Items::tiny(1_000_000);
const MIX: Mix = Mix::new(false, 95);
const WORKERS: usize = 2;
/// Sockets of the client, each of which is a flow.
const FLOWS: usize = 32;
const BY_FLOW: &str = "all of a flow at one worker";
const SCATTERED: &str = "each at a worker drawn at random";
const LOADS: [(&str, u32); 2] = [
    ("alone in its flow", 1),
    ("32 in flight in a flow", PIPELINE),
];
const PANEL: &str = "";
const RATE: &str = "operations per s, measured";
const LOST: &str = "lost, part";
const LESS_BUSY: &str = "part of the requests at the less busy worker";
const BATCH: &str = "requests per batch";

/// The figure.
pub struct Flows;

/// One bar.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    load: &'static str,
    in_flight: u32,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.load, self.server)
    }
}

impl Figure for Flows {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-flows",
            title: "Server CPU time per request over UDP, by which worker gets a datagram",
            source: "MICA (NSDI'14), §3.2.2",
            claim: "Affinity of flows to cores reduces contention of the transport layer only, \
                    and even there its benefit is small for datagrams.",
            here: "Two CRCW workers, each of which executes what it receives, serve memcached's \
                   protocol over UDP on loopback, 95% GETs of tiny items, one request per \
                   datagram. Each worker has a socket at the same port. The kernel either chooses \
                   the socket by the addresses of a datagram, which brings all datagrams of a \
                   flow to one worker, or at random (`SO_ATTACH_REUSEPORT_CBPF`). A client has 32 \
                   flows. Client and server share two cores, so the bars show the CPU time of \
                   both workers for a request. The kernel's work up to the socket is done on the \
                   core that sends, in both cases: no network card spreads packets over cores.",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 1024),
            columns: Columns {
                panel: "panel",
                series: "datagrams",
                x: "requests",
                y: "server CPU per request, ns",
            },
            plot: Plot::bars("", "CPU time per request")
                .unit(Unit::Nanoseconds)
                .columns(1),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let start = |name| {
            let system = System::glimmer("crcw").threads(WORKERS).udp(name);
            // Each worker executes what arrives at its socket.
            let system = system.arguments(&["--dispatch=keyhash"]);
            system.start(run, items)
        };
        let mut servers = vec![start(BY_FLOW)?];
        let scattered = start(SCATTERED)?;
        match scattered.scatter_datagrams() {
            Ok(()) => servers.push(scattered),
            Err(error) => run.note(format!("`{SCATTERED}` is left out: {error:#}")),
        }
        let mut cases = Vec::new();
        for (load, in_flight) in LOADS {
            cases.extend(servers.iter().map(|server| Case {
                server,
                items,
                load,
                in_flight,
            }));
        }
        run.rounds(run.repeat(9), &mut cases, measure_one)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let pace = Pace::Closed {
        in_flight: case.in_flight,
    };
    let plan = Plan {
        connections: FLOWS,
        seed,
        ..MIX.plan(run, case.items, 1, pace, 1000)
    };
    let before = case.server.stats("workers")?;
    let outcome = case.server.measure(plan)?;
    let after = case.server.stats("workers")?;
    let done = |what: &str| {
        [0, 1].map(|worker| {
            let name = format!("worker:{worker}:{what}");
            let of = |stats: &HashMap<String, u64>| stats.get(&name).copied().unwrap_or(0);
            (of(&after) - of(&before)) as f64
        })
    };
    let ([one, other], [batches, more]) = (done("requests"), done("batches"));
    let all = (outcome.tally.operations() + outcome.tally.lost).max(1) as f64;
    let ns = outcome.server_ns_per_operation();
    let point = Point::new(PANEL, case.server.name(), case.load, ns);
    Ok(point
        .also(RATE, outcome.operations_per_s())
        .also(LOST, outcome.tally.lost as f64 / all)
        .also(LESS_BUSY, one.min(other) / (one + other).max(1.0))
        .also(BATCH, (one + other) / (batches + more).max(1.0)))
}
