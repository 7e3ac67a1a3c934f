//! The command line of `glimmer bench load`.

use std::path::PathBuf;

use clap::{ArgGroup, ValueEnum};
use glimmer_loadgen::{
    driver::Dialect,
    load::sweep::Slo,
    workload::{Law, Sizes, Ttl, trace::Format},
};
use glimmer_notation as notation;

use glimmer_cli::vocabulary::{self, ServerAddress, above_zero};

/// Load any memcached or Redis, and measure its throughput and its latency
///
/// Closed loop (the default): every connection sends --pipeline requests, waits
/// for their replies, and sends the next. It finds what a server can do at most;
/// its latencies are those of a client that stops asking while the server
/// stalls, and say little about anybody else's.
///
/// Open loop (--rate): requests are sent when they are due, and latency counts
/// from then on, so that a stall is charged for every request that it delayed.
/// --sweep raises the rate until the server saturates or breaks its --slo.
///
/// All keys are stored first, unless --no-fill is given. Every value names its
/// key and version; a wrong byte ends the run.
///
/// Workloads: tiny (8-byte keys and values), small (16/64), large (128/1024),
/// etc[:SHARE[:MAX]] (Facebook's ETC as Minos models it: a share of the requests
/// is for values of up to MAX bytes), ycsb-a, ycsb-b, ycsb-c, ycsb-d,
/// ycsb-f. Single options override what a workload says.
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
///   glimmer bench load udp:127.0.0.1:11211 --protocol binary --gets 1 --connections 8
///
///   glimmer bench load 127.0.0.1:11300 --protocol native --connections 4 --pipeline 512
///
///   glimmer bench load --trace cluster52.csv --speed 10
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("pace").args(["rate", "pipeline", "speed"]))]
pub struct Arguments {
    #[command(flatten)]
    pub server: ServerAddress,
    /// What it speaks
    #[arg(long, short = 'B', default_value = "text")]
    pub protocol: Protocol,

