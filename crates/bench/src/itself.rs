//! `glimmer bench self`.

use std::{path::PathBuf, time::Duration};

use glimmer_comparisons::itself::{self, Options};

use glimmer_cli::vocabulary::{self, connections, repetitions, seconds};

/// Measure the load generator, so that its limit is not taken for a server's
///
/// One core draws keys from 10^8 by each law. Then one client core drives a dummy
/// server that invents its replies, with more and more requests in flight. The
/// result is an upper bound of the throughput that any server can show to one
/// client core on this machine.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Number of connections
    #[arg(long, short, default_value_t = 50, value_parser = connections)]
    connections: u16,
    /// Length of a value in bytes
    #[arg(long, default_value_t = 64, value_parser = super::versus::value_bytes)]
    value_bytes: usize,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

impl Arguments {
    /// Measures and prints the tables.
    pub fn run(&self) -> anyhow::Result<()> {
        let options = Options {
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            connections: usize::from(self.connections),
            value_bytes: self.value_bytes,
        };
        let report = itself::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
