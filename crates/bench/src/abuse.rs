//! `glimmer bench abuse`.

use std::{path::PathBuf, time::Duration};

use anyhow::bail;
use clap::{ValueEnum, builder::PossibleValue};
use glimmer_comparisons::{
    abuse::{self, Options, SCENARIOS},
    servers::Kind,
};
use glimmer_loadgen::driver::Address;
use glimmer_notation::{self as notation, Location};

use super::versus::Peer;
use glimmer_cli::vocabulary::{memory_mib, seconds};

/// Let hostile clients at a server, and see what its other clients notice
///
/// For each scenario a server is started, well-behaved clients visit it alone,
/// and then beside hostile ones. A visit stores a small item and reads it back;
/// half of the well-behaved clients open a new connection each time.
///
/// A server passes if no visit fails or takes longer than a second, 99% of the
/// visits take no longer than 250 ms, and its resident memory stays below its
/// -m and 32 MiB, and 2 KiB for each hostile connection. Where a scenario has
/// other bounds, docs/benchmarking.md says which. If our server fails, so does
/// this command.
///
/// Examples:
///
///   glimmer bench abuse                                every scenario, ours beside memcached
///
///   glimmer bench abuse --scenario slow-senders --all-cases
///
///   glimmer bench abuse --server 127.0.0.1:11211       a server that is running
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// What hostile clients do
    #[arg(long, value_delimiter = ',', default_value = "all")]
    scenario: Vec<Wanted>,
    /// Run every case of a scenario (memory, connections, value sizes), not only the one that
    /// stands for it
    #[arg(long)]
    all_cases: bool,
    /// Abuse a server that is running: HOST, HOST:PORT or unix:PATH
    ///
    /// Its memory is looked at if it runs on this machine. As many hostile connections are opened
    /// as it says that it allows, less 64. Do not do this to a server that somebody needs.
    #[arg(long, short, value_name = "SERVER")]
    #[arg(
        conflicts_with_all = [
            "peers",
            "without_glimmer",
            "memory_limit",
            "threads",
            "glimmer_args"
        ],
    )]
    server: Option<Location>,
    /// Servers to compare with
    #[arg(long, value_delimiter = ',', default_value = "memcached")]
    peers: Vec<Peer>,
    /// Abuse the peers alone
    #[arg(long)]
    without_glimmer: bool,
    /// The servers' memory limit in MiB, instead of each case's own
    #[arg(short, long, value_name = "MIB", value_parser = memory_mib)]
    memory_limit: Option<usize>,
    /// Hostile connections, instead of each case's own
    #[arg(short, long, value_parser = notation::within::<u32>(notation::count, 1..=60_000))]
    connections: Option<u32>,
    /// Worker threads of each server
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Seconds for which hostile clients are there, in each case
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds for which well-behaved clients are alone before
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    quiet_seconds: f64,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A scenario's place in [`SCENARIOS`], or all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    All,
    One(usize),
}

impl ValueEnum for Wanted {
    fn value_variants<'a>() -> &'a [Wanted] {
        static VARIANTS: [Wanted; SCENARIOS.len() + 1] = {
            let mut variants = [Wanted::All; SCENARIOS.len() + 1];
            let mut place = 0;
            while place < SCENARIOS.len() {
                variants[place] = Wanted::One(place);
                place += 1;
            }
            variants
        };
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match *self {
            Wanted::All => PossibleValue::new("all").help("every one of them"),
            Wanted::One(place) => {
                PossibleValue::new(SCENARIOS[place].name()).help(SCENARIOS[place].about())
            }
        })
    }
}

impl Arguments {
    /// Runs the scenarios and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let running = self.server.as_ref().map(Address::resolve).transpose()?;
        let options = Options {
            scenarios: self.scenarios(),
            every_case: self.all_cases,
            servers: self.servers()?,
            running: running.clone(),
            memory_mib: self.memory_limit,
            connections: self.connections.map(|connections| connections as usize),
            threads: usize::from(self.threads),
            quiet: Duration::from_secs_f64(self.quiet_seconds),
            attack: Duration::from_secs_f64(self.seconds),
            glimmer_arguments: super::words(&self.glimmer_args),
        };
        let report = abuse::run(&options, &super::progress)?;
        print!("{report}");
        if let Some(file) = &self.json {
            super::write_json(file, &report)?;
        }
        let judged = match &running {
            Some(address) => address.to_string(),
            None => Kind::Glimmer.name().to_owned(),
        };
        if !report.passed(&judged) {
            bail!("{judged} did not pass every scenario");
        }
        Ok(())
    }

    fn scenarios(&self) -> Vec<&'static str> {
        let wanted = |place: &usize| {
            self.scenario.contains(&Wanted::All) || self.scenario.contains(&Wanted::One(*place))
        };
        let places = (0..SCENARIOS.len()).filter(wanted);
        places.map(|place| SCENARIOS[place].name()).collect()
    }

    /// The servers to start. A peer that is not installed is left out.
    fn servers(&self) -> anyhow::Result<Vec<Kind>> {
        let mut servers = Vec::new();
        if !self.without_glimmer {
            servers.push(Kind::Glimmer);
        }
        for kind in self.peers.iter().filter_map(|peer| peer.kind()) {
            match kind.version() {
                Ok(_) => servers.push(kind),
                Err(missing) => super::progress(&format!("left out: {missing:#}")),
            }
        }
        if servers.is_empty() {
            bail!("there is no server to abuse");
        }
        Ok(servers)
    }
}
