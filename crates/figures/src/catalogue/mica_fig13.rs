//! MICA, Figure 13: latency by throughput.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::servers::Kind as Server;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
    latency_curve::{self, PANEL},
    plot::{Mark, Plot, Unit},
    systems::{self, Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
/// Uniform keys, 50% reads (MICA §5.3).
const MIX: Mix = Mix::new(false, 50);
const PEERS: [Server; 1] = [Server::Memcached];
const OURS: &str = "glimmer crcw";
const MEMCACHED: &str = "memcached";
/// Offered rates, as fractions of the fastest system's maximum with one request in flight per
/// connection.
const PARTS: [f64; 12] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9,
];
/// No system is offered more than this fraction of its own maximum: beyond saturation, an open loop
/// only measures the length of the queue.
const OWN_PART_MAX: f64 = 0.92;
/// A latency has left its flat part when it exceeds the latency at the lowest rate by this factor.
const KNEE: f64 = 4.0;
const LATE: &str = "client late p99, µs";
const MEAN: &str = "mean, µs";

/// The figure.
pub struct Latency;

/// One point.
struct Case<'a> {
    server: &'a Running,
    items: Items,
    requests_per_s: f64,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} at {:.0} k/s",
            self.server,
            self.requests_per_s / 1e3
        )
    }
}

impl Figure for Latency {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig13",
            title: "Latency by throughput, tiny items, uniform, 50% GET",
            source: "MICA (NSDI'14), Figure 13, §5.3",
            claim: "The original Memcached's latency is almost flat up to a certain throughput. \
                    MICA's latency is between 24 and 52 µs. At a similar latency of 40 µs, MICA \
                    carries 69 Mops, more than two orders of magnitude more than Memcached, which \
                    uses the kernel's network stack.",
            here: "Requests arrive in an open loop: Poisson arrivals on 50 connections, one \
                   request at a time. Latency counts from the time at which a request was due, so \
                   a stall delays every request that arrives during it. The client spins on one \
                   core, and the server has one worker on another. Points are medians; bars span \
                   the 5th to the 95th percentile. Both systems use the kernel's TCP with one \
                   packet per request. The kernel takes most of the time, so the distance between \
                   the systems is smaller than in the paper. Neither system is offered more than \
                   92% of its maximum.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 2,
                cores_of_paper: 16,
                memory_mib: 2048,
                peers: &PEERS,
            },
            columns: latency_curve::COLUMNS,
            plot: Plot::lines("requests per second", "latency")
                .unit(Unit::Microseconds)
                .log_x()
                .log_y()
                .columns(1)
                .paper(
                    "MICA §5.3, for one of its 16 cores: 69 Mops at 40 µs; 24 to 52 µs over all \
                     rates",
                    vec![Mark::point(PANEL, OURS, 69e6 / 16.0, 40.0)],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        let all = vec![System::glimmer("crcw"), System::peer(Server::Memcached)];
        let systems = systems::installed(all, run);
        let start = |system: &System| system.start(run, items);
        let servers = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
        let mut most = Vec::new();
        for server in &servers {
            run.say(format!("{server}: its maximum"));
            let pace = Pace::Closed { in_flight: 1 };
            let outcome = server.measure(MIX.plan(run, items, 1, pace, 1000))?;
            most.push(outcome.operations_per_s());
        }
        let fastest = most.iter().copied().fold(0.0, f64::max);
        let parts = run.pick(&PARTS[..], &PARTS[..2]);
        let mut cases = Vec::new();
        for part in parts {
            let requests_per_s = (fastest * part / 1e3).round().max(1.0) * 1e3;
            for (server, most) in servers.iter().zip(&most) {
                if requests_per_s <= most * OWN_PART_MAX {
                    cases.push(Case {
                        server,
                        items,
                        requests_per_s,
                    });
                }
            }
        }
        run.rounds(run.repeat(3), &mut cases, measure_one)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        latency_curve::judge_lowest(data, OURS, shape);
        let flat = data
            .line(PANEL, MEMCACHED)
            .next()
            .zip(rate_within(data, MEMCACHED, KNEE));
        let last = data.line(PANEL, MEMCACHED).last().and_then(Row::across);
        shape.at_least(
            "memcached's latency is almost flat up to a certain throughput: part of its range \
             within 4 times the lowest latency",
            "most of it",
            flat.zip(last).map(|((_, knee), last)| knee / last),
            0.5,
        );
        let ours = (OURS, "MICA");
        latency_curve::judge_similar(data, ours, MEMCACHED, 1.1, shape);
    }
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Point> {
    let pace = latency_curve::pace(case.requests_per_s);
    let plan = Plan {
        seed,
        ..MIX.plan(run, case.items, 1, pace, 700)
    };
    let found = case.server.measure(plan)?;
    let late = found.lateness.value_at_quantile(0.99) as f64 / 1e3;
    let point = latency_curve::point(case.server.name(), case.requests_per_s, &found);
    Ok(point
        .also(MEAN, found.latency_ns().mean() / 1e3)
        .also(LATE, late))
}

/// The highest throughput up to which a system's median latency stays within `times` that at its
/// lowest rate.
fn rate_within(data: &Data, system: &str, times: f64) -> Option<f64> {
    let lowest = data.line(PANEL, system).next()?.spread().median;
    let mut within = data
        .line(PANEL, system)
        .take_while(|row| row.spread().median <= lowest * times);
    let first = within.next()?.across()?;
    Some(within.filter_map(Row::across).fold(first, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(ours: &[(f64, f64)], theirs: &[(f64, f64)]) -> Vec<String> {
        let mut data = Data::default();
        latency_curve::draw(&mut data, OURS, ours);
        latency_curve::draw(&mut data, MEMCACHED, theirs);
        let mut shape = Shape::default();
        Latency.judge(&data, &mut shape);
        shape
            .failures()
            .map(|finding| finding.what.clone())
            .collect()
    }

    #[test]
    fn the_papers_shape_holds_and_others_do_not() {
        let theirs = [(10.0, 20.0), (50.0, 25.0), (100.0, 40.0), (120.0, 200.0)];
        let ours = [(10.0, 20.0), (100.0, 30.0), (200.0, 90.0)];
        assert_eq!(failures(&ours, &theirs), Vec::<String>::new());
        let slow = failures(
            &[(10.0, 20.0), (100.0, 150.0), (120.0, 300.0), (140.0, 500.0)],
            &theirs,
        );
        assert!(
            slow.len() == 1 && slow[0].contains("throughput of MICA"),
            "{slow:?}"
        );
        let steep = [(10.0, 20.0), (50.0, 200.0), (120.0, 400.0)];
        let bent = failures(&ours, &steep);
        assert!(
            bent.len() == 1 && bent[0].contains("almost flat"),
            "{bent:?}"
        );
    }
}
