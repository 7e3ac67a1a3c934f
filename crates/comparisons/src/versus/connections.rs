//! One connection to many, with one request in flight on each.

use std::fmt;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    Bench, ECHO_NAME, GET_SHARE, Scenario,
    ways::{self, Way},
};
use crate::{
    client::{
        closed::{Burst, Plan},
        open::histogram,
    },
    row::{self, BUSY, Figure, HITS, LOST, MISSES, RATE, Row, SERVER_NS},
    servers::{Contender, Server},
};
use glimmer_loadgen::load::Latency;
use glimmer_measure::{
    machine::{self, CLIENT_CORE},
    report::Table,
};
use glimmer_notation::{microseconds, per_second};

/// Descriptors of a process beside its connections, at most.
pub const SPARE: usize = 64;

const P50: Figure = Figure::repeated("latency_p50_us");
const P99: Figure = Figure::repeated("latency_p99_us");
const P999: Figure = Figure::repeated("latency_p999_us");
/// The 99.9th percentile over all repetitions together, in microseconds.
const P999_ALL: Figure = Figure::sum("latency_p999_all_us");
const FIGURES: [Figure; 10] = [
    RATE, P50, P99, P999, P999_ALL, BUSY, SERVER_NS, HITS, MISSES, LOST,
];

/// All servers with one number of connections.
#[derive(Debug, Serialize)]
struct Measured {
    connections: usize,
    /// The bare echo last, if it takes part.
    rows: Vec<Row>,
}

/// All numbers of connections.
#[derive(Debug, Serialize)]
pub struct Comparison {
    tables: Vec<Measured>,
}

/// Measurements per repetition.
pub fn cases(servers: &[Contender], counts: &[usize], has_echo: bool) -> usize {
    counts.len() * (ways::cases(servers) + usize::from(has_echo))
}

/// Measures all servers and the bare echo in turn, with each number of connections.
pub fn compare(bench: &mut Bench<'_>) -> Result<Comparison> {
    let counts = &bench.options.many_connections;
    let echo = bench.echo()?;
    let tables = counts.iter().map(|&connections| {
        let rows = measure(bench, echo.as_ref(), connections)?;
        Ok(Measured { connections, rows })
    });
    Ok(Comparison {
        tables: tables.collect::<Result<_>>()?,
    })
}

fn measure(bench: &mut Bench<'_>, echo: Option<&Server>, connections: usize) -> Result<Vec<Row>> {
    let options = bench.options;
    let case = |name| (Row::of_server(name, &FIGURES), histogram());
    let of_servers = bench.cases(|server| ways::usual(server, &options.servers), case);
    let servers = of_servers
        .into_iter()
        .map(|(place, way, case)| (Some(place), way, case));
    let of_echo = echo.map(|_| (None, Way::Usual, case(ECHO_NAME.to_owned())));
    let mut cases: Vec<_> = servers.chain(of_echo).collect();
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
            warm_up: options.warm_up(),
            measured: options.measured,
            seed: repetition as u64,
        };
        for (place, way, (row, all)) in &mut cases {
            let server = place.map_or(echo, |place| Some(&bench.servers[place]));
            let server = server.expect("the echo runs if it has a row");
            let target = way.target(server);
            let drive = || server.closed_at(&target, &plan);
            let outcome = machine::on_core(Some(CLIENT_CORE), drive)??;
            let latency_ns = outcome.latency_ns();
            all.add(&latency_ns).context("histograms of one shape")?;
            super::add(row, &outcome);
            row.count_reads(&outcome.tally);
            let latency = Latency::of(&latency_ns);
            row.add(P50, latency.p50_us);
            row.add_told(P99, latency.p99_us);
            row.add_told(P999, latency.p999_us);
            let (rate, (slow, us)) = (per_second(outcome.operations_per_s()), latency.slow());
            let us = microseconds(us);
            let line = format_args!("{connections}, {}, {rate}, {slow} {us}", row.name);
            bench.step(Scenario::Connections, repetition, line);
        }
    }
    let finish = |(_, _, (mut row, all)): (_, _, (Row, Histogram<u64>))| {
        row.add_told(P999_ALL, Latency::of(&all).p999_us);
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
        let echo = self.rows.iter().find(|row| row.name == ECHO_NAME);
        let columns = [
            row::name(format!(
                "{} connection{}, pipeline 1, 95% reads",
                self.connections,
                if self.connections == 1 { "" } else { "s" },
            )),
            row::scaled("k ops/s", RATE, 1e3, 0),
            row::speedup(RATE, first),
            row::spread("p50 µs", P50, 0),
            row::spread("p99 µs", P99, 0),
            row::spread("p99.9 µs", P999, 0),
            row::ratio(format!("p99 of {} / p99 of this", first.name), P99, first),
            row::sum("p99.9 of all, µs", P999_ALL, 0),
            row::busy(),
            row::spread("server CPU ns/op", SERVER_NS, 0),
        ];
        let columns = columns
            .into_iter()
            .chain(echo.into_iter().flat_map(row::beside_echo))
            .chain([row::of_reads("misses", MISSES)]);
        let table = Table::of(&self.rows, columns);
        write!(out, "{table}")
    }
}
