//! `glimmer bench tail`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, anyhow, bail, ensure};
use glimmer_comparisons::{
    servers::Contender,
    tail::{self, LargePace, Options, OurProtocol, Report},
};
use glimmer_figures::{
    Columns, Data, Kind, Needs, Point, Spec,
    plot::{self, Plot, Unit},
};
use glimmer_loadgen::{load::LargeApart, workload::Workload};
use glimmer_notation as notation;

use crate::{
    Placed,
    peers::{Peer, contenders, named},
    progress::Watch,
};
use glimmer_cli::vocabulary::{self, above_zero, connections, memory_mib, repetitions, seconds};

/// Measure small requests beside large ones: what a few large values do to everybody
///
/// The command starts this server under each of its dispatch policies, memcached
/// and Redis, stores the same keys in each, and sends them requests that arrive at
/// a fixed rate. It measures all of them in turn, with and without the requests
/// for large values, and repeats. The table shows the latency of small requests;
/// `p99 over alone` is what the large ones add.
///
/// Large requests have connections of their own, because requests behind a large
/// one on the same connection have to wait for it with any server. They are a share
/// of all requests, or come as fast as they are answered (--large-pace saturating).
///
/// The client needs a core that the server does not use. Where -t takes all
/// cores, the report says so; compare only rows of the same table then. Rows whose
/// repetitions disagree are marked NOISY.
///
/// Examples:
///
///   glimmer bench tail                                  twenty minutes, tail.svg
///
///   glimmer bench tail --rate 20k --threads 1           one table, a minute
///
///   glimmer bench tail --dispatch keyhash --peers none --workload minos:0.125%
///
///   glimmer bench tail --rate 5k --large-pace saturating
///
///   glimmer bench tail --rate 5k --slow-readers 64
///
///   glimmer bench tail --protocol native --peers none
///
///   glimmer bench tail --rate 5k,10k,20k,40k --picture tail.png --json tail.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Dispatch policies of this server, or `none` [default: all that its access mode permits]
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    dispatch: Vec<String>,
    /// Protocols of this server's clients
    #[arg(long, short = 'B', value_delimiter = ',', default_value = "memcached")]
    protocol: Vec<Protocol>,
    /// Servers to compare with; those that are not installed are left out
    #[arg(long, value_delimiter = ',', default_value = "memcached,redis")]
    peers: Vec<Peer>,
    /// Another program to compare with, and its name in tables: memcached, Redis, Valkey,
    /// Pogocache or another build of this server. May be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named)]
    peer: Vec<Contender>,
    /// Numbers of server threads (Redis has one)
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "1,2",
        value_parser = notation::within::<u16>(notation::count, 1..=64),
    )]
    threads: Vec<u16>,
    /// Requests per second, of all sizes together unless large ones have a pace of their own
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "10k,20k,40k",
        value_parser = above_zero,
    )]
    rate: Vec<f64>,
    /// Requests and items: minos[:SHARE[:MAX]], or etc, which is the same. SHARE of the requests
    /// are for values of 1500 to MAX bytes
    #[arg(
        long,
        short,
        default_value = "minos:0.75%:1000000",
        value_name = "NAME"
    )]
    workload: String,
    /// Number of keys, of which one in 1600 is large
    #[arg(long, default_value = "160k", value_parser = vocabulary::count)]
    keys: u64,
    /// Connections of the small requests
    #[arg(long, short, default_value_t = 16, value_parser = connections)]
    connections: u16,
    /// Connections of the large requests
    #[arg(long, default_value_t = 4, value_name = "CONNECTIONS", value_parser = connections)]
    large_connections: u16,
    /// Client threads of the large requests; with 0, the thread of the small ones sends them too
    #[arg(
        long,
        default_value_t = 0,
        value_name = "THREADS",
        value_parser = clap::value_parser!(u16).range(0..=64),
    )]
    large_threads: u16,
    /// When large requests are sent
    #[arg(long, default_value = "due", value_name = "PACE")]
    large_pace: Pace,
    /// Also measure small requests beside this many clients that read the largest value slowly
    #[arg(
        long,
        default_value_t = 0,
        value_name = "CLIENTS",
        value_parser = clap::value_parser!(u16).range(0..=512),
    )]
    slow_readers: u16,
    /// A latency ends when the client read the reply, and not when its kernel received it
    #[arg(long)]
    no_kernel_timestamps: bool,
    /// Seconds of the same load before every measurement. A policy that goes by what is requested
    /// makes its plan once a second, and has the right one after two
    #[arg(long, default_value_t = 2.5, value_parser = seconds, value_name = "SECONDS")]
    warm_up: f64,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Memory limit of every server in MiB (Redis runs without one)
    #[arg(short, long, value_name = "MIB", default_value_t = 1024, value_parser = memory_mib)]
    memory_limit: usize,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Draw p99 by rate to this file, as SVG or PNG
    #[arg(long, value_name = "FILE", default_value = "tail.svg", value_parser = picture)]
    picture: PathBuf,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

