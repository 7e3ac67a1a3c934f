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
/// With --queues, the interfaces have several queues, each of which has a worker of
/// the server, or a thread of the echo, on a core of its own as far as there are
/// cores. "server ns" is the CPU time that a read costs all workers together. Workers
/// over DPDK never sleep: of their time, only turns with something to do count.
///
/// Examples:
///
///   glimmer bench transports
///
///   glimmer bench transports --queues 2
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Queues of the interfaces, each of which has a worker of the server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: u16,
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
            queues: usize::from(self.queues),
        };
        let report = transports::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
