//! Large values: bytes per second of values of 10 KB, 100 KB and 1 MB.

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use super::{Bench, Scenario, WARM_UP};
use crate::{
    client::{
        VALUE_BYTES_MAX,
        closed::{Burst, Outcome, Plan},
    },
    servers::{Kind, Launch, Server},
};
use glimmer_loadgen::{load::Pass, workload::Popularity};
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    report::Table,
    stats::Spread,
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

/// The repetitions of one server.
#[derive(Debug, Serialize)]
struct Row {
    server: String,
    value_bytes_per_s: Vec<f64>,
    client_busy: Vec<f64>,
    /// CPU time of the server for a MiB of values, in microseconds.
    server_us_per_mib: Vec<f64>,
    hits: u64,
    misses: u64,
}

impl Row {
    fn add(&mut self, outcome: &Outcome, value_bytes: usize) {
        let mib = value_bytes as f64 / f64::from(1 << 20);
        self.value_bytes_per_s
            .push(outcome.operations_per_s() * value_bytes as f64);
        self.client_busy.push(outcome.client_busy());
        self.server_us_per_mib
            .push(outcome.server_ns_per_operation() / 1e3 / mib);
        self.hits += outcome.tally.hits;
        self.misses += outcome.tally.misses;
    }
}

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
pub fn cases(servers: &[Kind]) -> usize {
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
    let start = |&kind: &Kind| {
        let launch = Launch {
            value_bytes,
            udp: false,
            ..bench.launch(kind, 1, vec![SERVER_CORE])
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
    let row = |server: &Server| Row {
        server: server.kind().name().to_owned(),
        value_bytes_per_s: vec![],
        client_busy: vec![],
        server_us_per_mib: vec![],
        hits: 0,
        misses: 0,
    };
    let mut rows: Vec<Row> = servers.iter().map(row).collect();
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
            warm_up: WARM_UP,
            measured: bench.options.measured,
            seed: repetition as u64,
        };
        for (server, row) in servers.iter().zip(&mut rows) {
            let outcome = machine::on_core(Some(CLIENT_CORE), || server.closed(&plan))??;
            row.add(&outcome, value_bytes);
            let bytes_per_s = outcome.operations_per_s() * value_bytes as f64;
            let (name, load) = (&row.server, load.name().to_lowercase());
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
            format!(
                "{} of {}, {CONNECTIONS} connections, pipeline {REQUESTS}",
                self.load.name(),
                self.size
            ),
            "GB/s".to_owned(),
            format!("speedup of {} over this", first.server),
            "client busy".to_owned(),
            "server CPU µs/MiB".to_owned(),
            "misses".to_owned(),
        ]);
        for row in &self.rows {
            let Spread { median, min, max } = Spread::of(&row.value_bytes_per_s);
            let reads = (row.hits + row.misses).max(1) as f64;
            table.row([
                row.server.clone(),
                format!("{:.2} ({:.2}..{:.2})", median / 1e9, min / 1e9, max / 1e9),
                Spread::of_ratios(&first.value_bytes_per_s, &row.value_bytes_per_s).text(2),
                format!("{:.0}%", Spread::of(&row.client_busy).median * 100.0),
                Spread::of(&row.server_us_per_mib).text(0),
                format!("{:.3}%", row.misses as f64 / reads * 100.0),
            ]);
        }
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
