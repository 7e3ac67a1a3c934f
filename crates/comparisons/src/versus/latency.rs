//! Latency in an open loop, at a rate that memcached sustains.

use std::fmt;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, GET_SHARE, Scenario, WARM_UP, throughput, ways};
use crate::{
    client::{
        closed::{self, Burst},
        open::{Idle, Plan, histogram},
    },
    servers::Kind,
};
use glimmer_measure::{
    machine::{self, CLIENT_CORE},
    report::Table,
    stats::Spread,
};
use glimmer_notation::{microseconds, per_second};

/// Latencies are compared at this share of memcached's maximum rate.
const PART_OF_MAXIMUM: f64 = 0.7;
const BURST: Burst = Burst::Single {
    requests: 1,
    get_share: GET_SHARE,
};
/// The reported quantiles.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// The repetitions of one server.
#[derive(Debug, Serialize)]
struct Row {
    server: String,
    /// For every reported quantile, its repetitions in microseconds.
    latency_us: [Vec<f64>; 3],
    /// The 99th percentile over all repetitions together, in microseconds.
    latency_p99_all_us: f64,
    server_ns_per_operation: Vec<f64>,
    /// How late the client sent: the 99th percentile over all repetitions, in microseconds.
    client_late_p99_us: f64,
}

impl Row {
    fn new(server: String) -> Row {
        Row {
            server,
            latency_us: Default::default(),
            latency_p99_all_us: 0.0,
            server_ns_per_operation: vec![],
            client_late_p99_us: 0.0,
        }
    }
}

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
    let ways = bench
        .servers
        .iter()
        .enumerate()
        .flat_map(|(place, server)| {
            let ways = ways::usual(server.kind(), &options.servers).into_iter();
            ways.map(move |(name, way)| (place, way, Row::new(name), [histogram(), histogram()]))
        });
    let mut cases: Vec<_> = ways.collect();
    for repetition in 0..options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: options.connections,
            burst: BURST,
            arrivals_per_s: requests_per_s,
            popularity: options.popularity,
            idle: Idle::Spin,
            warm_up: WARM_UP,
            measured: options.measured,
            seed: repetition as u64,
        };
        for (place, way, row, [all, late]) in &mut cases {
            let server = &bench.servers[*place];
            let target = way.target(server);
            let drive = || server.open_at(&target, &plan);
            let result = machine::on_core(Some(CLIENT_CORE), drive)??;
            for (quantile, values) in QUANTILES.iter().zip(&mut row.latency_us) {
                values.push(result.latency_ns.value_at_quantile(*quantile) as f64 / 1e3);
            }
            row.server_ns_per_operation
                .push(result.outcome.server_ns_per_operation());
            all.add(&result.latency_ns)
                .context("histograms of one shape")?;
            late.add(&result.lateness_ns)
                .context("histograms of one shape")?;
            let p99 = result.latency_ns.value_at_quantile(0.99) as f64 / 1e3;
            let line = format!("{}, p99 {}", row.server, microseconds(p99));
            bench.step(Scenario::OpenLoop, repetition, line);
        }
    }
    let rows = cases.into_iter().map(|(_, _, row, [all, late])| Row {
        latency_p99_all_us: all.value_at_quantile(0.99) as f64 / 1e3,
        client_late_p99_us: late.value_at_quantile(0.99) as f64 / 1e3,
        ..row
    });
    Ok(Comparison {
        requests_per_s,
        rows: rows.collect(),
    })
}

/// memcached's operations per second with one request in flight on every connection; without
/// memcached, the first server's.
fn maximum(bench: &Bench<'_>, before: &[throughput::Comparison]) -> Result<f64> {
    let yardstick = |kind: &&Kind| **kind == Kind::Memcached;
    let kind = bench
        .options
        .servers
        .iter()
        .find(yardstick)
        .unwrap_or(&bench.options.servers[0]);
    let known = before
        .iter()
        .find(|comparison| comparison.scenario == Scenario::Pipeline1);
    if let Some(row) = known.and_then(|c| c.rows.iter().find(|row| row.server == kind.name())) {
        return Ok(Spread::of(&row.operations_per_s).median);
    }
    let server = bench.servers.iter().find(|server| server.kind() == *kind);
    let server = server.context("the servers are running")?;
    let plan = closed::Plan {
        connections: bench.options.connections,
        // The open loop has one thread.
        cores: Vec::new(),
        burst: BURST,
        popularity: bench.options.popularity,
        warm_up: WARM_UP,
        measured: bench.options.measured,
        seed: 0,
    };
    let outcome = machine::on_core(Some(CLIENT_CORE), || server.closed(&plan))??;
    Ok(outcome.operations_per_s())
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let mut table = Table::new([
            format!(
                "open loop, {:.0} k requests/s, 95% reads",
                self.requests_per_s / 1e3
            ),
            "p50 µs".to_owned(),
            "p99 µs".to_owned(),
            "p99.9 µs".to_owned(),
            format!("p99 of {} / p99 of this", first.server),
            "p99 of all, µs".to_owned(),
            "server CPU ns/op".to_owned(),
            "client late p99 µs".to_owned(),
        ]);
        for row in &self.rows {
            let [p50, p99, p999] = row.latency_us.each_ref().map(|values| Spread::of(values));
            table.row([
                row.server.clone(),
                p50.text(0),
                p99.text(0),
                p999.text(0),
                Spread::of_ratios(&first.latency_us[1], &row.latency_us[1]).text(2),
                format!("{:.0}", row.latency_p99_all_us),
                Spread::of(&row.server_ns_per_operation).text(0),
                format!("{:.0}", row.client_late_p99_us),
            ]);
        }
        write!(out, "{table}")
    }
}
