//! Minos, Figures 3 to 7, at a live server: latency by load, under each dispatch policy.

use std::{collections::HashSet, fmt, rc::Rc, time::Duration};

use anyhow::{Error, Result};
use glimmer_loadgen::{
    load::{
        Arrivals, Group, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp, sweep,
    },
    workload::{Mix, Workload},
};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Plot, Unit},
    systems::{Running, System},
};

/// Workers of the paper's server.
const WORKERS: usize = 8;
/// Workers of a quick run.
const WORKERS_QUICK: usize = 2;
/// Cores for the workers and for a client that can load them.
const CORES: usize = 12;
/// Keys, of which one in 1600 is large.
const KEYS: u64 = 160_000;
const MEMORY_MIB: usize = 1024;
/// Connections of the small requests, and of the large ones.
const CONNECTIONS: usize = 64;
const LARGE_CONNECTIONS: usize = 16;
/// Client threads of the large requests.
const LARGE_THREADS: usize = 2;
/// Size-aware sharding makes a plan each second, from what is requested, and has the right one
/// after two.
const ADAPTING: Duration = Duration::from_millis(2500);
/// Offered loads in thousands of requests per second.
const LOADS: [f64; 8] = [50.0, 100.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1000.0];
const LOADS_QUICK: [f64; 1] = [2.0];
/// A measurement counts if the client was late by at most this share of the latencies, both as p99.
const LATE_MAX: f64 = 0.5;

const KEYHASH: &str = "keyhash";
const STEALING: &str = "stealing";
const SIZE_AWARE: &str = "size-aware";
/// The paper has 1 to 3 dispatching cores of 8.
const POLICIES: [&str; 5] = [KEYHASH, "handoff:1", "handoff:2", STEALING, SIZE_AWARE];

/// How large values are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// Whole, over TCP, as the paper's systems do.
    Whole,
    /// In slices of 64 KiB, over TCP.
    Sliced,
    /// As a native client asks for them: in rounds of 32 fragments.
    InRounds,
}

/// Columns with more figures of a measurement.
const P50: &str = "p50, µs";
const P50_LARGE: &str = "p50 of large requests, µs";
const SERVER_CORES: &str = "CPU seconds of the server per second";

/// A panel, its items and its requests.
struct Mixture {
    panel: &'static str,
    sent: Sent,
    preset: &'static str,
    gets: f64,
}

/// The items of a server, and how it sends them.
type Items = (&'static str, Sent);

/// Items of the default workload, of more large requests, and of longer ones.
const DEFAULT: &str = "minos:0.125%:500000";
const MANY: &str = "minos:0.75%:500000";
const LONG: &str = "minos:0.125%:1000000";
/// Shares of GETs.
const MOST: f64 = 0.95;
const HALF: f64 = 0.5;

const fn mixture(panel: &'static str, sent: Sent, preset: &'static str, gets: f64) -> Mixture {
    Mixture {
        panel,
        sent,
        preset,
        gets,
    }
}

/// The paper's systems come first. Those with the same preset and way have the same servers.
const MIXTURES: [Mixture; 9] = [
    mixture(
        "whole values, default workload (Figure 3)",
        Sent::Whole,
        DEFAULT,
        MOST,
    ),
    mixture(
        "whole values, 50% GETs (Figure 5)",
        Sent::Whole,
        DEFAULT,
        HALF,
    ),
    mixture(
        "whole values, 0.75% large (Figure 6)",
        Sent::Whole,
        MANY,
        MOST,
    ),
    mixture(
        "whole values of up to 1,000 KB (Figure 7)",
        Sent::Whole,
        LONG,
        MOST,
    ),
    mixture(
        "slices, default workload (Figure 3)",
        Sent::Sliced,
        DEFAULT,
        MOST,
    ),
    mixture("default workload (Figure 3)", Sent::InRounds, DEFAULT, MOST),
    mixture("50% GETs (Figure 5)", Sent::InRounds, DEFAULT, HALF),
    mixture("0.75% large (Figure 6)", Sent::InRounds, MANY, MOST),
    mixture(
        "large values of up to 1,000 KB (Figure 7)",
        Sent::InRounds,
        LONG,
        MOST,
    ),
];

impl Mixture {
    fn workload(&self, keys: u64) -> Result<Workload> {
        let workload = Workload::preset(self.preset, Some(keys)).map_err(Error::msg)?;
        Ok(Workload {
            mix: Mix::reads(self.gets),
            ..workload
        })
    }
}

impl Sent {
    fn system(self) -> System {
        match self {
            Sent::Whole => System::glimmer("crcw").arguments(&["--slice-bytes", "off"]),
            Sent::Sliced => System::glimmer("crcw"),
            Sent::InRounds => System::native("crcw"),
        }
    }
}

/// One server at one load.
struct Case {
    server: Rc<Running>,
    mixture: &'static Mixture,
    workload: Workload,
    /// Thousands of requests per second.
    load: f64,
    /// Whether the server did not serve this workload before.
    is_first: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panel = self.mixture.panel;
        write!(out, "{panel}, {}, {} k/s", self.server, self.load)
    }
}

