//! `glimmer bench native`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use glimmer_comparisons::native::{self, Options};
use glimmer_notation as notation;

use glimmer_cli::vocabulary::{self, connections, count, memory_mib, repetitions, seconds};

/// Measure the native protocol, as a share of the machine's UDP rate
///
/// There is one server core and one client core. Every repetition also measures
/// an echo of datagrams of the same length without a server, in plain datagrams
/// and in segment batches (UDP_SEGMENT, UDP_GRO). Each request has its own
/// datagram. A request without a reply counts as lost and is not sent again.
///
/// With --direction server, two workers receive the requests, once as clients
/// should send them, and once at every port in turn, so that the workers have to
/// hand requests over. "server ns" is the CPU time that a request costs all
/// workers together.
///
/// With --packet-transport, server and client use that transport between two
/// network namespaces, which are made for it and vanish with this command, and the
/// echo is one over the same transport. It needs root.
///
/// Examples:
///
///   glimmer bench native
///
///   glimmer bench native --packet-transport xdp
///
///   glimmer bench native --workload large --gets 0.95 --redis
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Items: tiny (8-byte keys and values), small (16/64) or large (128/1024)
    #[arg(long, short, default_value = "tiny")]
    workload: String,
    /// Number of keys
    #[arg(long, default_value = "1m", value_parser = count)]
    keys: u64,
    /// Shares of reads
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.95,0.5",
        value_parser = notation::share,
    )]
    gets: Vec<f64>,
    /// Sockets of the client
    #[arg(long, short, default_value_t = 4, value_parser = connections)]
    connections: u16,
    /// Requests in flight on each socket [default: 512; 32 with --packet-transport, as a virtual
    /// interface has room for 256 frames]
    #[arg(
        long,
        value_name = "REQUESTS",
        value_parser = notation::within::<u32>(notation::count, 1..=4096),
    )]
    pipeline: Option<u32>,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Memory limit of the server in MiB [default: as much as the items need, at least 1024; 4096
    /// with --direction server]
    #[arg(short, long, value_name = "MIB", value_parser = memory_mib)]
    memory_limit: Option<usize>,
    /// More arguments for the server, separated by spaces
    #[arg(long, default_value = "--access erew", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also measure Redis, with pipelines of 32 requests
    #[arg(long)]
    redis: bool,
    /// Who sends requests to the core that owns their key
    #[arg(long, value_name = "WHO", default_value = "client")]
    direction: Direction,
    /// Workers of the server [default: 1; 2 with --direction server]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// What carries datagrams at both ends, between two network namespaces [default: sockets on
    /// loopback]
    #[arg(long, value_name = "TRANSPORT")]
    packet_transport: Option<Transport>,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

/// What carries datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Sockets
    Udp,
    /// Sockets without segmentation offload
    UdpPlain,
    /// Past the kernel's stack (AF_XDP)
    Xdp,
    /// Memory that both processes share, driven by DPDK; in a build with the feature dpdk
    Dpdk,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::UdpPlain => "udp-plain",
            Transport::Xdp => "xdp",
            Transport::Dpdk => "dpdk",
        }
    }
}

/// Who sends a native request to the worker that owns its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// The client chooses the port
    Client,
    /// The server hands requests over to the owner
    Server,
}

impl Arguments {
    /// Measures and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let server_directs = self.direction == Direction::Server;
        let in_flight = if self.packet_transport.is_some() {
            32
        } else {
            512
        };
        let options = Options {
            workload: self.workload.clone(),
            keys: self.keys,
            gets: self.gets.clone(),
            connections: usize::from(self.connections),
            in_flight: self.pipeline.unwrap_or(in_flight),
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            memory_mib: self.memory_limit.or(server_directs.then_some(4096)),
            arguments: super::words(&self.glimmer_args),
            with_redis: self.redis,
            threads: self
                .threads
                .map_or(1 + usize::from(server_directs), usize::from),
            server_directs,
            transport: self.packet_transport.map(|it| it.name().to_owned()),
        };
        let report = native::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
