//! `glimmer bench hit-ratio`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use glimmer_comparisons::{
    replayed::{self, Memory, Served},
    servers::{Contender, Kind},
};
use glimmer_loadgen::workload::{
    VALUE_BYTES_MAX,
    trace::{Altered, BlockStorage, Trace},
};
use glimmer_microbench::evict::{RULES, Rule};
use glimmer_microbench::hit_ratio::{
    self, Options,
    pattern::{PATTERNS, Pattern},
};
use glimmer_notation as notation;

use super::{
    load::TraceFormat,
    peers::{Peer, contenders, named},
};

/// Requests by default that count, and those of a trace that resembles block storage.
const COUNTED: u32 = 300_000;
const BLOCK_READS: u32 = 600_000;
/// Capacities by default, as shares of the keys.
const CAPACITIES: [f64; 3] = [0.01, 0.1, 0.5];
use glimmer_cli::vocabulary::{self, memory_mib};

/// Compare eviction rules by their hit ratio
///
/// Patterns of requests drive our store under each of its rules, and plain
/// simulators of strict LRU, S3-FIFO, SIEVE, ARC and W-TinyLFU with the same
/// capacity. `best` is what no rule exceeds that does not know the future. The
/// result depends on the options alone, and not on the machine. It is a Markdown
/// table with a row for each pattern and capacity.
///
/// With --trace-file, the command replays a recorded trace against running
/// servers, over a real connection, with each memory limit of -m or --capacity.
/// It reads Twitter's cache traces, libCacheSim's binary and CSV files, files
/// with one key on each line, and the block traces of Alibaba and of MSR
/// Cambridge. --block-storage first writes a trace that resembles block storage
/// to that file: values up to 64 KiB in steps of 512 bytes, a skewed popularity,
/// and scans.
///
/// Examples:
///   glimmer bench hit-ratio --pattern lag-40,zipf-0.99 --capacity 0.1
///   glimmer bench hit-ratio --trace-file cluster52.csv -m 64,1g
///   glimmer bench hit-ratio --trace-file loop.txt --capacity 0.05,0.5 --copies 100
///   glimmer bench hit-ratio --trace-file blocks.csv --block-storage
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Patterns of requests [default: all]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = patterns(),
    )]
    pattern: Vec<String>,
    /// Cache sizes, as shares of the keys [default: 0.01,0.1,0.5]. Of a trace, memory limits as
    /// shares of the bytes of all its items, from 16 MiB on
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = capacity)]
    capacity: Vec<f64>,
    /// Number of keys
    #[arg(
        long,
        default_value = "60k",
        value_parser = notation::within::<u32>(notation::count, 10_000..=100_000_000),
    )]
    keys: u32,
    /// Number of requests that count; the same number warms up the cache [default: 300k]. Of a
    /// trace, the number of requests from its beginning on, which all count [default: all]
    #[arg(long, value_parser = notation::within::<u32>(notation::count, 1000..))]
    requests: Option<u32>,
    /// Seed of the request sequences
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replay this recorded trace against servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "keys"])]
    trace_file: Option<PathBuf>,
    /// Format of the trace, if its name and first line do not reveal it
    #[arg(long, requires = "trace_file")]
    trace_format: Option<TraceFormat>,
    /// First write a trace of --requests block reads to the file [default: 600k], from --seed
    #[arg(long, requires = "trace_file", conflicts_with = "trace_format")]
    block_storage: bool,
    /// Length of every value in bytes, instead of the recorded ones [default: 1000, where the trace
    /// has none]
    #[arg(
        long,
        value_name = "BYTES",
        requires = "trace_file",
        value_parser = notation::within::<u32>(notation::bytes, 1..=u64::from(VALUE_BYTES_MAX)),
    )]
    value_bytes: Option<u32>,
    /// Make each request this many times in a row, each time for another key: a small trace becomes
    /// one of as many times more keys
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        requires = "trace_file",
        value_parser = clap::value_parser!(u32).range(1..=100_000),
    )]
    copies: u32,
    /// Memory limits of the servers in MiB
    #[arg(
        short,
        long,
        value_name = "MIB",
        value_delimiter = ',',
        default_value = "16,128,512",
        value_parser = memory_mib,
        requires = "trace_file",
        conflicts_with = "capacity",
    )]
    memory_limit: Vec<usize>,
    /// Worker threads of the servers
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
    /// Another program to compare with, and its name in tables: memcached, Redis, Valkey,
    /// Pogocache or another build of this server. May be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named, requires = "trace_file")]
    peer: Vec<Contender>,
    /// Eviction rules of our server, one after the other [default: the server's]
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        requires = "trace_file"
    )]
    evict: Vec<Rule>,
    /// More arguments for our server, separated by spaces
    #[arg(
        long,
        default_value = "",
        allow_hyphen_values = true,
        requires = "trace_file"
    )]
    glimmer_args: String,
    /// Also write the results to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

