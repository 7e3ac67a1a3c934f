//! Large values: bytes per second of values of 10 KB, 100 KB and 1 MB.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{Bench, Scenario};
use crate::{
    client::{
        VALUE_BYTES_MAX,
        closed::{Burst, Plan},
    },
    row::{self, BUSY, Column, Figure, HITS, MISSES, Row},
    servers::{Contender, Launch, Server},
};
use glimmer_loadgen::{load::Pass, workload::Popularity};
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
};

/// Connections of the client, whatever `--connections` says. Each has [`REQUESTS`] in flight, which
/// bounds the client's memory: a few times as many largest values.
const CONNECTIONS: usize = 4;
const REQUESTS: u32 = 2;
/// Bytes of values in every server: more than most caches of a processor hold.
const DATA_BYTES: usize = 256 << 20;
/// The values take at most this part (1 / n) of a server's memory, so that nothing is evicted.
const MEMORY_PART: usize = 8;

/// Lengths of values in bytes, with their names and the loads that are measured.
const SIZES: [(usize, &str, &[Load]); 3] = [
    (10 << 10, "10 KB", &[Load::Get]),
    (100 << 10, "100 KB", &[Load::Get]),
    (VALUE_BYTES_MAX, "1 MB", &[Load::Get, Load::Set]),
];

/// What a client does with large values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Load {
    Get,
    Set,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Load::Get => "GET",
            Load::Set => "SET",
        }
    }
}

const BYTES: Figure = Figure::repeated("value_bytes_per_s");
/// CPU time of the server for a MiB of values, in microseconds.
const SERVER_US: Figure = Figure::repeated("server_us_per_mib");

/// All servers under one load.
#[derive(Debug, Serialize)]
struct Measured {
    size: &'static str,
    value_bytes: usize,
    load: Load,
    rows: Vec<Row>,
}

/// All loads.
#[derive(Debug, Serialize)]
pub struct Comparison {
    tables: Vec<Measured>,
}

/// Measurements per repetition.
pub fn cases(servers: &[Contender]) -> usize {
    servers.len() * SIZES.iter().map(|(_, _, loads)| loads.len()).sum::<usize>()
}

/// Measures all servers in turn. They are started again for each length.
pub fn compare(bench: &mut Bench<'_>) -> Result<Comparison> {
    let mut tables = Vec::new();
    for (value_bytes, size, loads) in SIZES {
        let keys = keys(bench.options.memory_mib, value_bytes);
        let servers = start(bench, value_bytes, keys)?;
        for &load in loads {
            let rows = measure(bench, &servers, (size, value_bytes), keys, load)?;
            tables.push(Measured {
                size,
                value_bytes,
                load,
                rows,
            });
        }
    }
    Ok(Comparison { tables })
}

/// Number of keys for values of a length.
fn keys(memory_mib: usize, value_bytes: usize) -> u32 {
    let data_bytes = DATA_BYTES.min((memory_mib << 20) / MEMORY_PART);
    (data_bytes / value_bytes).max(1) as u32
}

/// Starts every server and stores all keys in each.
fn start(bench: &Bench<'_>, value_bytes: usize, keys: u32) -> Result<Vec<Server>> {
    let start = |contender: &Contender| {
        let launch = Launch {
            value_bytes,
            udp: false,
            ..bench.launch(contender, 1, vec![SERVER_CORE])
        };
        let server = launch.start()?;
        let fill = || server.pass(Pass::Write, 0..keys, |_| {});
        machine::on_core(Some(CLIENT_CORE), fill)??;
        Ok(server)
    };
    bench.options.servers.iter().map(start).collect()
}

fn measure(
    bench: &mut Bench<'_>,
    servers: &[Server],
    (size, value_bytes): (&str, usize),
    keys: u32,
    load: Load,
) -> Result<Vec<Row>> {
    let figures = [BYTES, BUSY, SERVER_US, HITS, MISSES];
    let row = |server: &Server| Row::of_server(server.name(), &figures);
    let mut rows: Vec<Row> = servers.iter().map(row).collect();
    let mib = value_bytes as f64 / f64::from(1 << 20);
    for repetition in 0..bench.options.repeat {
        bench.look_at_machine()?;
        let plan = Plan {
            connections: CONNECTIONS,
            cores: bench.options.client_cores.clone(),
            burst: Burst::Single {
                requests: REQUESTS,
                get_share: if load == Load::Get { 1.0 } else { 0.0 },
            },
            popularity: Popularity::uniform(u64::from(keys)),
            warm_up: bench.options.warm_up(),
            measured: bench.options.measured,
            seed: repetition as u64,
        };
        for (server, row) in servers.iter().zip(&mut rows) {
            let outcome = machine::on_core(Some(CLIENT_CORE), || server.closed(&plan))??;
            let bytes_per_s = outcome.operations_per_s() * value_bytes as f64;
            row.add(BYTES, bytes_per_s);
            row.add(BUSY, outcome.client_busy());
            row.add(SERVER_US, outcome.server_ns_per_operation() / 1e3 / mib);
            row.count(HITS, outcome.tally.hits);
            row.count(MISSES, outcome.tally.misses);
            let (name, load) = (&row.name, load.name().to_lowercase());
            // Progress lines are lower-case but for units.
            let size = size.replace("KB", "k").replace("MB", "M");
            let line = format_args!("{load} {size}, {name}, {:.0} M bytes/s", bytes_per_s / 1e6);
            bench.step(Scenario::Large, repetition, line);
        }
    }
    Ok(rows)
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        row::apart(&self.tables, out)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.rows[0];
        let (load, size) = (self.load.name(), self.size);
        let columns = [
            row::name(format!(
                "{load} of {size}, {CONNECTIONS} connections, pipeline {REQUESTS}"
            )),
            row::scaled("GB/s", BYTES, 1e9, 2),
            row::speedup(BYTES, first),
            row::busy(),
            row::spread("server CPU µs/MiB", SERVER_US, 0),
            Column::new("misses", |row: &Row| {
                let misses = row.counted(MISSES);
                let reads = (row.counted(HITS) + misses).max(1) as f64;
                format!("{:.3}%", misses as f64 / reads * 100.0)
            }),
        ];
        let table = Table::of(&self.rows, columns);
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_fit_into_the_servers() {
        assert_eq!(keys(4096, 10 << 10), 26_214);
        for (value_bytes, _, _) in SIZES {
            let bytes = keys(64, value_bytes) as usize * value_bytes;
            assert!((7 << 20..=8 << 20).contains(&bytes), "{bytes}");
        }
        assert_eq!(keys(1, VALUE_BYTES_MAX), 1);
    }
}