/// A protocol of our server.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Protocol {
    /// memcached's text protocol over TCP
    Memcached,
    /// The native protocol over UDP
    Native,
}

/// When large requests are sent.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Pace {
    /// When they are due: they are a share of the requests per second
    Due,
    /// As fast as they are answered, one in flight on each connection; the requests per second are
    /// small ones
    Saturating,
}

/// The name of a picture, which says how it is drawn.
fn picture(text: &str) -> Result<PathBuf, String> {
    let path = vocabulary::output(text)?;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(path),
        _ => Err("a picture ends with .svg or .png".to_owned()),
    }
}

impl Arguments {
    /// Runs the comparison, prints its tables and draws the picture.
    pub fn run(&self) -> anyhow::Result<()> {
        let options = self.options()?;
        let report = tail::run(&options, &Watch::new("tail"))?;
        print!("{report}");
        let writing = || format!("writing {}", self.picture.display());
        std::fs::write(&self.picture, self.drawn(&report)?).with_context(writing)?;
        println!("\nPicture: {}", self.picture.display());
        super::write_json(&self.json, &Placed::here(&report))
    }

    fn options(&self) -> anyhow::Result<Options> {
        let policies = self.policies()?;
        let peers: Vec<Contender> = contenders(&self.peers, &self.peer).collect();
        ensure!(
            !policies.is_empty() || !peers.is_empty(),
            "no server to measure: name --peers, or leave --dispatch none out"
        );
        let workload = Workload::preset(&self.workload, Some(self.keys));
        Ok(Options {
            policies,
            protocols: self
                .protocol
                .iter()
                .map(|protocol| match protocol {
                    Protocol::Memcached => OurProtocol::Memcached,
                    Protocol::Native => OurProtocol::Native,
                })
                .collect(),
            large_pace: match self.large_pace {
                Pace::Due => LargePace::Due,
                Pace::Saturating => LargePace::Saturating,
            },
            slow_readers: usize::from(self.slow_readers),
            peers,
            threads: self.threads.iter().copied().map(usize::from).collect(),
            rates: self.rate.clone(),
            workload: workload.map_err(|error| anyhow!(error))?,
            connections: usize::from(self.connections),
            large: LargeApart {
                connections: usize::from(self.large_connections),
                threads: usize::from(self.large_threads),
            },
            kernel_timestamps: !self.no_kernel_timestamps,
            warm_up: Duration::from_secs_f64(self.warm_up),
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            memory_mib: self.memory_limit,
            glimmer_arguments: super::words(&self.glimmer_args),
        })
    }

    fn policies(&self) -> anyhow::Result<Vec<String>> {
        let known = tail::policies();
        if self.dispatch.is_empty() {
            return Ok(known);
        }
        if self.dispatch == ["none"] {
            return Ok(Vec::new());
        }
        for policy in &self.dispatch {
            // What follows the name is the policy's own parameter.
            let name = policy.split(':').next().unwrap_or_default();
            if !known.iter().any(|known| known == name) {
                let known = known.join(", ");
                match name {
                    "none" => bail!("--dispatch none stands alone, or name policies: {known}"),
                    _ => bail!("--dispatch {policy}: some of {known}, or none"),
                }
            }
        }
        Ok(self.dispatch.clone())
    }

    /// The picture, in the format that its name says.
    fn drawn(&self, report: &Report) -> anyhow::Result<Vec<u8>> {
        let mut data = Data::default();
        for row in &report.rows {
            let panel = format!("-t {}, {}", row.threads, row.load.name());
            // That of few requests is not told.
            for p99_us in row.p99_us().into_iter().filter(|us| us.is_finite()) {
                data.add(Point::new(&panel, &row.server, row.requests_per_s, p99_us));
            }
        }
        let svg = plot::svg(&spec(), &data)?;
        match self
            .picture
            .extension()
            .is_some_and(|ending| ending == "png")
        {
            true => plot::png(&svg),
            false => Ok(svg.into_bytes()),
        }
    }
}

/// How the picture is drawn.
fn spec() -> Spec {
    Spec {
        name: "tail",
        title: "p99 of small requests, alone and beside large ones",
        source: "glimmer bench tail",
        claim: "",
        here: "",
        kind: Kind::Timing,
        needs: Needs {
            cores: 2,
            cores_of_paper: 8,
            memory_mib: 0,
            peers: &[],
        },
        columns: Columns {
            panel: "load",
            series: "server",
            x: "requests per s",
            y: "p99 of small requests, µs",
        },
        plot: Plot::lines("requests per second", "p99 of small requests")
            .unit(Unit::Microseconds)
            .log_y()
            .shared_y()
            .whole_x(),
    }
}
