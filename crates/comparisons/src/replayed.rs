//! The hit ratio of running servers on a recorded trace, over real connections.

use std::{fmt, time::Duration};

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use crate::servers::{Contender, Launch};
use glimmer_loadgen::{
    load::{Pace, Plan, Requests, Tally, WarmUp},
    workload::trace::{Footprint, Trace},
};
use glimmer_measure::{
    machine,
    report::{Column, Table},
};

/// Reads in flight on the one connection. No two of them are for the same key, so the requests for
/// a key stay in order, and what was not found is written before it is read again.
const IN_FLIGHT: u32 = 32;
/// Least memory limit in MiB that a share of the trace's bytes is replayed with. memcached gives
/// each class of lengths a page of 1 MiB, and a smaller limit says more about that than about a
/// rule.
const MEMORY_MIB_MIN: usize = 16;

/// What to replay, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace.
    pub trace: Trace,
    /// Servers, one after the other.
    pub servers: Vec<Served>,
    /// Their memory limits.
    pub memory: Memory,
    /// Their worker threads.
    pub threads: usize,
}

/// A server with its arguments.
#[derive(Clone, Debug)]
pub struct Served {
    /// The server.
    pub contender: Contender,
    /// Its further arguments.
    pub arguments: Vec<String>,
}

impl Served {
    /// Its name with its version, if the name is not the installed program's, and its arguments.
    fn name(&self) -> Result<String> {
        let (name, version) = (self.contender.name(), self.contender.version()?);
        let server = match name == self.contender.kind().name() {
            true => version,
            false => format!("{name}: {version}"),
        };
        Ok([&[server], &self.arguments[..]].concat().join(" "))
    }

    /// A server without further arguments.
    pub fn plain(contender: Contender) -> Served {
        Served {
            contender,
            arguments: Vec::new(),
        }
    }
}

/// Memory limits.
#[derive(Clone, Debug)]
pub enum Memory {
    /// In MiB.
    Mib(Vec<usize>),
    /// As shares of the bytes of all items of the trace.
    Shares(Vec<f64>),
}

impl Memory {
    /// The limits in MiB. Shares that are too small for a server are left out.
    fn mib(&self, bytes: u64) -> Result<Vec<usize>> {
        let shares = match self {
            Memory::Mib(mib) => return Ok(mib.clone()),
            Memory::Shares(shares) => shares,
        };
        let mib = |share: &f64| (share * bytes as f64 / MIB).round() as usize;
        let limits: Vec<usize> = shares.iter().map(mib).collect();
        let mib: Vec<usize> = limits
            .into_iter()
            .filter(|&mib| mib >= MEMORY_MIB_MIN)
            .collect();
        ensure!(
            !mib.is_empty(),
            "the items of the trace have {:.1} MiB, and these shares of them are less than \
             {MEMORY_MIB_MIN} MiB; --copies makes the trace larger",
            bytes as f64 / MIB
        );
        Ok(mib)
    }
}

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// One server with one memory limit.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The share of reads that returned a value.
    pub hit_ratio: f64,
    /// The share of the bytes that reads asked for. A read that missed when it was recorded asked
    /// for as many as the key has.
    pub byte_hit_ratio: f64,
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
    /// What the trace asks for in all.
    pub footprint: Footprint,
    /// Memory limits.
    pub memory_mib: Vec<usize>,
    threads: usize,
    /// In the order of the servers.
    pub rows: Vec<Row>,
}

/// Replays the trace against each server with each memory limit. `progress` receives a line for
/// each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let footprint = options.trace.footprint()?;
    let memory_mib = options.memory.mib(footprint.bytes)?;
    let mut rows = Vec::new();
    for served in &options.servers {
        let server = served.name()?;
        let mut cells = Vec::new();
        for &memory_mib in &memory_mib {
            let cell = measure(options, served, memory_mib)?;
            let hits = cell.hit_ratio * 100.0;
            progress(&format!("{server} -m {memory_mib}: {hits:.2}%"));
            cells.push(cell);
        }
        rows.push(Row { server, cells });
    }
    Ok(Report {
        trace: options.trace.clone(),
        footprint,
        memory_mib,
        threads: options.threads,
        rows,
    })
}

fn measure(options: &Options, served: &Served, memory_mib: usize) -> Result<Cell> {
    let arguments = served.arguments.clone();
    let server = Launch::evicting(
        served.contender.clone(),
        options.threads,
        memory_mib,
        arguments,
    );
    let server = server.start()?;
    let requests = Requests::Recorded(options.trace.clone());
    let pace = Pace::Closed {
        in_flight: IN_FLIGHT,
    };
    let plan = Plan {
        connections: 1,
        warm_up: WarmUp::Fixed(Duration::ZERO),
        measured: None,
        ..Plan::new(requests, pace)
    };
    let tally: Tally = server.drive(&plan)?.tally;
    let (_, rss_peak_bytes) = machine::resident_bytes(server.pid())?;
    if tally.lost > 0 {
        bail!("{}: {} requests were lost", server.name(), tally.lost);
    }
    Ok(Cell {
        hit_ratio: tally.hit_ratio(),
        byte_hit_ratio: tally.byte_hit_ratio(),
        reads: tally.hits + tally.misses,
        refused: tally.refused,
        rss_peak_bytes,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Footprint {
            requests,
            keys,
            bytes,
        } = self.footprint;
        writeln!(
            out,
            "Hit ratios of {requests} requests of {}: {keys} keys, {:.1} MiB with their values. \
             One connection, {} worker threads. In parentheses: the share of the bytes, and the \
             process's peak resident memory.\n",
            self.trace.file.display(),
            bytes as f64 / MIB,
            self.threads,
        )?;
        let share = |mib: &usize| *mib as f64 * MIB / bytes.max(1) as f64 * 100.0;
        let limits = self.memory_mib.iter().enumerate().map(|(place, mib)| {
            let head = format!("-m {mib} ({:.3}% of the bytes)", share(mib));
            Column::new(head, move |row: &Row| {
                let cell = &row.cells[place];
                let [hits, bytes] = [cell.hit_ratio, cell.byte_hit_ratio].map(|part| part * 100.0);
                let rss_mib = cell.rss_peak_bytes >> 20;
                format!("{hits:.2}% ({bytes:.2}%, {rss_mib} MiB)")
            })
        });
        let server = Column::new("server", |row: &Row| row.server.clone());
        let table = Table::of(&self.rows, [server].into_iter().chain(limits));
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_too_small_for_a_server_are_left_out() {
        let memory = Memory::Shares(vec![0.01, 0.04, 0.5]);
        assert_eq!(memory.mib(400 << 20).unwrap(), [16, 200]);
        assert_eq!(Memory::Mib(vec![1]).mib(400 << 20).unwrap(), [1]);
        let error = memory.mib(20 << 20).unwrap_err().to_string();
        assert!(
            error.contains("20.0 MiB") && error.contains("--copies"),
            "{error}"
        );
    }
}
