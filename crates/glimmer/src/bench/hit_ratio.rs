//! `glimmer bench hit-ratio`.

use std::path::PathBuf;

use clap::ValueEnum;
use glimmer_loadgen::{
    hit_ratio::{self, Options, trace::Workload},
    notation,
};

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
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Request sequences
    #[arg(long, value_delimiter = ',', default_value = "all")]
    trace: Vec<Kind>,
    /// Cache sizes as shares of the keys
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "0.01,0.1,0.25", value_parser = capacity)]
    capacity: Vec<f64>,
    /// Keys
    #[arg(long, default_value = "1m", value_parser = notation::within::<u32>(notation::count, 10_000..=100_000_000))]
    keys: u32,
    /// Requests that count; as many go before to warm up
    #[arg(long, default_value = "10m", value_parser = notation::within::<u32>(notation::count, 1000..))]
    requests: u32,
    /// Seed of the request sequences
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
