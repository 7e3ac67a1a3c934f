//! `glimmer bench versus`.

use std::{path::PathBuf, time::Duration};

use anyhow::ensure;
use clap::ValueEnum;
use glimmer_comparisons::{
    servers::{Contender, Encryption, Kind},
    versus::{self, Options, Scenario},
};
use glimmer_loadgen::workload::Popularity;
use glimmer_measure::machine;
use glimmer_notation as notation;

use crate::{
    peers::{Peer, contenders, named},
    progress::Watch,
};
use glimmer_cli::vocabulary::{
    self, client_threads, connections, count_u32, memory_mib, repetitions, seconds,
};

/// Compare this server with memcached and Redis
///
/// The command starts every server with one worker thread on core 0, stores the
/// same keys in each, and drives them in turn from a client on core 1.
/// It verifies every value that it reads; a wrong byte ends the run.
///
/// Where Redis or Valkey takes part, this server is also driven in their protocol
/// (`glimmer resp`).
///
/// Look at `client busy` before you trust a ratio: near 100%, the client was the
/// limit and not the server. On a machine with more than two cores, --client-threads
/// gives closed loops more client threads. `no store at all` is a dummy server that
/// invents its replies: the ceiling set by loopback and the load generator. `bare
/// echo` is a process that does nothing but one recv and one send for each request:
/// the ceiling that the kernel sets a server with one request in flight.
///
/// Examples:
///
///   glimmer bench versus                               everything, half an hour
///
///   glimmer bench versus --scenario pipeline32 --keys 20m
///
///   glimmer bench versus --scenario large --client-threads 4
///
///   glimmer bench versus --peers redis --glimmer-args "--access crew"
///
///   glimmer bench versus --tls --scenario pipeline32,pipeline1,large --peers memcached
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Servers to compare with
    #[arg(long, value_delimiter = ',', default_value = "memcached,redis")]
    peers: Vec<Peer>,
    /// Another program to compare with, and its name in tables: memcached, Redis, Valkey,
    /// Pogocache or another build of this server. May be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named)]
    peer: Vec<Contender>,
    /// Measure the peers alone
    #[arg(long)]
    without_glimmer: bool,
    /// Encrypt: every server is started with TLS and a certificate that the command makes, and ours
    /// also without TLS, as `glimmer without TLS`. Servers that were built without TLS are left out
    #[arg(long)]
    tls: bool,
    /// Load: 32 requests in flight on each connection, or one; reads of 50 keys; memcached's three
    /// protocols; UDP in plain datagrams and in segment batches; latency at a fixed rate; one
    /// request in flight on each of one to many connections; values of 10 KB to 1 MB; CPU time with
    /// two server threads
    #[arg(long, value_delimiter = ',', default_value = "all")]
    scenario: Vec<Load>,
    /// Number of 16-byte keys, stored before the measurement
    #[arg(long, default_value = "1m", value_parser = count_u32)]
    keys: u32,
    /// Length of a value in bytes
    #[arg(long, default_value_t = 64, value_parser = value_bytes)]
    value_bytes: usize,
    /// Key popularity
    #[arg(long, default_value = "uniform")]
    dist: Distribution,
    /// Number of connections
    #[arg(long, short, default_value_t = 50, value_parser = connections)]
    connections: u16,
    /// Client threads of closed loops, each with a core of its own
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = client_threads)]
    client_threads: usize,
    /// Numbers of connections for the load with one to many of them
    #[arg(
        long,
        value_name = "CONNECTIONS",
        value_delimiter = ',',
        default_value = "1,50,1k,5k,10k",
        value_parser = many_connections
    )]
    many_connections: Vec<u16>,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Memory limit of every server in MiB (Redis runs without one)
    #[arg(short, long, value_name = "MIB", default_value_t = 4096, value_parser = memory_mib)]
    memory_limit: usize,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Load {
    Pipeline32,
    Pipeline1,
    Multiget50,
    Protocols,
    Udp,
    OpenLoop,
    Connections,
    Large,
    CpuScaling,
    All,
}

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Distribution {
    /// All keys are equally popular
    Uniform,
    /// Zipf's law with exponent 0.99
    Zipf,
}