/// The names of the patterns, with what `--help` says about them.
fn patterns() -> PossibleValuesParser {
    let named = PATTERNS.iter();
    named
        .map(|pattern| PossibleValue::new(pattern.name).help(pattern.summary))
        .into()
}

fn capacity(text: &str) -> Result<f64, String> {
    match notation::share(text)? {
        share if share >= 0.001 => Ok(share),
        _ => Err("it must be a share from 0.001 to 1".to_owned()),
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
        let arguments = super::words(&self.glimmer_args);
        let ours = |rule: Option<&Rule>| {
            let rule = rule.map(|rule| ["--evict", rule.name].map(String::from));
            Served {
                contender: Kind::Glimmer.into(),
                arguments: rule
                    .into_iter()
                    .flatten()
                    .chain(arguments.clone())
                    .collect(),
            }
        };
        let ours: Vec<Served> = match &self.evict[..] {
            [] => vec![ours(None)],
            rules => rules.iter().map(|rule| ours(Some(rule))).collect(),
        };
        let peers = contenders(&self.peers, &self.peer);
        let servers: Vec<_> = ours.into_iter().chain(peers.map(Served::plain)).collect();
        servers
            .iter()
            .try_for_each(|served| served.contender.version().map(drop))?;
        if self.block_storage {
            let requests = u64::from(self.requests.unwrap_or(BLOCK_READS));
            let seed = self.seed;
            BlockStorage { requests, seed }.write_to(&file)?;
        }
        let trace = Trace::new(file, self.trace_format.map(Into::into))?;
        let trace = Trace {
            altered: Altered {
                requests_max: self.requests.map(u64::from),
                value_bytes: self.value_bytes,
                copies: self.copies,
                completes_lengths: trace.format.omits_lengths(),
            },
            ..trace
        };
        let options = replayed::Options {
            trace,
            servers,
            memory: match &self.capacity[..] {
                [] => Memory::Mib(self.memory_limit.clone()),
                shares => Memory::Shares(shares.to_vec()),
            },
            threads: self.threads.into(),
        };
        let report = replayed::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }

    fn compare_rules(&self) -> anyhow::Result<()> {
        let is_wanted = |pattern: &&Pattern| {
            self.pattern.is_empty() || self.pattern.iter().any(|name| name == pattern.name)
        };
        let options = Options {
            patterns: PATTERNS.iter().filter(is_wanted).copied().collect(),
            rules: RULES.into(),
            keys: self.keys,
            // Rounded, because a share as a percentage is not exact.
            capacities_percent: match &self.capacity[..] {
                [] => &CAPACITIES,
                shares => shares,
            }
            .iter()
            .map(|share| (share * 1e5).round() / 1e3)
            .collect(),
            counted: self.requests.unwrap_or(COUNTED) as usize,
            seed: self.seed,
        };
        let report = hit_ratio::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
