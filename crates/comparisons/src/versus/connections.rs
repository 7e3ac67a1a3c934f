//! Many connections, with one request in flight on each.

use std::fmt;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    Bench, GET_SHARE, Scenario, WARM_UP, thousands,
    ways::{self, Way},
};
use crate::{
    client::{
        closed::{Burst, Outcome, Plan},
        open::histogram,
    },
    servers::Kind,
};
use glimmer_measure::{
    machine::{self, CLIENT_CORE},
    report::Table,
    stats::Spread,
};
use glimmer_notation::{microseconds, per_second};

/// Descriptors of a process beside its connections, at most.
pub const SPARE: usize = 64;

/// The repetitions of one server.
#[derive(Debug, Serialize)]
struct Row {
    server: String,
    operations_per_s: Vec<f64>,
    latency_p50_us: Vec<f64>,
    latency_p999_us: Vec<f64>,
    /// The 99.9th percentile over all repetitions together, in microseconds.
    latency_p999_all_us: f64,
    client_busy: Vec<f64>,
    server_ns_per_operation: Vec<f64>,
}

impl Row {
    fn new(server: String) -> Row {
        Row {
            server,
            operations_per_s: vec![],
            latency_p50_us: vec![],
            latency_p999_us: vec![],
            latency_p999_all_us: 0.0,
            client_busy: vec![],
            server_ns_per_operation: vec![],
        }
    }

    fn add(&mut self, outcome: &Outcome, latency_ns: &Histogram<u64>) {
        let latency_us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        self.operations_per_s.push(outcome.operations_per_s());
        self.latency_p50_us.push(latency_us(0.5));
        self.latency_p999_us.push(latency_us(0.999));
        self.client_busy.push(outcome.client_busy());
        self.server_ns_per_operation
            .push(outcome.server_ns_per_operation());
    }
}

/// All servers with one number of connections.
#[derive(Debug, Serialize)]
struct Measured {
    connections: usize,
    rows: Vec<Row>,
}

/// All numbers of connections.
#[derive(Debug, Serialize)]
pub struct Comparison {
    tables: Vec<Measured>,
}

/// Measurements per repetition.
pub fn cases(servers: &[Kind], counts: &[usize]) -> usize {
    counts.len() * ways::cases(servers)
}

/// Measures all servers in turn, with each number of connections.
pub fn compare(bench: &mut Bench<'_>) -> Result<Comparison> {
    let counts = &bench.options.many_connections;
    let tables = counts.iter().map(|&connections| {
        let rows = measure(bench, connections)?;
        Ok(Measured { connections, rows })
    });
    Ok(Comparison {
        tables: tables.collect::<Result<_>>()?,
    })
}

fn measure(bench: &mut Bench<'_>, connections: usize) -> Result<Vec<Row>> {
    let options = bench.options;
    let ways = bench
        .servers
        .iter()
        .enumerate()
        .flat_map(|(place, server)| {
            let ways = ways::usual(server.kind(), &options.servers).into_iter();
            ways.map(move |(name, way)| (place, way, Row::new(name), histogram()))
        });
    let mut cases: Vec<(usize, Way, Row, Histogram<u64>)> = ways.collect();
    for repetition in 0..options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections,
            cores: options.client_cores.clone(),
            burst: Burst::Single {
                requests: 1,
                get_share: GET_SHARE,
            },
            popularity: options.popularity,
            warm_up: WARM_UP,
            measured: options.measured,
            seed: repetition as u64,
        };
        for (place, way, row, all) in &mut cases {
            let server = &bench.servers[*place];
            let target = way.target(server);
            let drive = || server.closed_at(&target, &plan);
            let outcome = machine::on_core(Some(CLIENT_CORE), drive)??;
            let latency_ns = outcome.latency_ns();
            row.add(&outcome, &latency_ns);
            all.add(&latency_ns).context("histograms of one shape")?;
            let p999_us = latency_ns.value_at_quantile(0.999) as f64 / 1e3;
            let (rate, p999) = (
                per_second(outcome.operations_per_s()),
                microseconds(p999_us),
            );
            let line = format_args!("{connections}, {}, {rate}, p99.9 {p999}", row.server);
            bench.step(Scenario::Connections, repetition, line);
        }
    }
    let finish = |(_, _, row, all): (usize, Way, Row, Histogram<u64>)| Row {
        latency_p999_all_us: all.value_at_quantile(0.999) as f64 / 1e3,
        ..row
    };
    Ok(cases.into_iter().map(finish).collect())
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.tables.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            write!(out, "{one}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let mut table = Table::new([
            format!("{} connections, pipeline 1, 95% reads", self.connections),
            "k ops/s".to_owned(),
            format!("speedup of {} over this", first.server),
            "p50 µs".to_owned(),
            "p99.9 µs".to_owned(),
            format!("p99.9 of {} / p99.9 of this", first.server),
            "p99.9 of all, µs".to_owned(),
            "client busy".to_owned(),
            "server CPU ns/op".to_owned(),
        ]);
        for row in &self.rows {
            table.row([
                row.server.clone(),
                thousands(&Spread::of(&row.operations_per_s)),
                Spread::of_ratios(&first.operations_per_s, &row.operations_per_s).text(2),
                Spread::of(&row.latency_p50_us).text(0),
                Spread::of(&row.latency_p999_us).text(0),
                Spread::of_ratios(&first.latency_p999_us, &row.latency_p999_us).text(2),
                format!("{:.0}", row.latency_p999_all_us),
                format!("{:.0}%", Spread::of(&row.client_busy).median * 100.0),
                Spread::of(&row.server_ns_per_operation).text(0),
            ]);
        }
        write!(out, "{table}")
    }
}
