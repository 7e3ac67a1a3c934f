//! MICA, §3.2: the part of a server's CPU time that TCP takes.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::Plot,
    profile,
    systems::{self, Items, Running, System},
    workload::{Mix, PIPELINE},
};

const ITEMS: Items = Items::tiny(1_000_000);
const MIX: Mix = Mix::new(false, 50);
const PEERS: [Server; 1] = [Server::Memcached];
const ALONE: &str = "alone on its connection";
const PIPELINED: &str = "32 in flight on a connection";
const LOADS: [(&str, u32); 2] = [(ALONE, 1), (PIPELINED, PIPELINE)];
/// Panels.
const KERNEL: &str = "in the kernel";
const TCP: &str = "in calls that send and receive over TCP";
/// Columns of both.
const RATE: &str = "operations per s";
const CPU_NS: &str = "server CPU per request, ns";
const CLIENT_BUSY: &str = "client busy";
const MEASURED_MS: u64 = 1500;

/// The figure.
pub struct Tcp;

/// One bar of each panel.
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

impl Figure for Tcp {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-tcp",
            title: "Part of a server's CPU time that TCP takes, tiny items, 50% GET",
            source: "MICA (NSDI'14), §3.2",
            claim: "TCP processing alone may take 70% of the CPU time of a key-value store that \
                    was made for many cores.",
            here: "One worker on one core and one client on another, TCP on loopback, 50 \
                   connections, with one request in flight on each or 32. The first panel is \
                   system time over system and user time (`/proc/PID/stat`), so it has TCP, IP, \
                   the loopback interface, sockets, `epoll` and the entry into system calls. The \
                   second is the part of 1,999 samples a second (`perf`) that lie within \
                   `tcp_sendmsg` and `tcp_recvmsg`, whichever function they are in. On loopback, \
                   the sender's call also does the receiver's work up to the socket, so a server \
                   pays for its clients' receiving, and they for its. There is no network card, \
                   whose driver and interrupts would add to the kernel's part.",
            kind: Kind::Timing,
            needs: Needs {
                peers: &PEERS,
                ..Needs::two_cores(1, 2048)
            },
            columns: Columns {
                panel: "where",
                series: "system",
                x: "requests",
                y: "part of the server's CPU time, %",
            },
            plot: Plot::bars("", "part of the server's CPU time, %").columns(1),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let all = vec![System::glimmer("crcw"), System::peer(Server::Memcached)];
        let systems = systems::installed(all, run);
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let mut cases = Vec::new();
        for (load, in_flight) in LOADS {
            cases.extend(servers.iter().map(|server| Case {
                server,
                items,
                load,
                in_flight,
            }));
        }
        let has_perf = profile::is_here();
        if !has_perf {
            run.note(format!("no panel `{TCP}`: `perf` cannot sample here"));
        }
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, seed| {
            case.points(run, seed, has_perf)
        })
    }
}

impl Case<'_> {
    fn points(&self, run: &Run<'_>, seed: u64, has_perf: bool) -> Result<Vec<Point>> {
        let in_flight = self.in_flight;
        let pace = Pace::Closed { in_flight };
        let plan = Plan {
            seed,
            ..MIX.plan(run, self.items, 1, pace, MEASURED_MS)
        };
        let (outcome, kernel, tcp) = match has_perf {
            false => {
                let (outcome, kernel) = self.server.measure_in_parts(plan)?;
                (outcome, kernel, None)
            }
            true => {
                let time = run.warm_up() + run.measured(MEASURED_MS);
                self.server.measure_in_tcp(plan, time)?
            }
        };
        let parts = [(KERNEL, Some(kernel)), (TCP, tcp)];
        let parts = parts.into_iter().filter_map(|(panel, part)| {
            let point = Point::new(panel, self.server.name(), self.load, part? * 100.0);
            let point = point.also(RATE, outcome.operations_per_s());
            let point = point.also(CPU_NS, outcome.server_ns_per_operation());
            Some(point.also(CLIENT_BUSY, outcome.client_busy()))
        });
        Ok(parts.collect())
    }
}
