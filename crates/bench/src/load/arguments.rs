//! The command line of `glimmer bench load`.

use std::{path::PathBuf, sync::Arc};

use clap::{ArgGroup, ValueEnum};
use glimmer_loadgen::{
    driver::Dialect,
    load::sweep::Slo,
    workload::{Law, Sizes, Ttl, trace::Format},
};
use glimmer_notation as notation;
use glimmer_transport::{packet::PacketTransport, transports};

use glimmer_cli::{
    AdmissionArguments,
    vocabulary::{self, LoadAddress, above_zero},
};

/// Load any memcached or Redis, and measure its throughput and latency
///
/// Closed loop (the default): every connection sends --pipeline requests, waits
/// for their replies, and sends the next. This finds the server's highest
/// throughput. Its latencies are misleading, because a stalled server stops the
/// requests that would have been late.
///
/// Open loop (--rate): requests are sent when they are due, and latency counts
/// from that time, so a stall delays every request that falls into it. --sweep
/// raises the rate until the server saturates or breaks its --slo.
///
/// All keys are stored first, unless --no-fill is given. Every value names its
/// key and version; a wrong byte ends the run.
///
/// Workloads: tiny (8-byte keys and values), small (16/64), large (128/1024),
/// etc[:SHARE[:MAX]] (Facebook's ETC as Minos models it: a share of the requests
/// is for values of up to MAX bytes), minos[:SHARE[:MAX]] (the same with the
/// paper's 16 million keys), ycsb-a, ycsb-b, ycsb-c, ycsb-d, ycsb-f.
/// Single options override the workload.
///
/// Latencies are also shown by the length of the values: tiny (up to 13 bytes),
/// small (up to 1400) and large.
///
/// Examples:
///
///   glimmer bench load
///
///   glimmer bench load --pipeline 32 --threads 2
///
///   glimmer bench load --rate 50000 --seconds 30 --hdr-log run.hlog
///
///   glimmer bench load 127.0.0.1:6379 --protocol resp --workload ycsb-b --sweep --slo p99=1ms
///
///   glimmer bench load unix:/run/memcached.sock --protocol meta --workload etc:0.0025
///
///   glimmer bench load --workload minos:0.75%:1m --keys 160k --rate 20k --large-connections 4
///
///   glimmer bench load udp:127.0.0.1:11211 --protocol binary --gets 1 --connections 8
///
///   glimmer bench load 127.0.0.1:11300 --protocol native --connections 4 --pipeline 512
///
///   glimmer bench load 10.0.0.1:11300 --protocol native --packet-transport xdp:eth0
///
///   glimmer bench load --trace cluster52.csv --speed 10
///
///   glimmer bench load cache.example --tls --tls-ca ca.pem --pipeline 32
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("pace").args(["rate", "pipeline", "speed"]))]
pub struct Arguments {
    #[command(flatten)]
    pub server: LoadAddress,
    /// Protocol of the server
    #[arg(long, short = 'B', default_value = "text")]
    pub protocol: Protocol,
    /// What carries datagrams at the client's end, as at the server's: udp, udp-plain, xdp:IF or
    /// dpdk:ip=ADDRESS/BITS. For udp: addresses and the native protocols
    #[arg(long, value_name = "TRANSPORT", default_value = "udp", value_parser = transports::named)]
    pub packet_transport: Arc<dyn PacketTransport>,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    #[command(flatten)]
    pub pace: PaceArguments,
    #[command(flatten)]
    pub client: ClientArguments,
    #[command(flatten)]
    pub files: FileArguments,
    #[command(flatten)]
    pub admission: AdmissionArguments,
}

