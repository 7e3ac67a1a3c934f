//! `glimmer bench abuse`.

use std::{path::PathBuf, time::Duration};

use anyhow::bail;
use clap::{ValueEnum, builder::PossibleValue};
use glimmer_comparisons::{
    abuse::{self, Options, SCENARIOS},
    servers::{Contender, Kind},
};
use glimmer_figures::Machine;
use glimmer_loadgen::driver::Address;
use glimmer_notation::{self as notation, Location};

use super::peers::{Peer, contenders, named};
use glimmer_cli::vocabulary::{self, memory_mib, repetitions, seconds};

/// Measure what well-behaved clients notice of hostile ones
///
/// For each scenario, the command starts a server. Well-behaved clients visit it
/// alone, and then beside hostile clients. A visit stores a small item and reads
/// it back; half of the well-behaved clients open a new connection each time. Each
/// makes 100 visits a second, and the time of a visit counts from when it was due,
/// whether or not the server had answered the one before.
///
/// A server passes if no visit fails or takes longer than a second, 99% of the
/// visits take at most 250 ms, and its resident memory stays below its -m plus 32
/// MiB plus 2 KiB for each hostile connection. docs/benchmarking-reference.md
/// lists scenarios with other bounds. The command fails if our server fails.
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
    /// Scenarios of hostile clients
    #[arg(long, value_delimiter = ',', default_value = "all")]
    scenario: Vec<Wanted>,
    /// Run every case of a scenario (memory, connections, value sizes), and not only its typical
    /// case
    #[arg(long)]
    all_cases: bool,
    /// Run only those of these cases whose description in the table contains one of these texts,
    /// such as a command
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    only: Vec<String>,
    /// Abuse a running server: HOST, HOST:PORT or unix:PATH
    ///
    /// If the server runs on this machine, its memory is measured. The command opens 64 connections
    /// fewer than the server allows. Do not use this on a server that somebody needs.
    #[arg(long, short, value_name = "SERVER")]
    #[arg(
        conflicts_with_all = [
            "peers",
            "peer",
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
    /// Another program to compare with, and its name in tables: memcached, Redis, Valkey,
    /// Pogocache or another build of this server. May be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named)]
    peer: Vec<Contender>,
    /// Abuse the peers alone
    #[arg(long)]
    without_glimmer: bool,
    /// Memory limit of the servers in MiB [default: chosen by each case]
    #[arg(short, long, value_name = "MIB", value_parser = memory_mib)]
    memory_limit: Option<usize>,
    /// Number of hostile connections [default: chosen by each case]
    #[arg(short, long, value_parser = notation::within::<u32>(notation::count, 1..=60_000))]
    connections: Option<u32>,
    /// Worker threads of each server
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Seconds with hostile clients, in each case
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds with well-behaved clients alone, before that
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    quiet_seconds: f64,
    /// Runs of each case, with the servers in turn
    #[arg(long, default_value_t = 1, value_parser = repetitions)]
    repeat: u16,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

/// The index of a scenario in [`SCENARIOS`], or all of them.
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
            Wanted::All => PossibleValue::new("all").help("all scenarios"),
            Wanted::One(place) => {
                PossibleValue::new(SCENARIOS[place].name()).help(SCENARIOS[place].about())
            }
        })
    }
}

impl Arguments {
    /// Whether it starts the servers that it measures.
    pub fn starts_servers(&self) -> bool {
        self.server.is_none()
    }

    /// Runs the scenarios, and prints the table and where that was.
    pub fn run(&self) -> anyhow::Result<()> {
        let machine = Machine::here(&[]);
        let running = self.server.as_ref().map(Address::resolve).transpose()?;
        let options = Options {
            scenarios: self.scenarios(),
            every_case: self.all_cases,
            only: self.only.clone(),
            servers: self.servers()?,
            running: running.clone(),
            memory_mib: self.memory_limit,
            connections: self.connections.map(|connections| connections as usize),
            threads: usize::from(self.threads),
            quiet: Duration::from_secs_f64(self.quiet_seconds),
            attack: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            glimmer_arguments: super::words(&self.glimmer_args),
        };
        let report = abuse::run(&options, &super::progress)?;
        println!("{report}\n{machine}");
        super::write_json(&self.json, &report)?;
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
    fn servers(&self) -> anyhow::Result<Vec<Contender>> {
        let mut servers = Vec::new();
        if !self.without_glimmer {
            servers.push(Kind::Glimmer.into());
        }
        for peer in contenders(&self.peers, &self.peer) {
            match peer.version() {
                Ok(_) => servers.push(peer),
                Err(missing) => super::progress(&format!("left out: {missing:#}")),
            }
        }
        Contender::ensure_distinct(&servers)?;
        if servers.is_empty() {
            bail!("no server to abuse");
        }
        Ok(servers)
    }
}
