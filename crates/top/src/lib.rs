//! The top floor: the program that shows a running server, live.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod hot;
mod latency;
mod packets;
mod plain;
mod sample;
mod screen;
mod sizes;
mod text;
mod watch;

use std::{
    io::{IsTerminal, stdout},
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use clap::{CommandFactory, Parser};

use glimmer_cli::{
    AdmissionArguments,
    vocabulary::{self, ServerAddress},
};
use watch::Watch;

/// The command line.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// The whole program.
pub fn main() -> ExitCode {
    glimmer_cli::run(|arguments: Arguments| arguments.run())
}

/// Watch a running server in the terminal
///
/// Shows requests per second by kind, the hit ratio, items and memory, evictions,
/// connections, the load of every worker with its role and its queue (waiting now,
/// and at most), requests by the size of their values, the hottest keys, the
/// hot-key accelerator and the packet transport if the server has them, and the
/// latency of a small request that this program sends now and then (`version`, which
/// touches no item). It also watches memcached, as far as memcached's `stats` go.
///
/// Times by size are those of a sample of the requests of the last 30 to 60 seconds,
/// from the turn in which a worker received them until the reply was written. If the
/// server does not count requests by size (see `--dispatch`), rates and shares by size
/// are estimated from that sample.
///
/// `q` quits. If the output is not a terminal, it prints one line per interval.
/// If the server stops, it tries again in every interval. A small terminal shows
/// less.
///
/// The memory bar counts everything that the limit counts: items, index and
/// buffers of this server, and items of memcached.
///
/// Examples:
///
///   glimmer top
///
///   glimmer top cache.example:11211 --interval 5
///
///   glimmer top unix:/run/glimmer.sock --once
///
///   glimmer top cache.example --tls --tls-ca ca.pem --auth-user ann --password-file password
#[derive(Debug, Parser)]
#[command(name = "glimmer-top", version, verbatim_doc_comment)]
struct Arguments {
    #[command(flatten)]
    server: ServerAddress,
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Print one line per interval, also on a terminal
    #[arg(long)]
    plain: bool,
    /// Print everything about one interval, and quit
    #[arg(long, conflicts_with = "plain")]
    once: bool,
    /// With --plain: quit after this many intervals
    #[arg(long, conflicts_with = "once", value_parser = vocabulary::count)]
    count: Option<u64>,
    #[command(flatten)]
    admission: AdmissionArguments,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number of seconds from 0.05 to 3600".to_owned()),
    }
}

impl Arguments {
    /// Watches the server until the user quits.
    fn run(&self) -> Result<()> {
        let interval = Duration::from_secs_f64(self.interval);
        let mut watch = Watch::start(self.server.location(), self.admission.read()?, interval)?;
        if self.once {
            plain::once(&mut watch)
        } else if self.plain || self.count.is_some() || !stdout().is_terminal() {
            plain::lines(&mut watch, self.count)
        } else {
            screen::live(watch)
        }
    }
}
