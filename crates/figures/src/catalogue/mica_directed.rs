//! MICA, Figure 14, end to end: throughput by number of cores, with clients that direct their
//! requests.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::Plan;
use glimmer_microbench::store_alone::Mode;

use super::mica_fig14;
use super::mica_table1::{self, LOST, MEMORY_MIB, SERVER_NS};
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    systems::{self, Items, Running, System},
    workload::Mix,
};

const CORES_MAX: usize = 16;
/// Skewed keys, which are harder for a partitioned store (MICA §5.4).
const MIXES: [Mix; 2] = [Mix::new(true, 50), Mix::new(true, 95)];
const ITEMS: Items = Items::tiny(1_000_000);
/// Sockets of the clients for each worker.
const SOCKETS_EACH: usize = 2;
const RATE: &str = "operations per s, measured";
const APART: &str = "operations per s, client apart if a core is left";
const BURST: &str = "datagrams per receiving call";

/// The figure.
pub struct Directed;

/// One point.
struct Case<'a> {
    server: &'a Running,
    mode: Mode,
    items: Items,
    mix: Mix,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers = self.server.threads();
        write!(out, "{}: {}, {workers} workers", self.mix, self.server)
    }
}

fn panel(mix: Mix) -> String {
    format!("{}% GET", mix.gets_percent)
}

impl Figure for Directed {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-directed",
            title: "End-to-end throughput by number of cores, requests directed by clients",
            source: "MICA (NSDI'14), Figure 14, §5.4",
            claim: "MICA performs better with more cores, nearly linearly up to 16. Its clients \
                    direct each request to the core that owns the key.",
            here: "Tiny items, skewed keys, the native protocol over UDP on loopback, one request \
                   per datagram. Clients send a request to the port of its owner, under CREW and \
                   CRCW reads to all ports in turn. Client and server share the cores: a client \
                   thread runs on the core of each worker, whatever the number of workers, and has \
                   2 sockets with 512 requests in flight on each. The panels show the throughput \
                   for which the workers have CPU time: workers divided by CPU time per request. \
                   CPU time does not include waiting for locks. A column has the same with a \
                   client on a core of its own where one is left: that compares one worker beside \
                   an idle client with two that share their cores.",
            kind: Kind::Timing,
            needs: Needs::two_cores(CORES_MAX, 2048),
            columns: Columns {
                panel: "requests",
                series: "system",
                x: "cores",
                y: "operations per s",
            },
            plot: mica_fig14::plot(["50% GET", "95% GET"]),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let counts = systems::thread_counts(run.cores().min(CORES_MAX));
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let mut servers = Vec::new();
        for &count in &counts {
            for mode in Mode::ALL {
                let system = System::native(mode.name()).memory_mib(MEMORY_MIB);
                servers.push((mode, system.threads(count).start(run, items)?));
            }
        }
        let mut cases = Vec::new();
        for mix in MIXES {
            cases.extend(servers.iter().map(|(mode, server)| Case {
                server,
                mode: *mode,
                items,
                mix,
            }));
        }
        run.rounds(run.repeat(5), &mut cases, measure_one)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let (server, workers) = (case.server, case.server.threads());
    let plan = mica_table1::saturating(case.mix, run, case.items, seed);
    let plan = Plan {
        connections: SOCKETS_EACH * workers,
        ..plan
    };
    let before = server.native_workers()?;
    let outcome = server.measure_on_its_cores(plan.clone())?;
    let (mut datagrams, mut receives) = (0, 0);
    for (after, before) in server.native_workers()?.into_iter().zip(before) {
        let done = after.since(before);
        datagrams += done.datagrams;
        receives += done.receives;
    }
    let apart = server.measure(plan)?;
    let all = (outcome.tally.operations() + outcome.tally.lost).max(1) as f64;
    let (cores, capacity) = (workers as f64, server.capacity_per_s(&outcome));
    let series = format!("glimmer {}", case.mode.name());
    Ok(Point::new(panel(case.mix), series, cores, capacity)
        .also(RATE, outcome.operations_per_s())
        .also(SERVER_NS, outcome.server_ns_per_operation())
        .also(APART, server.capacity_per_s(&apart))
        .also(BURST, datagrams as f64 / receives.max(1) as f64)
        .also(LOST, outcome.tally.lost as f64 / all))
}
