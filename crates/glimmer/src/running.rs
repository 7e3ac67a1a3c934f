//! A running server that a command tells something.

use std::fmt;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use glimmer_cli::{AdmissionArguments, vocabulary};
use glimmer_connect::Link;
use glimmer_notation::Location;

/// A server that is silent for this long counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Where a server is, and how to connect to it.
#[derive(Debug, Args)]
pub struct RunningServer {
    /// Where the server listens: HOST:PORT, or unix:PATH
    #[arg(
        long,
        short,
        value_name = "SERVER",
        default_value_t = Location::default(),
        value_parser = vocabulary::connection
    )]
    server: Location,

    #[command(flatten)]
    admission: AdmissionArguments,
}

impl fmt::Display for RunningServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(out)
    }
}

impl RunningServer {
    /// Connects to it.
    pub fn connect(&self) -> anyhow::Result<Link> {
        Link::open(&self.server, &self.admission.read()?, SILENCE_MAX)
    }

    /// Has it do something by a command of the text protocol that answers `OK`. Returns the reason
    /// if it refuses.
    pub fn tell(&self, link: &mut Link, command: &str) -> anyhow::Result<Result<(), String>> {
        match link.ask(command)?.as_str() {
            "OK" => Ok(Ok(())),
            "ERROR" => {
                let name = command.split(' ').next().unwrap_or_default();
                bail!("{self} does not know the command {name}")
            }
            refusal => Ok(Err(reason_of(refusal).to_owned())),
        }
    }

    /// The statistics that it shows for an argument; fails if it shows none.
    pub fn stats(&self, link: &mut Link, argument: &str) -> anyhow::Result<Vec<(String, String)>> {
        match link.stats_or_refusal(argument)? {
            Ok(figures) if !figures.is_empty() => Ok(figures),
            Err(refusal) if refusal != "ERROR" => {
                bail!("{self}: stats {argument}: {}", reason_of(&refusal))
            }
            _ => bail!("{self} does not know stats {argument}"),
        }
    }
}

/// What a line says by which the server refuses something.
fn reason_of(refusal: &str) -> &str {
    refusal.strip_prefix("CLIENT_ERROR ").unwrap_or(refusal)
}