/// What is asked for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArguments {
    /// Preset of keys, sizes and verbs: tiny, small, large, etc, minos, ycsb-a to ycsb-f
    #[arg(long, short, default_value = "small", value_name = "NAME")]
    pub workload: String,
    /// Number of keys, such as 10k or 1m [default: 1m; minos: 16m]
    #[arg(long, value_parser = vocabulary::count)]
    pub keys: Option<u64>,
    /// Key popularity: uniform, zipf[:EXPONENT], hotspot[:KEYS:REQUESTS] (shares),
    /// latest[:EXPONENT], normal[:DEVIATION] (a share of the keys), pareto[:SHAPE:SCALE],
    /// shard:EXPONENT:SHARD:SHARDS (one server of several), sequential
    #[arg(long, value_name = "LAW")]
    pub dist: Option<Law>,
    /// Length of a key in bytes
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=250))]
    pub key_bytes: Option<u8>,
    /// Length of a value in bytes: a number, uniform:MIN:MAX, or empirical:FILE (a length and a
    /// weight per line)
    #[arg(long, value_name = "SIZES")]
    pub value_bytes: Option<Sizes>,
    /// Share of reads, from 0 to 1
    #[arg(long, value_parser = notation::share, value_name = "SHARE")]
    pub gets: Option<f64>,
    /// Share of deletes, from 0 to 1; the rest of the requests are writes
    #[arg(long, value_parser = notation::share, value_name = "SHARE")]
    pub deletes: Option<f64>,
    /// Keys per read
    #[arg(
        long,
        default_value_t = 1,
        value_parser = notation::within::<u32>(notation::count, 1..=1000),
        value_name = "KEYS"
    )]
    pub multi_get: u32,
    /// Write each key that a read did not find, as an application in front of a database does
    #[arg(long)]
    pub set_on_miss: bool,
    /// Expiry of written items in seconds: never, a number, or uniform:MIN:MAX
    #[arg(long, default_value = "never", value_name = "SECONDS")]
    pub ttl: Ttl,
    /// Replay a recorded trace instead of a workload
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["keys", "dist", "gets", "deletes", "sweep"]
    )]
    pub trace: Option<PathBuf>,
    /// Format of the trace, if its name and first line do not reveal it
    #[arg(long, requires = "trace")]
    pub trace_format: Option<TraceFormat>,
    /// Do not store the keys first
    #[arg(long)]
    pub no_fill: bool,
}

/// How fast.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pace")]
pub struct PaceArguments {
    /// Open loop: requests per second (reads of several keys count once)
    #[arg(long, short, value_parser = above_zero)]
    pub rate: Option<f64>,
    /// Open loop: find the highest rate that the server sustains, starting at --rate [default:
    /// 5000]
    #[arg(long, conflicts_with_all = ["pipeline", "speed", "hdr_log"])]
    pub sweep: bool,
    /// Latency that the server has to keep in a sweep, such as p99=1ms or p99.9=500µs; without it,
    /// the server only has to answer the requests that arrive
    #[arg(long, requires = "sweep", value_name = "PERCENTILE=TIME")]
    pub slo: Option<Slo>,
    /// Open loop: replay the trace by its own clock, this many times as fast
    #[arg(long, requires = "trace", value_parser = above_zero, value_name = "FACTOR")]
    pub speed: Option<f64>,
    /// Closed loop: requests in flight on every connection
    #[arg(
        long,
        default_value_t = 1,
        value_parser = notation::within::<u32>(notation::count, 1..=10_000),
        value_name = "REQUESTS"
    )]
    pub pipeline: u32,
    /// Open loop: times at which requests are due
    #[arg(long, default_value = "poisson")]
    pub arrivals: ArrivalLaw,
    /// Open loop: sleep until a request is due instead of spinning; for a client without its own
    /// cores
    #[arg(long)]
    pub sleep: bool,
}

