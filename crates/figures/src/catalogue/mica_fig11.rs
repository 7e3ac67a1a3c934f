//! MICA, Figure 11: the work of each core under uniform and skewed load, and the reason for it.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::{Arrivals, Idle, Pace};

use crate::{
    Columns, Figure, Kind, Needs, Point, Row, Run, Spec,
    plot::{Mark, Plot},
    systems::{Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
const WORKERS: usize = 2;
const MEMORY_MIB: usize = 4096;
/// Sockets of the client, and requests in flight on each in a closed loop.
const SOCKETS: usize = 4;
const IN_FLIGHT: u32 = 512;
/// Offered rates, as fractions of the closed loop's rate.
const PARTS: [f64; 5] = [0.05, 0.1, 0.25, 0.5, 0.75];
/// The closed loop.
const ALL: f64 = 1.0;
/// Reads in percent (MICA §5.2).
const GETS: u32 = 50;
const BURSTS: &str = "datagrams per receiving system call";
const COSTS: &str = "CPU time per request, ns";
const SHARE: &str = "part of the requests";
/// Cores in the order of their load under skew.
const LEAST: &str = "least loaded core";
const MOST: &str = "most loaded core";

/// The figure.
pub struct Bursts;

/// Two points of each panel, one for each core.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    skewed: bool,
    part: f64,
    pace: Pace,
}

impl Case<'_> {
    fn mix(&self) -> Mix {
        Mix::new(self.skewed, GETS)
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {:.0}%", self.mix(), self.part * 100.0)
    }
}

fn series(skewed: bool, core: &str) -> String {
    let law = if skewed { "skewed" } else { "uniform" };
    format!("{law}, {core}")
}

impl Figure for Bursts {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig11",
            title: "Burst size and cost per request, by core and load",
            source: "MICA (NSDI'14), Figure 11, §5.2, and the doubt of the Formica review",
            claim: "Under skewed load, several cores process more requests than under uniform \
                    load, because they process requests more efficiently. The burst size of the \
                    most loaded core rises from 10.2 to 17.3 packets per I/O, which makes each \
                    packet cheaper, and the hit ratio of the processor's caches rises from 67.8 to \
                    77.8%. The Formica review doubts it: bursts grow only when a core cannot keep \
                    up.",
            here: "One EREW server with two workers serves the native protocol, with tiny items \
                   and 50% GET. It has 2 cores instead of 16, so Zipf's law loads the busier core \
                   only a little more than the other. The horizontal axis is the throughput of \
                   each core. It ranges from 5% to 75% of the server's maximum, in an open loop \
                   with Poisson arrivals, up to the maximum itself, in a closed loop. A burst is \
                   the requests that one system call receives. Where cores are not busy, the CPU \
                   time includes the time that workers spend looking for more requests.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 1024),
            columns: Columns {
                panel: "panel",
                series: "core",
                x: "part of the highest rate",
                y: "burst size, or CPU time",
            },
            plot: Plot::lines("requests per second of the core", "")
                .log_x()
                .log_y()
                .paper(
                    "MICA §5.2: packets per I/O of the most loaded core at the highest rate, 10.2 \
                     uniform and 17.3 skewed",
                    vec![
                        Mark::end(BURSTS, "uniform, most loaded core", 10.2),
                        Mark::end(BURSTS, "skewed, most loaded core", 17.3),
                    ],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let system = System::native("erew").threads(WORKERS);
        let server = system.memory_mib(MEMORY_MIB).start(run, items)?;
        let parts = run.pick(&PARTS[..], &PARTS[1..2]);
        let mut cases = Vec::new();
        for skewed in [false, true] {
            let case = |part, pace| Case {
                server: &server,
                items,
                skewed,
                part,
                pace,
            };
            let most = case(
                ALL,
                Pace::Closed {
                    in_flight: IN_FLIGHT,
                },
            );
            run.say(format!("{}: the highest rate", most.mix()));
            let rate = most.outcome(run, 0)?.operations_per_s();
            cases.extend(parts.iter().map(|&part| {
                let arrivals = Arrivals::Poisson((rate * part).round().max(1000.0));
                let pace = Pace::Open {
                    arrivals,
                    burst: 1,
                    idle: Idle::Sleep,
                };
                case(part, pace)
            }));
            cases.push(most);
        }
        run.rounds_of_many(run.repeat(5), &mut cases, measure_one)
    }
}

impl Case<'_> {
    fn outcome(&self, run: &Run<'_>, seed: u64) -> Result<glimmer_loadgen::load::Outcome> {
        let mut plan = self.mix().plan(run, self.items, 1, self.pace, 700);
        (plan.connections, plan.seed) = (SOCKETS, seed);
        self.server.measure(plan)
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Vec<Point>> {
    let before = case.server.native_workers()?;
    let outcome = case.outcome(run, seed)?;
    let mut workers: Vec<_> = (case.server.native_workers()?.into_iter())
        .zip(before)
        .map(|(after, before)| after.since(before))
        .collect();
    workers.sort_by_key(|worker| worker.requests);
    let all: u64 = workers.iter().map(|worker| worker.requests).sum();
    let mut points = Vec::new();
    for (worker, core) in workers.iter().zip([LEAST, MOST]) {
        let share = worker.requests as f64 / all.max(1) as f64;
        let measured = [(BURSTS, worker.burst()), (COSTS, worker.ns_per_request())];
        points.extend(measured.map(|(panel, value)| {
            Point::new(panel, series(case.skewed, core), case.part, value)
                .also(Row::ACROSS, outcome.operations_per_s() * share)
                .also(SHARE, share)
        }));
    }
    Ok(points)
}