impl Distribution {
    /// The law over this number of keys.
    pub fn over(self, keys: u32) -> Popularity {
        match self {
            Distribution::Uniform => Popularity::uniform(u64::from(keys)),
            Distribution::Zipf => Popularity::zipf(u64::from(keys), 0.99),
        }
    }
}

/// A length of values on the command line.
pub fn value_bytes(text: &str) -> Result<usize, String> {
    use glimmer_comparisons::client::{VALUE_BYTES_MAX, VALUE_BYTES_MIN};
    let range = VALUE_BYTES_MIN as u64..=VALUE_BYTES_MAX as u64;
    notation::within(notation::bytes, range)(text)
}

/// A number of connections from one address to one server.
fn many_connections(text: &str) -> Result<u16, String> {
    notation::within(notation::count, 1..=20_000)(text)
}

impl Arguments {
    /// Runs the comparison and prints its tables.
    pub fn run(&self) -> anyhow::Result<()> {
        ensure!(
            machine::cores() >= 2,
            "a server and its client want a core each; this machine offers one"
        );
        let ours = (!self.without_glimmer).then_some(Kind::Glimmer.into());
        let peers = contenders(&self.peers, &self.peer);
        let mut servers: Vec<Contender> = ours.into_iter().chain(peers).collect();
        if self.tls {
            servers = over_tls(servers)?;
        }
        ensure!(
            !servers.is_empty(),
            "no server to measure: name --peers, or leave --without-glimmer out"
        );
        let options = Options {
            servers,
            scenarios: self.scenarios()?,
            keys: self.keys,
            value_bytes: self.value_bytes,
            popularity: self.dist.over(self.keys),
            connections: usize::from(self.connections),
            client_cores: machine::client_cores(self.client_threads),
            many_connections: self.many_connections.iter().map(|&n| n.into()).collect(),
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            memory_mib: self.memory_limit,
            glimmer_arguments: self
                .glimmer_args
                .split_whitespace()
                .map(Into::into)
                .collect(),
        };
        let report = versus::run(&options, &Watch::new("versus"))?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }

    fn scenarios(&self) -> anyhow::Result<Vec<Scenario>> {
        ensure!(
            !(self.tls && self.scenario.contains(&Load::Udp)),
            "UDP is not encrypted: leave --tls or --scenario udp out"
        );
        let wanted = |load| {
            let is_of_all = self.scenario.contains(&Load::All) && !(self.tls && load == Load::Udp);
            self.scenario.contains(&load) || is_of_all
        };
        let scenarios = Scenario::ALL.into_iter().filter(|scenario| {
            wanted(match scenario {
                Scenario::Pipeline32 => Load::Pipeline32,
                Scenario::Pipeline1 => Load::Pipeline1,
                Scenario::Multiget50 => Load::Multiget50,
                Scenario::Protocols => Load::Protocols,
                Scenario::Udp => Load::Udp,
                Scenario::OpenLoop => Load::OpenLoop,
                Scenario::Connections => Load::Connections,
                Scenario::Large => Load::Large,
                Scenario::CpuScaling => Load::CpuScaling,
            })
        });
        Ok(scenarios.collect())
    }
}

/// These servers over TLS, as far as they can, and ours in the clear beside them.
fn over_tls(servers: Vec<Contender>) -> anyhow::Result<Vec<Contender>> {
    let encryption = Encryption::new()?;
    let mut plain = Vec::new();
    let mut encrypted = Vec::new();
    for server in servers {
        if server.kind() == Kind::Glimmer {
            let name = format!("{} without TLS", server.name());
            plain.push(server.clone().renamed(&name));
        }
        match server.over_tls(&encryption) {
            Ok(server) => encrypted.push(server),
            Err(why) => eprintln!("{why}"),
        }
    }
    encrypted.append(&mut plain);
    Ok(encrypted)
}
