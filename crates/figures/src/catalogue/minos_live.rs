//! Minos, Figures 3 to 7, at a live server: latency by load, under each dispatch policy.

use std::{collections::HashSet, fmt, rc::Rc, time::Duration};

use anyhow::{Error, Result};
use glimmer_loadgen::{
    load::{Arrivals, Group, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp},
    workload::{Mix, Workload},
};

use crate::{
    Columns, Figure, Kind, Needs, Run, Spec,
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
/// A load is sustained if this share of the offered requests is answered in time.
const IN_TIME_MIN: f64 = 0.98;
/// A measurement counts if the client was late by at most this share of the latencies, both as p99.
const LATE_MAX: f64 = 0.5;

const KEYHASH: &str = "keyhash";
const STEALING: &str = "stealing";
const SIZE_AWARE: &str = "size-aware";
/// The paper has 1 to 3 dispatching cores of 8.
const POLICIES: [&str; 5] = [KEYHASH, "handoff:1", "handoff:2", STEALING, SIZE_AWARE];

/// Panels of the picture: requests of all sizes.
const DEFAULT: &str = "default workload (Figure 3)";
const LARGE: &str = "default workload, large requests alone (Figure 4)";
const WRITES: &str = "50% GETs (Figure 5)";
const MANY: &str = "0.75% large (Figure 6)";
const LONG: &str = "large values of up to 1,000 KB (Figure 7)";

/// Columns with more figures of a measurement.
const P50: &str = "p50, µs";
const SERVER_CORES: &str = "CPU seconds of the server per second";

/// A panel, its items and its requests.
struct Mixture {
    panel: &'static str,
    preset: &'static str,
    gets: f64,
}

/// Those with the same preset have the same items.
const MIXTURES: [Mixture; 4] = [
    Mixture {
        panel: DEFAULT,
        preset: "minos:0.125%:500000",
        gets: 0.95,
    },
    Mixture {
        panel: WRITES,
        preset: "minos:0.125%:500000",
        gets: 0.5,
    },
    Mixture {
        panel: MANY,
        preset: "minos:0.75%:500000",
        gets: 0.95,
    },
    Mixture {
        panel: LONG,
        preset: "minos:0.125%:1000000",
        gets: 0.95,
    },
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

/// One server at one load.
struct Case {
    server: Rc<Running>,
    panel: &'static str,
    workload: Workload,
    /// Thousands of requests per second.
    load: f64,
    /// Whether the server did not serve this workload before.
    is_first: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}, {} k/s", self.panel, self.server, self.load)
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
            measured: Some(run.measured(1000)),
            seed,
            ..Plan::new(Requests::Drawn(self.workload.clone()), pace)
        }
    }

    /// Whether the server sustains the load, and the client measured it.
    fn counts(&self, outcome: &Outcome) -> bool {
        let late_us = Latency::of(&outcome.lateness).p99_us;
        !outcome.saturated
            && outcome.tally.lost == 0
            && outcome.in_time_share() >= IN_TIME_MIN
            && late_us <= LATE_MAX * Latency::of(&outcome.latency_ns()).p99_us
    }

    fn points(&self, outcome: &Outcome) -> Vec<crate::Point> {
        let all = Latency::of(&outcome.latency_ns());
        let point = |panel: &str, latency: Latency| {
            crate::Point::new(panel, self.server.name(), self.load, latency.p99_us)
                .also(P50, latency.p50_us)
                .also(SERVER_CORES, outcome.server_cpu_s / outcome.seconds)
        };
        let mut points = vec![point(self.panel, all)];
        let large = outcome.sizes.of(&[Group::Large]);
        if self.panel == DEFAULT && !large.is_empty() {
            points.push(point(LARGE, Latency::of(&large)));
        }
        points
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
            here: "Eight workers on a core each, a native client on the other cores, over UDP on \
                   loopback. Small requests have 64 sockets; large ones have 16 and two threads \
                   of their own. Requests arrive at random (Poisson), and a latency counts from \
                   the time a request was due until the kernel received its reply. A load that a \
                   policy does not sustain has no point, and neither has one at which the client \
                   was late. The paper's server uses DPDK, so its loads are higher. And it \
                   sends a large reply in one go, while our client takes it in rounds of 32 \
                   fragments (43 KB), between which small requests are served under every policy.",
            kind: Kind::Timing,
            needs: Needs {
                cores: CORES,
                cores_of_paper: 1,
                memory_mib: 8192,
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
        let mut started: Vec<(&str, Vec<Rc<Running>>)> = Vec::new();
        for mixture in &MIXTURES {
            let workload = mixture.workload(keys)?;
            let here = started.iter().position(|(of, _)| *of == mixture.preset);
            let here = match here {
                Some(here) => here,
                None => {
                    let start = |policy: &&str| {
                        let system = System::native("crcw").threads(workers).dispatch(policy);
                        let running = system.start_with(run, &workload, MEMORY_MIB);
                        running.map(Rc::new)
                    };
                    let policies = run.pick(&POLICIES[..], &[POLICIES[0], SIZE_AWARE]);
                    let servers = policies.iter().map(start).collect::<Result<_>>()?;
                    started.push((mixture.preset, servers));
                    started.len() - 1
                }
            };
            for (place, &load) in loads.iter().enumerate() {
                cases.extend(started[here].1.iter().map(|server| Case {
                    server: Rc::clone(server),
                    panel: mixture.panel,
                    workload: workload.clone(),
                    load,
                    is_first: place == 0,
                }));
            }
        }
        // Higher loads than one that is too high are left out.
        let mut exhausted = HashSet::new();
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, seed| {
            let line = (seed, case.panel, case.server.name().to_owned());
            if exhausted.contains(&line) {
                return Ok(Vec::new());
            }
            let outcome = case.server.measure(case.plan(run, seed + 1))?;
            match case.counts(&outcome) || run.pick(false, true) {
                true => Ok(case.points(&outcome)),
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
    }
}
