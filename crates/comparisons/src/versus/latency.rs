//! Latency in an open loop, at a rate that memcached sustains.

use std::fmt;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, GET_SHARE, SATURATED, Scenario, say_saturated, throughput, ways};
use crate::{
    client::{
        closed::{self, Burst},
        open::{Idle, Plan, histogram},
    },
    row::{self, Figure, HITS, LOST, MISSES, RATE, Row, SERVER_NS},
    servers::{Contender, Kind},
};
use glimmer_loadgen::load::{Latency, sweep};
use glimmer_measure::{
    machine::{self, CLIENT_CORE},
    report::Table,
};
use glimmer_notation::{microseconds, per_second};

/// Latencies are compared at this share of memcached's maximum rate.
const PART_OF_MAXIMUM: f64 = 0.7;
const BURST: Burst = Burst::Single {
    requests: 1,
    get_share: GET_SHARE,
};
// Percentiles of each repetition, in microseconds.
const P50: Figure = Figure::part("latency_us", 0);
const P99: Figure = Figure::part("latency_us", 1);
const P999: Figure = Figure::part("latency_us", 2);
/// The 99th percentile over all repetitions together, in microseconds.
const P99_ALL: Figure = Figure::sum("latency_p99_all_us");
/// How late the client sent: the 99th percentile over all repetitions, in microseconds.
const LATE_P99: Figure = Figure::sum("client_late_p99_us");
const FIGURES: [Figure; 10] = [
    P50, P99, P999, P99_ALL, SERVER_NS, LATE_P99, SATURATED, HITS, MISSES, LOST,
];

/// All servers at one rate.
#[derive(Debug, Serialize)]
pub struct Comparison {
    requests_per_s: f64,
    rows: Vec<Row>,
}

/// Measures all servers in turn at 70% of memcached's maximum. The maximum comes from earlier runs
/// or is measured first.
pub fn compare(bench: &mut Bench<'_>, before: &[throughput::Comparison]) -> Result<Comparison> {
    let options = bench.options;
    let requests_per_s = PART_OF_MAXIMUM * maximum(bench, before)?;
    bench.say(format_args!(
        "{}: offering {}",
        Scenario::OpenLoop.name(),
        per_second(requests_per_s)
    ));
    let case = |name| (Row::of_server(name, &FIGURES), [histogram(), histogram()]);
    let mut cases = bench.cases(|server| ways::usual(server, &options.servers), case);
    for repetition in 0..options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: options.connections,
            burst: BURST,
            arrivals_per_s: requests_per_s,
            popularity: options.popularity,
            idle: Idle::Spin,
            warm_up: options.warm_up(),
            measured: options.measured,
            seed: repetition as u64,
        };
        for (place, way, (row, [all, late])) in &mut cases {
            let server = &bench.servers[*place];
            let target = way.target(server);
            let drive = || server.open_at(&target, &plan);
            let result = machine::on_core(Some(CLIENT_CORE), drive)??;
            let latency = Latency::of(&result.latency_ns);
            row.add(P50, latency.p50_us);
            row.add_told(P99, latency.p99_us);
            row.add_told(P999, latency.p999_us);
            row.add(SERVER_NS, result.outcome.server_ns_per_operation());
            row.count_reads(&result.outcome.tally);
            row.count(SATURATED, (!sweep::kept_up(&result.outcome)).into());
            all.add(&result.latency_ns)
                .context("histograms of one shape")?;
            late.add(&result.lateness_ns)
                .context("histograms of one shape")?;
            let (slow, us) = latency.slow();
            let line = format!("{}, {slow} {}", row.name, microseconds(us));
            bench.step(Scenario::OpenLoop, repetition, line);
        }
    }
    let rows = cases.into_iter().map(|(_, _, (mut row, [all, late]))| {
        row.add_told(P99_ALL, Latency::of(&all).p99_us);
        row.add_told(LATE_P99, Latency::of(&late).p99_us);
        row
    });
    Ok(Comparison {
        requests_per_s,
        rows: rows.collect(),
    })
}

/// memcached's operations per second with one request in flight on every connection; without
/// memcached, the first server's.
fn maximum(bench: &Bench<'_>, before: &[throughput::Comparison]) -> Result<f64> {
    let yardstick = |server: &&Contender| server.kind() == Kind::Memcached;
    let yardstick = bench
        .options
        .servers
        .iter()
        .find(yardstick)
        .unwrap_or(&bench.options.servers[0]);
    let known = before
        .iter()
        .find(|comparison| comparison.scenario == Scenario::Pipeline1);
    if let Some(row) = known.and_then(|c| c.rows.iter().find(|row| row.name == yardstick.name())) {
        return Ok(row.spread(RATE).median);
    }
    let server = bench
        .servers
        .iter()
        .find(|server| server.contender() == yardstick);
    let server = server.context("the servers are running")?;
    let plan = closed::Plan {
        connections: bench.options.connections,
        // The open loop has one thread.
        cores: Vec::new(),
        burst: BURST,
        popularity: bench.options.popularity,
        warm_up: bench.options.warm_up(),
        measured: bench.options.measured,
        seed: 0,
    };
    let outcome = machine::on_core(Some(CLIENT_CORE), || server.closed(&plan))??;
    Ok(outcome.operations_per_s())
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let rate = self.requests_per_s / 1e3;
        let columns = [
            row::name(format!("open loop, {rate:.0} k requests/s, 95% reads")),
            row::spread("p50 µs", P50, 0),
            row::spread("p99 µs", P99, 0),
            row::spread("p99.9 µs", P999, 0),
            row::ratio(format!("p99 of {} / p99 of this", first.name), P99, first),
            row::sum("p99 of all, µs", P99_ALL, 0),
            row::spread("server CPU ns/op", SERVER_NS, 0),
            row::sum("client late p99 µs", LATE_P99, 0),
            row::of_reads("misses", MISSES),
        ];
        let table = Table::of(&self.rows, columns);
        write!(out, "{table}")?;
        say_saturated(&self.rows, &[P50], out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_did_not_keep_up_is_told() {
        let row = |name, saturated: [u64; 2]| {
            let mut row = Row::of_server(name, &FIGURES);
            for count in saturated {
                for figure in [P50, P99, P999, SERVER_NS] {
                    row.add(figure, 1.0);
                }
                row.count(SATURATED, count);
                row.count(HITS, 300);
                row.count(MISSES, 100 * count);
            }
            row
        };
        let comparison = Comparison {
            requests_per_s: 1000.0,
            rows: vec![row("fast", [0, 0]), row("slow", [1, 0])],
        };
        let shown = comparison.to_string();
        // One of the two repetitions of the slow server missed 100 of 700 reads in all.
        assert!(shown.contains("misses |\n"), "{shown}");
        assert!(
            shown.contains(" 0.000% |\n") && shown.contains(" 14.286% |\n"),
            "{shown}"
        );
        let (_, remarks) = shown.split_once("SATURATED").expect(&shown);
        assert!(remarks.starts_with(" in 1 of 2: slow "), "{shown}");
        assert!(!remarks.contains("fast"), "{shown}");
    }
}
