//! `glimmer bench hit-ratio`.

use std::path::PathBuf;

use clap::ValueEnum;
use glimmer_comparisons::{replayed, servers::Kind as Served};
use glimmer_loadgen::workload::trace::{BlockStorage, Trace};
use glimmer_microbench::hit_ratio::{self, Options, trace::Workload};
use glimmer_notation as notation;

use super::{load::TraceFormat, versus::Peer};
use glimmer_cli::vocabulary::memory_mib;

/// Compare eviction rules by the share of requests that they answer
///
/// A client that stores whatever it asked for and did not get drives our store
/// in this process, under each of its rules, and next to it plain simulators of
/// SIEVE, S3-FIFO, CLOCK, strict LRU and FIFO with room for as many items. The
/// result depends on the options alone and not on the machine; it is a Markdown
/// table.
///
/// `alternating` is the doubt of a reader of MICA's paper: does putting back
/// what is read fill the log with copies of a few hot keys, at the cost of all
/// others?
///
/// With --trace-file it replays a recorded trace instead, against running
/// servers and by real connections, with each memory limit of -m. It reads
/// Twitter's cache traces, libCacheSim's binary and CSV files, and the block
/// traces of Alibaba and of MSR Cambridge. --block-storage writes a trace of
/// block storage to that file first: values up to 64 KiB in steps of 512 bytes,
/// a skewed popularity, and scans.
///
/// Examples:
///   glimmer bench hit-ratio --trace zipf --capacity 0.1
///   glimmer bench hit-ratio --trace-file cluster52.csv -m 64,1g
///   glimmer bench hit-ratio --trace-file blocks.csv --block-storage
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Request sequences
    #[arg(long, value_delimiter = ',', default_value = "all")]
    trace: Vec<Kind>,
    /// Cache sizes as shares of the keys
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.01,0.1,0.25",
        value_parser = capacity,
    )]
    capacity: Vec<f64>,
    /// Keys
    #[arg(
        long,
        default_value = "1m",
        value_parser = notation::within::<u32>(notation::count, 10_000..=100_000_000),
    )]
    keys: u32,
    /// Requests that count; as many go before to warm up
    #[arg(
        long,
        default_value = "10m",
        default_value_if("block_storage", "true", "600k"),
        value_parser = notation::within::<u32>(notation::count, 1000..),
    )]
    requests: u32,
    /// Seed of the request sequences
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replay this recorded trace against servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "capacity", "keys"])]
    trace_file: Option<PathBuf>,
    /// How the trace is written, if its name and first line do not tell
    #[arg(long, requires = "trace_file")]
    trace_format: Option<TraceFormat>,
    /// Write a trace of block storage to the file first: --requests of it [default: 600k], from
    /// --seed
    #[arg(long, requires = "trace_file", conflicts_with = "trace_format")]
    block_storage: bool,
    /// The servers' memory limits in MiB
    #[arg(
        short,
        long,
        value_name = "MIB",
        value_delimiter = ',',
        default_value = "16,128,512",
        value_parser = memory_mib,
        requires = "trace_file",
    )]
    memory_limit: Vec<usize>,
    /// The servers' worker threads
    #[arg(
        short,
        long,
        default_value_t = 2,
        requires = "trace_file",
        value_parser = clap::value_parser!(u16).range(1..=512),
    )]
    threads: u16,
    /// Servers to compare with
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "memcached",
        requires = "trace_file"
    )]
    peers: Vec<Peer>,
    /// More arguments for our server, separated by spaces
    #[arg(
        long,
        default_value = "",
        allow_hyphen_values = true,
        requires = "trace_file"
    )]
    glimmer_args: String,
    /// Also write what was found to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Kind {
    /// Zipf 0.99
    Zipf,
    /// Zipf 0.99, interrupted by scans over keys that occur once
    Scan,
    /// A few hot keys alternating with many
    Alternating,
    All,
}

fn capacity(text: &str) -> Result<f64, String> {
    match notation::share(text)? {
        share if share >= 0.001 => Ok(share),
        _ => Err("from 0.001 to 1".to_owned()),
    }
}

impl Arguments {
    /// Runs the comparison and prints its tables.
    pub fn run(&self) -> anyhow::Result<()> {
        match &self.trace_file {
            Some(file) => self.replay(file.clone()),
            None => self.compare_rules(),
        }
    }

    fn replay(&self, file: PathBuf) -> anyhow::Result<()> {
        let peers = self.peers.iter().filter_map(|peer| peer.kind());
        let servers: Vec<_> = [Served::Glimmer].into_iter().chain(peers).collect();
        servers
            .iter()
            .try_for_each(|server| server.version().map(drop))?;
        if self.block_storage {
            let requests = u64::from(self.requests);
            let seed = self.seed;
            BlockStorage { requests, seed }.write_to(&file)?;
        }
        let options = replayed::Options {
            trace: Trace::new(file, self.trace_format.map(Into::into))?,
            servers,
            memory_mib: self.memory_limit.clone(),
            threads: self.threads.into(),
            glimmer_arguments: self
                .glimmer_args
                .split_whitespace()
                .map(Into::into)
                .collect(),
        };
        let report = replayed::run(&options, &super::progress)?;
        print!("{report}");
        match &self.json {
            Some(file) => super::write_json(file, &report),
            None => Ok(()),
        }
    }

    fn compare_rules(&self) -> anyhow::Result<()> {
        let wanted = |kind| self.trace.contains(&kind) || self.trace.contains(&Kind::All);
        let workloads = Workload::ALL.into_iter().filter(|workload| {
            wanted(match workload {
                Workload::Zipf => Kind::Zipf,
                Workload::Scan => Kind::Scan,
                Workload::Alternating => Kind::Alternating,
            })
        });
        let options = Options {
            workloads: workloads.collect(),
            keys: self.keys,
            // Rounded, since a share as a percentage is not exact.
            capacities_percent: self
                .capacity
                .iter()
                .map(|share| (share * 1e5).round() / 1e3)
                .collect(),
            counted: self.requests as usize,
            seed: self.seed,
        };
        let report = hit_ratio::run(&options, &super::progress)?;
        print!("{report}");
        match &self.json {
            Some(file) => super::write_json(file, &report),
            None => Ok(()),
        }
    }
}
