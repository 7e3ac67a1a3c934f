//! `glimmer bench transports`.

use std::{path::PathBuf, time::Duration};

use glimmer_comparisons::transports::{self, Options};

use glimmer_cli::vocabulary::{self, repetitions, seconds};

/// Measure what carries datagrams: sockets, and what goes past the kernel's stack
///
/// Two network namespaces with a pair of virtual interfaces are made, which vanish
/// with this command. One core serves, one core is the client, and each request has
/// its own datagram. Each transport is measured in turn: an echo, and reads of our
/// server over memcached's UDP protocol. What this machine cannot do is named with
/// the reason. It needs root.
///
/// Example:
///
///   glimmer bench transports
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
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
    /// Measures and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let options = Options {
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
        };
        let report = transports::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