impl Case {
    fn plan(&self, run: &Run<'_>, seed: u64) -> Plan {
        let pace = Pace::Open {
            arrivals: Arrivals::Poisson(self.load * 1e3),
            burst: 1,
            // A client that spins on a core of the server would take it away from it.
            idle: match self.server.has_client_cores() {
                true => Idle::Spin,
                false => Idle::Sleep,
            },
        };
        let warm_up = match self.is_first {
            true => run.pick(ADAPTING, run.warm_up()),
            false => run.warm_up(),
        };
        Plan {
            connections: CONNECTIONS,
            large: Some(LargeApart {
                connections: LARGE_CONNECTIONS,
                threads: LARGE_THREADS,
            }),
            kernel_timestamps: true,
            warm_up: WarmUp::Fixed(warm_up),
            measured: Some(run.measured_for_p99(1000, self.load * 1e3)),
            seed,
            ..Plan::new(Requests::Drawn(self.workload.clone()), pace)
        }
    }

    /// Whether the server sustains the load, and the client measured it.
    fn counts(&self, outcome: &Outcome) -> bool {
        let (_, late_us) = Latency::of(&outcome.lateness).slow();
        let (_, slow_us) = Latency::of(&outcome.latency_ns()).slow();
        sweep::kept_up(outcome) && outcome.tally.lost == 0 && late_us <= LATE_MAX * slow_us
    }

    fn point(&self, run: &Run<'_>, outcome: &Outcome) -> Option<Point> {
        let latency = Latency::of(&outcome.latency_ns());
        let large = outcome.sizes.of(&[Group::Large]);
        let p50_large_us = (!large.is_empty()).then(|| Latency::of(&large).p50_us);
        let p99_us = run.p99_us(&latency)?;
        let point = Point::new(self.mixture.panel, self.server.name(), self.load, p99_us)
            .also(P50, latency.p50_us)
            .also_if(P50_LARGE, p50_large_us)
            .also(SERVER_CORES, outcome.server_cpu_s / outcome.seconds);
        Some(point)
    }
}

/// The figure.
pub struct Live;

impl Figure for Live {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-live",
            title: "Latency by load at a live server of 8 workers",
            source: "Minos (NSDI'19), Figures 3 to 7, §6",
            claim: "The p99 of keyhash sharding is ten times that of Minos, and the gain grows \
                    with the share of large requests. The p99 of large requests is up to twice \
                    that of stealing.",
            here: "Eight workers on a core each, and a client on the other cores, on loopback. \
                   Small requests have 64 connections or sockets; large ones have 16 and two \
                   threads of their own. Requests arrive at random (Poisson), and a latency \
                   counts from the time a request was due until the kernel received its reply. A \
                   load that a policy does not sustain has no point, and neither has one at which \
                   the client was late. The paper's server uses DPDK, so its loads are higher. \
                   Panels of whole values are the paper's systems: the server sends and receives \
                   each value whole over TCP (`--slice-bytes off`). Panels of slices have the \
                   server's default, also over TCP. The others have a native client over UDP, \
                   which takes a large reply in rounds of 32 fragments (43 KB), between which \
                   small requests are served under every policy. Panels that the picture lacks \
                   have yet to be measured, and so have loads below 400,000 requests per second, \
                   of which the record had fewer than 1,000 requests above the p99.",
            kind: Kind::Timing,
            needs: Needs {
                cores: CORES,
                cores_of_paper: 1,
                memory_mib: 16384,
                peers: &[],
            },
            columns: Columns {
                panel: "workload",
                series: "dispatch",
                x: "offered, k requests/s",
                y: "p99, µs",
            },
            plot: Plot::lines("offered, k requests/s", "p99")
                .unit(Unit::Microseconds)
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(KEYS, 3200);
        let workers = run.pick(WORKERS, WORKERS_QUICK);
        let loads = run.pick(&LOADS[..], &LOADS_QUICK[..]);
        let mut cases = Vec::new();
        let mut started: Vec<(Items, Vec<Rc<Running>>)> = Vec::new();
        for mixture in &MIXTURES {
            let workload = mixture.workload(keys)?;
            let kind = (mixture.preset, mixture.sent);
            let here = started.iter().position(|(of, _)| *of == kind);
            let here = match here {
                Some(here) => here,
                None => {
                    let start = |policy: &&str| {
                        let system = mixture.sent.system().threads(workers);
                        let system = system.dispatch(policy);
                        let running = system.start_with(run, &workload, MEMORY_MIB);
                        running.map(Rc::new)
                    };
                    let policies = run.pick(&POLICIES[..], &[POLICIES[0], SIZE_AWARE]);
                    let servers = policies.iter().map(start).collect::<Result<_>>()?;
                    started.push((kind, servers));
                    started.len() - 1
                }
            };
            for (place, &load) in loads.iter().enumerate() {
                cases.extend(started[here].1.iter().map(|server| Case {
                    server: Rc::clone(server),
                    mixture,
                    workload: workload.clone(),
                    load,
                    is_first: place == 0,
                }));
            }
        }
        // Higher loads than one that is too high are left out.
        let mut exhausted = HashSet::new();
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, seed| {
            let line = (seed, case.mixture.panel, case.server.name().to_owned());
            if exhausted.contains(&line) {
                return Ok(Vec::new());
            }
            let outcome = case.server.measure(case.plan(run, seed + 1))?;
            match case.counts(&outcome) || run.pick(false, true) {
                true => Ok(case.point(run, &outcome).into_iter().collect()),
                false => {
                    exhausted.insert(line);
                    Ok(Vec::new())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtures_are_the_papers() {
        for mixture in &MIXTURES {
            mixture.workload(KEYS).unwrap();
        }
        let of = |sent| {
            let those = MIXTURES.iter().filter(move |mixture| mixture.sent == sent);
            those
                .map(|mixture| (mixture.preset, mixture.gets))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Sent::Whole), of(Sent::InRounds));
    }
}
