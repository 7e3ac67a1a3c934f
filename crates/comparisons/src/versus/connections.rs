//! Many connections, with one request in flight on each.

use std::fmt;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Bench, GET_SHARE, Scenario, WARM_UP, quantile_us, ways};
use crate::{
    client::{
        closed::{Burst, Plan},
        open::histogram,
    },
    row::{self, BUSY, Figure, RATE, Row, SERVER_NS},
    servers::Kind,
};
use glimmer_measure::{
    machine::{self, CLIENT_CORE},
    report::Table,
};
use glimmer_notation::{microseconds, per_second};

/// Descriptors of a process beside its connections, at most.
pub const SPARE: usize = 64;

const P50: Figure = Figure::repeated("latency_p50_us");
const P999: Figure = Figure::repeated("latency_p999_us");
/// The 99.9th percentile over all repetitions together, in microseconds.
const P999_ALL: Figure = Figure::sum("latency_p999_all_us");
const FIGURES: [Figure; 6] = [RATE, P50, P999, P999_ALL, BUSY, SERVER_NS];

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
    let case = |name| (Row::of_server(name, &FIGURES), histogram());
    let mut cases = bench.cases(|kind| ways::usual(kind, &options.servers), case);
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
        for (place, way, (row, all)) in &mut cases {
            let server = &bench.servers[*place];
            let target = way.target(server);
            let drive = || server.closed_at(&target, &plan);
            let outcome = machine::on_core(Some(CLIENT_CORE), drive)??;
            let latency_ns = outcome.latency_ns();
            all.add(&latency_ns).context("histograms of one shape")?;
            super::add(row, &outcome);
            let p999_us = quantile_us(&latency_ns, 0.999);
            row.add(P50, quantile_us(&latency_ns, 0.5));
            row.add(P999, p999_us);
            let (rate, p999) = (
                per_second(outcome.operations_per_s()),
                microseconds(p999_us),
            );
            let line = format_args!("{connections}, {}, {rate}, p99.9 {p999}", row.name);
            bench.step(Scenario::Connections, repetition, line);
        }
    }
    let finish = |(_, _, (mut row, all)): (_, _, (Row, Histogram<u64>))| {
        row.add(P999_ALL, quantile_us(&all, 0.999));
        row
    };
    Ok(cases.into_iter().map(finish).collect())
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        row::apart(&self.tables, out)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let columns = [
            row::name(format!(
                "{} connections, pipeline 1, 95% reads",
                self.connections
            )),
            row::scaled("k ops/s", RATE, 1e3, 0),
            row::speedup(RATE, first),
            row::spread("p50 µs", P50, 0),
            row::spread("p99.9 µs", P999, 0),
            row::ratio(
                format!("p99.9 of {} / p99.9 of this", first.name),
                P999,
                first,
            ),
            row::sum("p99.9 of all, µs", P999_ALL, 0),
            row::busy(),
            row::spread("server CPU ns/op", SERVER_NS, 0),
        ];
        let table = Table::of(&self.rows, columns);
        write!(out, "{table}")
    }
}
