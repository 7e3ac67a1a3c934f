//! Minos, §3.1: what slices of large values cost and gain at a live server.

use std::fmt;

use anyhow::{Error, Result};
use glimmer_loadgen::{
    load::{Arrivals, Group, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp},
    workload::{Empirical, Law, Mix, Sizes, Workload},
};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
    plot::{Plot, Unit},
    systems::{Running, System},
};

/// Small requests per second, and their values.
const SMALL_PER_S: f64 = 4000.0;
const SMALL_BYTES: u32 = 100;
/// Large values per second, in bytes.
const LARGE_BYTES_PER_S: f64 = 400e6;
/// Lengths of large values.
const LENGTHS: [(&str, u32); 2] = [("100 KB", 100_000), ("1 MB", 1_000_000)];
/// Verbs, and the share of reads.
const VERBS: [(&str, f64); 2] = [("GET", 1.0), ("SET", 0.0)];
const KEYS: u64 = 1000;
const MEMORY_MIB: usize = 512;
/// Connections of the small requests, and of the large ones.
const CONNECTIONS: usize = 8;
const LARGE_CONNECTIONS: usize = 4;

const SLICED: &str = "slices of 64 KiB";
const WHOLE: &str = "whole values";
/// What distinguishes them: arguments beside the defaults.
const HANDLING: [(&str, &[&str]); 2] = [(SLICED, &[]), (WHOLE, &["--slice-bytes", "off"])];
/// Servers, with the panels of their CPU time and of their latency.
const SERVERS: [(usize, &str, [&str; 2]); 3] = [
    (
        1,
        "keyhash",
        [
            "CPU time of the server per request, one worker",
            "p99 of small requests, one worker",
        ],
    ),
    (
        2,
        "keyhash",
        [
            "CPU time of the server per request, two workers, keyhash",
            "p99 of small requests, two workers, keyhash",
        ],
    ),
    (
        2,
        "size-aware",
        [
            "CPU time of the server per request, two workers, size-aware",
            "p99 of small requests, two workers, size-aware",
        ],
    ),
];

/// Column of the CPU time.
const TURNS: &str = "turns of the workers per request";
/// Columns of the latency.
const P50: &str = "p50, µs";
const LARGE_P99: &str = "p99 of large requests, µs";
const LATE: &str = "client late p99, µs";
/// The part of the p99 by which the client may be late, also as p99.
const LATE_MAX: f64 = 0.5;

/// The figure.
pub struct Whole;

/// A server, and the requests that it has.
struct Case {
    server: Running,
    handling: &'static str,
    panels: [&'static str; 2],
    place: String,
    workload: Workload,
    per_s: f64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}: {}", self.panels[1], self.place, self.handling)
    }
}

impl Case {
    fn plan(&self, run: &Run<'_>, seed: u64) -> Plan {
        let pace = Pace::Open {
            arrivals: Arrivals::Poisson(self.per_s),
            burst: 1,
            idle: Idle::Sleep,
        };
        Plan {
            connections: CONNECTIONS,
            large: Some(LargeApart {
                connections: LARGE_CONNECTIONS,
                threads: 1,
            }),
            kernel_timestamps: true,
            real_time: true,
            warm_up: WarmUp::Fixed(run.warm_up()),
            measured: Some(run.measured(1000)),
            seed,
            ..Plan::new(Requests::Drawn(self.workload.clone()), pace)
        }
    }

    fn points(&self, run: &Run<'_>, (outcome, turns): (Outcome, f64)) -> Vec<Point> {
        let of = |groups: &[Group]| Latency::of(&outcome.sizes.of(groups));
        let small = of(&[Group::Tiny, Group::Small]);
        let [cpu, latency] = self.panels;
        let point = |panel, us| Point::new(panel, self.handling, &*self.place, us);
        // A quick run, which proves nothing, has too few requests for a percentile.
        let p99_us = small.p99_us.or(run.pick(None, Some(small.max_us)));
        let of_latency = p99_us.map(|p99_us| {
            point(latency, p99_us)
                .also(P50, small.p50_us)
                .also_if(LARGE_P99, of(&[Group::Large]).p99_us)
                .also_if(LATE, Latency::of(&outcome.lateness).p99_us)
        });
        let of_cpu = point(cpu, outcome.server_ns_per_operation() / 1e3).also(TURNS, turns);
        [of_cpu].into_iter().chain(of_latency).collect()
    }
}