/// The client.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Client")]
pub struct ClientArguments {
    /// Connections of all threads together
    #[arg(
        long,
        short,
        default_value_t = 50,
        value_parser = notation::within::<u16>(notation::count, 1..)
    )]
    pub connections: u16,
    /// Open loop: so many further connections, which only requests of values above 1400 bytes use,
    /// so that small replies do not wait for large ones on the same connection
    #[arg(
        long,
        value_parser = notation::within::<u16>(notation::count, 1..),
        value_name = "CONNECTIONS"
    )]
    pub large_connections: Option<u16>,
    /// Open loop: further threads that drive the connections of --large-connections, so that a
    /// thread that reads 1 MB does not send its small requests late
    #[arg(
        long,
        default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=512),
        requires = "large_connections",
        value_name = "THREADS"
    )]
    pub large_threads: u16,
    /// Client threads
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub threads: u16,
    /// Cores to bind the threads to, in turn, such as 1,2,3
    #[arg(long, value_delimiter = ',', value_parser = vocabulary::core)]
    pub cores: Vec<usize>,
    /// Bytes that one read of a connection asks for at most [default: what its buffer has room for]
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = notation::within::<u32>(notation::bytes, 1..=1 << 30)
    )]
    pub read_bytes: Option<u32>,
    /// A latency ends when the kernel received the reply, and not when the client read it
    /// (SO_TIMESTAMPNS; not for Unix sockets)
    #[arg(long)]
    pub kernel_timestamps: bool,
    /// Measured seconds [default: 10; with a trace, all of it]
    #[arg(long, value_parser = above_zero)]
    pub seconds: Option<f64>,
    /// Seconds of warm-up, or `steady` to wait until rate and hit ratio are stable [default: 1]
    #[arg(long, value_name = "SECONDS|steady")]
    pub warm_up: Option<Length>,
    /// Longest warm-up with `steady`, in seconds
    #[arg(long, default_value_t = 60.0, value_parser = above_zero, value_name = "SECONDS")]
    pub warm_up_max: f64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What is written beside the table.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files")]
pub struct FileArguments {
    /// Also write the results to this file as JSON, second by second
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    pub json: Option<PathBuf>,
    /// Also write the latencies of every second to this file, as an HdrHistogram log
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    pub hdr_log: Option<PathBuf>,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// memcached's classic text protocol
    #[value(alias = "ascii")]
    Text,
    /// memcached's meta commands
    Meta,
    /// memcached's binary protocol
    Binary,
    /// RESP2: Redis, Valkey and their relatives
    Resp,
    /// The protocol of mtd, Masstree's server
    Masstree,
    /// Glimmer's native protocol over UDP in segment batches (SERVER names its native port)
    Native,
    /// As native, with several requests per datagram
    NativePacked,
    /// As native, without segment batches
    NativePlain,
    /// As native, to every port in turn; needs a server with --native-direction server
    NativeUndirected,
}

impl From<Protocol> for Dialect {
    fn from(protocol: Protocol) -> Dialect {
        match protocol {
            Protocol::Text => Dialect::Text,
            Protocol::Meta => Dialect::Meta,
            Protocol::Binary => Dialect::Binary,
            Protocol::Resp => Dialect::Resp,
            Protocol::Masstree => Dialect::Masstree,
            Protocol::Native => Dialect::Native,
            Protocol::NativePacked => Dialect::NativePacked,
            Protocol::NativePlain => Dialect::NativePlain,
            Protocol::NativeUndirected => Dialect::NativeUndirected,
        }
    }
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Twitter's cache traces: timestamp,key,key size,value size,client,operation,TTL
    Twitter,
    /// libCacheSim's binary records
    OracleGeneral,
    /// libCacheSim's CSV: time,object,size
    Csv,
    /// One key on each line
    Keys,
    /// Alibaba's block traces: device,R or W,offset,length,microseconds
    Alibaba,
    /// MSR Cambridge's block traces: time,host,disk,Read or Write,offset,length,response
    Msr,
}

impl From<TraceFormat> for Format {
    fn from(format: TraceFormat) -> Format {
        match format {
            TraceFormat::Twitter => Format::Twitter,
            TraceFormat::OracleGeneral => Format::OracleGeneral,
            TraceFormat::Csv => Format::Csv,
            TraceFormat::Keys => Format::Keys,
            TraceFormat::Alibaba => Format::Alibaba,
            TraceFormat::Msr => Format::Msr,
        }
    }
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalLaw {
    /// Independently of one another
    Poisson,
    /// At equal distances
    Fixed,
}

/// A warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// So long.
    Seconds(f64),
    /// Until nothing moves.
    Steady,
}

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        match text.parse::<f64>() {
            Ok(seconds) if (0.0..=1e6).contains(&seconds) => Ok(Length::Seconds(seconds)),
            _ if text == "steady" => Ok(Length::Steady),
            _ => Err("a number of seconds, or `steady`".to_owned()),
        }
    }
}
