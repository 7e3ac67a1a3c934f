//! MICA, Figure 15: throughput by bandwidth of the network.

use std::{fmt, sync::Arc};

use anyhow::Result;
use glimmer_comparisons::{servers::Kind as Server, transports::Between};
use glimmer_loadgen::load::{Pace, Plan};

use super::mica_transports::{BATCHES, CLIENT_BUSY, SERVER_NS, SOCKETS};
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::Plot,
    systems::{self, Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
const MEMORY_MIB: usize = 2048;
const PEERS: [Server; 1] = [Server::Memcached];
const OURS: &str = "glimmer erew";
/// Numbers of ports (MICA, Figure 15), and what stands for one, in megabits per second each way.
const PORTS: [u32; 4] = [1, 2, 4, 8];
const PORT_MBIT: u32 = 400;
/// Skewed keys (MICA §5.4).
const MIXES: [Mix; 2] = [Mix::new(true, 50), Mix::new(true, 95)];
const SERVER_BUSY: &str = "server busy";

/// The figure.
pub struct Ports;

/// One point.
struct Case<'a> {
    server: &'a Running,
    between: &'a Between,
    items: Items,
    mix: Mix,
    ports: u32,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}: {}", self.mix, self.ports, self.server)
    }
}

/// An interface whose bandwidth is cut until this is dropped.
struct Cut<'a>(&'a Between);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.limit(None) {
            eprintln!("the bandwidth stays cut: {error:#}");
        }
    }
}

fn panel(mix: Mix) -> String {
    format!("{}% GET", mix.gets_percent)
}

impl Figure for Ports {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig15",
            title: "Throughput by bandwidth of the network, tiny items, skewed",
            source: "MICA (NSDI'14), Figure 15, §5.4",
            claim: "MICA scales well with the number of network ports, because it can use almost \
                    all bandwidth. The share of GETs does not affect that. Masstree and other \
                    systems do not scale with more ports.",
            here: "One worker runs on one core and one client on another, each in its own network \
                   namespace, with a pair of virtual interfaces between them. `tc` (token bucket \
                   filter) cuts what either interface sends to 1, 2, 4 and 8 times 400 Mb/s, each \
                   of which stands for one of the paper's ports of 10 Gb/s: eight are more than \
                   one core can fill. Native requests go in segment batches over sockets, one in \
                   each datagram. memcached has 50 TCP connections with 32 requests in flight on \
                   each. AF_XDP and DPDK pass the kernel's queues, where the bandwidth is cut. \
                   `server busy` and `client busy` in the data show where a core is the limit, and \
                   not the bandwidth.",
            kind: Kind::Timing,
            needs: Needs {
                peers: &PEERS,
                ..Needs::two_cores(16, 2048)
            },
            columns: Columns {
                panel: "share of GETs",
                series: "system",
                x: "ports of 400 Mb/s",
                y: "operations per s",
            },
            plot: Plot::lines("ports", "operations per second")
                .whole_x()
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let Some(between) = run.between(BATCHES.kind, OURS) else {
            return Ok(());
        };
        let peers = systems::installed(PEERS.map(System::peer).into(), run);
        let peers = peers.into_iter().map(|peer| peer.apart(between.clone()));
        let ours = System::native("erew").memory_mib(MEMORY_MIB);
        let ours = ours.over(OURS, between.clone());
        let start = |system: System| system.start(run, items);
        let servers = [ours].into_iter().chain(peers).map(start);
        let servers = servers.collect::<Result<Vec<_>>>()?;
        let between: &Arc<Between> = &between;
        let mut cases = Vec::new();
        for mix in MIXES {
            for ports in PORTS {
                cases.extend(servers.iter().map(|server| Case {
                    server,
                    between,
                    items,
                    mix,
                    ports,
                }));
            }
        }
        run.rounds(run.repeat(5), &mut cases, measure_one)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let plan = match case.server.name() {
        OURS => {
            let in_flight = BATCHES.in_flight;
            Plan {
                connections: SOCKETS,
                seed,
                ..(case.mix).plan(run, case.items, 1, Pace::Closed { in_flight }, 500)
            }
        }
        _ => case.mix.saturating(run, case.items, 500, seed),
    };
    case.between.limit(Some(case.ports * PORT_MBIT))?;
    let _cut = Cut(case.between);
    let outcome = case.server.measure(plan)?;
    let (panel, ports) = (panel(case.mix), f64::from(case.ports));
    let rate = outcome.operations_per_s();
    let server_ns = outcome.server_ns_per_operation();
    Ok(Point::new(panel, case.server.name(), ports, rate)
        .also(SERVER_NS, server_ns)
        .also(SERVER_BUSY, server_ns * rate / 1e9)
        .also(CLIENT_BUSY, outcome.client_busy()))
}