impl Figure for Whole {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-whole",
            title: "Large values in slices and whole at a live server",
            source: "Minos (NSDI'19), §3.1",
            claim: "Splitting large requests may cost efficiency: worse locality, and a scheduler \
                    whose costs count at a scale of microseconds. So Minos runs each to its end.",
            here: "A server with the default of `--slice-bytes`, and one with `off`, which sends \
                   and receives values whole as the paper's systems do, get the same requests in \
                   turn, over TCP on loopback. 4,000 small requests per second, for values of 100 \
                   bytes, come beside 400 MB of large values per second, all of 100 KB or all of 1 \
                   MB, all GETs or all SETs. Arrivals are at random (Poisson), and a latency \
                   counts from the time a request was due until the kernel received its reply. \
                   Small requests have a client thread with real-time priority, and large ones \
                   another. One worker has a core, and the client the other one. Two workers share \
                   both cores with the client, so compare the bars of one panel. `client late p99` \
                   in the data says how late the client sent its requests. It is that of both \
                   threads together, and up to half of the requests are for large values, so it \
                   does not tell how late the small ones were. Where it is above half of the p99, \
                   the p99 may be that of the client, and says nothing about the server; a table \
                   below has the number of such bars.",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 4096),
            columns: Columns {
                panel: "what",
                series: "large values",
                x: "requests",
                y: "µs",
            },
            plot: Plot::bars("", "").unit(Unit::Microseconds),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut cases = Vec::new();
        for (threads, policy, panels) in SERVERS {
            for (length, bytes) in LENGTHS {
                for (verb, gets) in VERBS {
                    for (handling, arguments) in HANDLING {
                        let large_per_s = LARGE_BYTES_PER_S / f64::from(bytes);
                        let workload = Workload {
                            keys: run.pick(KEYS, 100),
                            law: Law::Uniform,
                            key_bytes: 16,
                            sizes: sizes(bytes, large_per_s)?,
                            mix: Mix::reads(gets),
                        };
                        let system = System::glimmer("crcw").threads(threads);
                        let system = system.dispatch(policy).arguments(arguments);
                        cases.push(Case {
                            server: system.start_with(run, &workload, MEMORY_MIB)?,
                            handling,
                            panels,
                            place: format!("{verb} {length}"),
                            workload,
                            per_s: SMALL_PER_S + large_per_s,
                        });
                    }
                }
            }
        }
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, seed| {
            let measured = case.server.measure_turns(case.plan(run, seed + 1))?;
            Ok(case.points(run, measured))
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (_, _, panels) in SERVERS {
            for panel in panels {
                let places = data.places(panel).into_iter().cloned();
                let ratios = places.filter_map(|place| data.ratio(panel, place, SLICED, WHOLE));
                let told: Vec<String> =
                    ratios.map(|ratio| format!("{:.2}", ratio.median)).collect();
                shape.beside(
                    &format!("{panel}: slices over whole values, by requests"),
                    "",
                    (!told.is_empty()).then(|| told.join(", ")),
                );
            }
            let [_, latency] = panels;
            let bars: Vec<_> = data
                .rows
                .iter()
                .filter(|row| row.panel == latency)
                .collect();
            let is_late = |row: &&&Row| {
                let late = row.also(LATE);
                late.is_some_and(|late| late > LATE_MAX * row.spread().median)
            };
            shape.beside(
                &format!("{latency}: bars at which the client was late by more than half of it"),
                "",
                (!bars.is_empty())
                    .then(|| format!("{} of {}", bars.iter().filter(is_late).count(), bars.len())),
            );
        }
    }
}

/// Small values, and large ones in the share that their rate has.
fn sizes(bytes: u32, large_per_s: f64) -> Result<Sizes> {
    let weights = [(SMALL_BYTES, SMALL_PER_S), (bytes, large_per_s)];
    let lengths = Empirical::new("small and large", &weights).map_err(Error::msg)?;
    Ok(Sizes::Empirical(lengths))
}
