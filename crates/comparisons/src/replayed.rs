//! The hit ratio of running servers on a recorded trace, over real connections.

use std::{fmt, time::Duration};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::servers::{CONNECTIONS_MAX, Kind, Launch};
use glimmer_loadgen::{
    load::{Pace, Plan, Requests, Tally, WarmUp},
    workload::trace::Trace,
};
use glimmer_measure::{machine, report::Table};

/// Connections of the one client thread.
const CONNECTIONS: usize = 4;

/// What to replay, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace.
    pub trace: Trace,
    /// Servers, one after the other.
    pub servers: Vec<Kind>,
    /// Their memory limits in MiB.
    pub memory_mib: Vec<usize>,
    /// Their worker threads.
    pub threads: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// One server with one memory limit.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The share of reads that returned a value.
    pub hit_ratio: f64,
    /// Number of reads.
    pub reads: u64,
    /// Writes that the server refused.
    pub refused: u64,
    /// Peak resident memory of the process.
    pub rss_peak_bytes: u64,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub server: String,
    /// Results by memory limit.
    pub cells: Vec<Cell>,
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    trace: Trace,
    memory_mib: Vec<usize>,
    threads: usize,
    /// In the order of the servers.
    pub rows: Vec<Row>,
}

/// Replays the trace against each server with each memory limit. `progress` receives a line for
/// each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let mut rows = Vec::new();
    for &kind in &options.servers {
        let server = kind.version()?;
        let mut cells = Vec::new();
        for &memory_mib in &options.memory_mib {
            let cell = measure(options, kind, memory_mib)?;
            let hits = cell.hit_ratio * 100.0;
            progress(&format!("{server} -m {memory_mib}: {hits:.2}%"));
            cells.push(cell);
        }
        rows.push(Row { server, cells });
    }
    Ok(Report {
        trace: options.trace.clone(),
        memory_mib: options.memory_mib.clone(),
        threads: options.threads,
        rows,
    })
}

fn measure(options: &Options, kind: Kind, memory_mib: usize) -> Result<Cell> {
    let limit = format!("{memory_mib}mb");
    let arguments = match kind {
        Kind::Glimmer => options.glimmer_arguments.clone(),
        Kind::Memcached => Vec::new(),
        Kind::Redis | Kind::Valkey => ["--maxmemory", &limit, "--maxmemory-policy", "allkeys-lru"]
            .map(Into::into)
            .into(),
    };
    let server = Launch {
        kind,
        threads: options.threads,
        cores: (0..machine::cores()).collect(),
        memory_mib,
        value_bytes: 0,
        udp: false,
        connections_max: CONNECTIONS_MAX,
        arguments,
    }
    .start()?;
    let requests = Requests::Recorded(options.trace.clone());
    let plan = Plan {
        connections: CONNECTIONS,
        warm_up: WarmUp::Fixed(Duration::ZERO),
        measured: None,
        ..Plan::new(requests, Pace::Closed { in_flight: 1 })
    };
    let tally: Tally = server.drive(&plan)?.tally;
    let (_, rss_peak_bytes) = machine::resident_bytes(server.pid())?;
    if tally.lost > 0 {
        bail!("{}: {} requests were lost", kind.name(), tally.lost);
    }
    Ok(Cell {
        hit_ratio: tally.hit_ratio(),
        reads: tally.hits + tally.misses,
        refused: tally.refused,
        rss_peak_bytes,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads = self
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .map(|cell| cell.reads);
        writeln!(
            out,
            "Hit ratios of {} reads of {}, {} connections of one client, {} worker threads. In \
             parentheses: the process's peak resident memory, in MiB.\n",
            reads.max().unwrap_or(0),
            self.trace.file.display(),
            CONNECTIONS,
            self.threads,
        )?;
        let limits = self.memory_mib.iter().map(|mib| format!("-m {mib}"));
        let mut table = Table::new(["server".to_owned()].into_iter().chain(limits));
        for Row { server, cells } in &self.rows {
            let cells = cells.iter().map(|cell| {
                let rss_mib = cell.rss_peak_bytes >> 20;
                format!("{:.2}% ({rss_mib})", cell.hit_ratio * 100.0)
            });
            table.row([server.clone()].into_iter().chain(cells));
        }
        write!(out, "{table}")
    }
}