    /// A workload with a name
    #[arg(
        long,
        short,
        default_value = "small",
        value_name = "NAME",
        help_heading = "What is asked"
    )]
    pub workload: String,
    /// Keys, such as 10k or 1m [default: 1m]
    #[arg(long, value_parser = vocabulary::count, help_heading = "What is asked")]
    pub keys: Option<u64>,
    /// Key popularity: uniform, zipf[:EXPONENT], hotspot[:KEYS:REQUESTS] (shares),
    /// latest[:EXPONENT], sequential
    #[arg(long, value_name = "LAW", help_heading = "What is asked")]
    pub dist: Option<Law>,
    /// Bytes of a key
    #[arg(
        long,
        value_parser = clap::value_parser!(u8).range(1..=250),
        help_heading = "What is asked",
    )]
    pub key_bytes: Option<u8>,
    /// Bytes of a value: a number, uniform:MIN:MAX, or empirical:FILE (a length and a weight on
    /// every line)
    #[arg(long, value_name = "SIZES", help_heading = "What is asked")]
    pub value_bytes: Option<Sizes>,
    /// Share of reads, from 0 to 1
    #[arg(
        long,
        value_parser = notation::share,
        value_name = "SHARE",
        help_heading = "What is asked",
    )]
    pub gets: Option<f64>,
    /// Share of deletes, from 0 to 1; what is neither read nor deleted is written
    #[arg(
        long,
        value_parser = notation::share,
        value_name = "SHARE",
        help_heading = "What is asked",
    )]
    pub deletes: Option<f64>,
    /// Keys of one read
    #[arg(
        long,
        default_value_t = 1,
        value_parser = notation::within::<u32>(notation::count, 1..=1000),
        value_name = "KEYS",
        help_heading = "What is asked",
    )]
    pub multi_get: u32,
    /// Write what a read did not find, as an application in front of a database does
    #[arg(long, help_heading = "What is asked")]
    pub set_on_miss: bool,
    /// Seconds after which what is written expires: never, a number, or uniform:MIN:MAX
    #[arg(
        long,
        default_value = "never",
        value_name = "SECONDS",
        help_heading = "What is asked"
    )]
    pub ttl: Ttl,
    /// Replay a recorded trace instead of a workload
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["keys", "dist", "gets", "deletes", "sweep"],
        help_heading = "What is asked",
    )]
    pub trace: Option<PathBuf>,
    /// How the trace is written, if its name and first line do not tell
    #[arg(long, requires = "trace", help_heading = "What is asked")]
    pub trace_format: Option<TraceFormat>,
    /// Do not store the keys first
    #[arg(long, help_heading = "What is asked")]
    pub no_fill: bool,

    /// Open loop: requests per second (reads of several keys count once)
    #[arg(long, short, value_parser = above_zero, help_heading = "How fast")]
    pub rate: Option<f64>,
    /// Open loop: find the highest rate that the server bears, beginning at --rate [default: 5000]
    #[arg(long, conflicts_with_all = ["pipeline", "speed", "hdr_log"], help_heading = "How fast")]
    pub sweep: bool,
    /// What "bears" means in a sweep: p99=1ms, p99.9=500µs, ...; without one, that the server
    /// answers what arrives
    #[arg(
        long,
        requires = "sweep",
        value_name = "PERCENTILE=TIME",
        help_heading = "How fast"
    )]
    pub slo: Option<Slo>,
    /// Open loop: replay the trace by its own clock, faster by this factor
    #[arg(
        long,
        requires = "trace",
        value_parser = above_zero,
        value_name = "FACTOR",
        help_heading = "How fast",
    )]
    pub speed: Option<f64>,
    /// Closed loop: requests in flight on every connection
    #[arg(
        long,
        default_value_t = 1,
        value_parser = notation::within::<u32>(notation::count, 1..=10_000),
        value_name = "REQUESTS",
        help_heading = "How fast",
    )]
    pub pipeline: u32,
    /// Open loop: independent requests, or requests at equal distances
    #[arg(long, default_value = "poisson", help_heading = "How fast")]
    pub arrivals: ArrivalLaw,
    /// Open loop: sleep until a request is due instead of spinning; for a client without cores of
    /// its own
    #[arg(long, help_heading = "How fast")]
    pub sleep: bool,

    /// Connections of all threads together
    #[arg(
        long,
        short,
        default_value_t = 50,
        value_parser = notation::within::<u16>(notation::count, 1..),
        help_heading = "The client",
    )]
    pub connections: u16,
    /// Client threads
    #[arg(
        long,
        short,
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=512),
        help_heading = "The client",
    )]
    pub threads: u16,
    /// Cores that the threads are bound to, in turn: 1,2,3
    #[arg(long, value_delimiter = ',', help_heading = "The client")]
    pub cores: Vec<usize>,
    /// Seconds that count [default: 10; with a trace, all of it]
    #[arg(long, value_parser = above_zero, help_heading = "The client")]
    pub seconds: Option<f64>,
    /// Seconds that go before and are not counted, or `steady`: until rate and hit ratio no longer
    /// move [default: 1]
    #[arg(long, value_name = "SECONDS|steady", help_heading = "The client")]
    pub warm_up: Option<Length>,
    /// Longest warm-up in seconds until all is steady
    #[arg(
        long,
        default_value_t = 60.0,
        value_parser = above_zero,
        value_name = "SECONDS",
        help_heading = "The client",
    )]
    pub warm_up_max: f64,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 1, help_heading = "The client")]
    pub seed: u64,

    /// Also write what was measured, second by second, to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub json: Option<PathBuf>,
    /// Also write every second's latencies to this file, in HdrHistogram's log format
    #[arg(long, value_name = "FILE", help_heading = "Files")]
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
    /// Glimmer's own over UDP (--server names its native port), requests in trains
    Native,
    /// The same, several requests in a datagram
    NativePacked,
    /// The same, each request sent by itself
    NativePlain,
    /// As native, but to every port in turn; the server has --native-direction server
    NativeUndirected,
}

impl From<Protocol> for Dialect {
    fn from(protocol: Protocol) -> Dialect {
        match protocol {
            Protocol::Text => Dialect::Text,
            Protocol::Meta => Dialect::Meta,
            Protocol::Binary => Dialect::Binary,
            Protocol::Resp => Dialect::Resp,
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
