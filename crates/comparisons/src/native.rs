//! Compares the native protocol with the machine's limit in one run: one server core, one client
//! core and, next to every repetition, an echo of the same datagrams without a server.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result};
use glimmer_transport::packet::SEGMENTS_MAX;
use serde::Serialize;

use crate::{
    echo::{self, EchoMode},
    lab::Place,
    row::{self, Column, Figure, Row},
    servers::{CONNECTIONS_MAX, Contender, Kind, Launch, Server, free_ports},
    transports::Between,
};
use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Pace, Pass, Plan, Requests, WarmUp},
    workload::{Law, Mix, Workload},
};
use glimmer_measure::{
    machine::{self, SERVER_CORE},
    report::Table,
    stats::number,
};

/// Length in bytes of a datagram with one read, without its key: headers of 32 and 16 bytes. The
/// echo's datagrams have this length plus that of the key.
const HEADS_BYTES: usize = 32 + 16;
/// Default of the server's `-m` in MiB, unless the items need more.
const MEMORY_MIB: usize = 1024;
/// Bytes that an item takes at most in addition to key and value, including its share of the index.
const ITEM_BYTES: usize = 64;
/// Segment batches that are echoed, in datagrams: the usual size in benchmarks of segmentation
/// offload, and the kernel's maximum, which the client reaches when enough requests are ready.
const BATCHES: [usize; 2] = [32, SEGMENTS_MAX];
/// Requests in flight on each of Redis's connections, and the number of connections.
const REDIS_PIPELINE: u32 = 32;
const REDIS_CONNECTIONS: usize = 50;
const WARM_UP: Duration = Duration::from_millis(300);

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The workload's name: tiny, small or large.
    pub workload: String,
    /// Keys stored before the measurement.
    pub keys: u64,
    /// Shares of reads, each measured separately.
    pub gets: Vec<f64>,
    /// Sockets of the client.
    pub connections: usize,
    /// Requests in flight on each socket.
    pub in_flight: u32,
    /// Length of one repetition.
    pub measured: Duration,
    /// Repetitions.
    pub repeat: usize,
    /// The server's `-m`; `None` means 1.5 times what all keys need.
    pub memory_mib: Option<usize>,
    /// More arguments for the server.
    pub arguments: Vec<String>,
    /// Whether Redis takes part.
    pub with_redis: bool,
    /// The server's workers, each on its own core as far as there are cores.
    pub threads: usize,
    /// Whether the server directs requests to their owners. If so, requests are also sent to every
    /// port in turn, for comparison.
    pub server_directs: bool,
    /// What carries datagrams between two network namespaces: udp, udp-plain, xdp or dpdk. Sockets
    /// on loopback do if nothing is said.
    pub transport: Option<String>,
}

const PER_S: Figure = Figure::repeated("per_s");
/// The share of requests without an answer.
const LOST: Figure = Figure::sum("lost");
/// The share of read keys that were found.
const FOUND: Figure = Figure::sum("found");
const P50: Figure = Figure::sum("p50_us");
const P99: Figure = Figure::sum("p99_us");
/// CPU time of the server per request in nanoseconds.
const SERVER_NS: Figure = Figure::sum("server_ns");
const FIGURES: [Figure; 6] = [PER_S, LOST, FOUND, P50, P99, SERVER_NS];

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    workload: String,
    keys: u64,
    threads: usize,
    connections: usize,
    in_flight: u32,
    seconds: f64,
    repeat: usize,
    /// What carries datagrams, if these are not sockets on loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    /// Datagrams per second that come back without a server.
    echoes: Vec<Row>,
    rows: Vec<Row>,
}

/// What is echoed beside the server.
struct Echoes<'a> {
    between: Option<&'a Between>,
    bytes: usize,
    /// Datagrams under way on each of some sockets, and those of all sockets of the client.
    in_flight: usize,
    all_in_flight: usize,
    cores: (usize, usize),
    measured: Duration,
}

impl Echoes<'_> {
    /// A row for each echo.
    fn rows(&self) -> Vec<Row> {
        let names = match self.between {
            Some(between) => vec![format!("echo over {}", between.name())],
            None => {
                let [few, many] = BATCHES.map(|count| format!("UDP echo, batches of {count}"));
                vec![few, many, "UDP echo, plain".to_owned()]
            }
        };
        let row = |name| Row::new("name", name, &[PER_S]);
        names.into_iter().map(row).collect()
    }

    /// Adds a repetition, during which the server does nothing.
    fn measure(&self, server: &Server, rows: &mut [Row]) -> Result<()> {
        if let Some(between) = self.between {
            // One that polls would take the echo's core.
            server.pause(true)?;
            let rate = between.echoes_per_s(self.bytes, self.all_in_flight, self.measured);
            server.pause(false)?;
            rows[0].add(PER_S, rate?);
            return Ok(());
        }
        let cores = (Some(self.cores.0), Some(self.cores.1));
        let modes = BATCHES.map(EchoMode::Segmented);
        for (row, mode) in rows
            .iter_mut()
            .zip(modes.into_iter().chain([EchoMode::Plain]))
        {
            let (bytes, in_flight) = (self.bytes, self.in_flight);
            let rate = echo::datagrams_per_s(mode, bytes, in_flight, cores, self.measured)?;
            row.add(PER_S, rate);
        }
        Ok(())
    }
}

/// A server under measurement and its load.
struct Case<'a> {
    name: String,
    server: &'a Server,
    target: Target,
    workload: Workload,
    connections: usize,
    in_flight: u32,
}

/// Runs the measurement. `progress` receives a line for each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    if options.with_redis {
        Contender::from(Kind::Redis).version()?;
    }
    let kind = options.transport.as_deref();
    let between = kind.map(Between::of_kind).transpose()?;
    let between = between.as_ref();
    let place = between.map_or_else(Place::loopback, Between::place);
    // Loads are driven from here on.
    let _visit = between.map(Between::visit_clients).transpose()?;
    let cores = machine::cores();
    let core = |wanted: usize| wanted.min(cores - 1);
    let (server_core, client_core) = (core(SERVER_CORE), core(SERVER_CORE + options.threads));
    // Each worker has a native port.
    let native_port = free_ports(options.threads as u16)?;
    let preset = Workload::preset(&options.workload, Some(options.keys));
    let preset = preset.map_err(|error| anyhow::anyhow!(error))?;
    let memory_mib = options.memory_mib.unwrap_or_else(|| enough_mib(&preset));
    let launch = |kind: Kind, threads, arguments: Vec<String>| Launch {
        contender: kind.into(),
        threads,
        cores: (0..threads)
            .map(|thread| core(SERVER_CORE + thread))
            .collect(),
        memory_mib,
        value_bytes: 8,
        udp: false,
        connections_max: CONNECTIONS_MAX,
        arguments,
    };
    let mut arguments = vec!["--native-port".to_owned(), native_port.to_string()];
    arguments.extend(options.arguments.iter().cloned());
    if options.server_directs {
        arguments.push("--native-direction=server".to_owned());
    }
    arguments.extend(between.into_iter().flat_map(Between::server_arguments));
    let glimmer = launch(Kind::Glimmer, options.threads, arguments).start_at(&place)?;
    let redis = match options.with_redis {
        true => Some(launch(Kind::Redis, 1, Vec::new()).start_at(&place)?),
        false => None,
    };
    let native = match between {
        Some(between) => between.native_target(native_port, Dialect::Native)?,
        None => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, native_port));
            Target::new(Address::Udp(address), Dialect::Native)
        }
    };
    let native = |dialect| Target {
        dialect,
        ..native.clone()
    };
    let workload = |law, gets| Workload {
        law,
        mix: Mix::reads(gets),
        ..preset.clone()
    };
    let mut cases = Vec::new();
    for &gets in &options.gets {
        let percent = gets * 100.0;
        for law in [Law::Uniform, Law::Zipf { exponent: 0.99 }] {
            let mut dialects = vec![(Dialect::Native, "")];
            if options.server_directs {
                dialects.push((Dialect::NativeUndirected, ", directed by the server"));
            }
            for (dialect, how) in dialects {
                cases.push(Case {
                    name: format!("native, {percent:.0}% GET, {law}{how}"),
                    server: &glimmer,
                    target: native(dialect),
                    workload: workload(law, gets),
                    connections: options.connections,
                    in_flight: options.in_flight,
                });
            }
        }
    }
    let first = options.gets.first().copied().unwrap_or(1.0);
    let mut others = vec![(Dialect::NativePacked, "several requests per datagram")];
    // Others than sockets have no segment batches.
    if !between.is_some_and(Between::is_other_than_sockets) {
        others.push((Dialect::NativePlain, "without segment batches"));
    }
    for (dialect, how) in others {
        cases.push(Case {
            name: format!("native, {:.0}% GET, uniform, {how}", first * 100.0),
            server: &glimmer,
            target: native(dialect),
            workload: workload(Law::Uniform, first),
            connections: options.connections,
            in_flight: options.in_flight,
        });
    }
    if let Some(redis) = &redis {
        cases.push(Case {
            name: format!("redis, {:.0}% GET, uniform, pipeline 32", first * 100.0),
            server: redis,
            target: redis.target(),
            workload: workload(Law::Uniform, first),
            connections: REDIS_CONNECTIONS,
            in_flight: REDIS_PIPELINE,
        });
    }
    let echoes = Echoes {
        between,
        bytes: HEADS_BYTES + preset.key_bytes,
        in_flight: options.in_flight as usize,
        all_in_flight: options.in_flight as usize * options.connections,
        cores: (server_core, client_core),
        measured: options.measured,
    };
    // Over protocols that lose nothing.
    let mut filled: Vec<Target> = Vec::new();
    for case in &cases {
        let target = case.server.target();
        let is_filled = |other: &Target| other.address == target.address;
        if !filled.iter().any(is_filled) {
            progress(&format!("storing {} keys for {}", options.keys, case.name));
            let fill = || {
                let numbers = 0..options.keys;
                load::pass(&target, &case.workload, Pass::Write, numbers, &mut |_| {})
            };
            machine::on_core(Some(client_core), fill)??;
            filled.push(target);
        }
    }

    let mut report = Report {
        workload: options.workload.clone(),
        keys: options.keys,
        threads: options.threads,
        connections: options.connections,
        in_flight: options.in_flight,
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        transport: between.map(|it| it.name().to_owned()),
        echoes: echoes.rows(),
        rows: cases.iter().map(|case| row(&case.name)).collect(),
    };
    for repetition in 0..options.repeat {
        echoes.measure(&glimmer, &mut report.echoes)?;
        for (case, row) in cases.iter().zip(&mut report.rows) {
            let plan = Plan {
                connections: case.connections,
                cores: vec![client_core],
                warm_up: WarmUp::Fixed(WARM_UP),
                measured: Some(options.measured),
                seed: repetition as u64 + 1,
                ..Plan::new(
                    Requests::Drawn(case.workload.clone()),
                    Pace::Closed {
                        in_flight: case.in_flight,
                    },
                )
            };
            let cpu = || case.server.cpu();
            let outcome = load::run(&case.target, &plan, Some(&cpu), &mut |_| {})
                .with_context(|| format!("measuring {}", case.name))?;
            let rate = outcome.operations_per_s();
            progress(&format!(
                "{}: {:.2} M/s, repetition {} of {}",
                case.name,
                rate / 1e6,
                repetition + 1,
                options.repeat
            ));
            add(row, &outcome, options.repeat);
        }
    }
    Ok(report)
}

/// MiB that hold 1.5 times the workload's items.
fn enough_mib(workload: &Workload) -> usize {
    let item_bytes = workload.key_bytes + workload.sizes.max() as usize + ITEM_BYTES;
    let items_mib = (workload.keys as usize * item_bytes) >> 20;
    MEMORY_MIB.max(items_mib + items_mib / 2)
}

/// One way to load the server.
fn row(name: &str) -> Row {
    Row::new("name", name, &FIGURES)
}

/// Adds one of `repeat` repetitions.
fn add(row: &mut Row, outcome: &load::Outcome, repeat: usize) {
    let latency = load::Latency::of(&outcome.latency_ns());
    let share = 1.0 / repeat as f64;
    let all = (outcome.tally.operations() + outcome.tally.lost).max(1) as f64;
    row.add(PER_S, outcome.operations_per_s());
    row.add(FOUND, outcome.tally.hit_ratio() * share);
    row.add(LOST, outcome.tally.lost as f64 / all * share);
    row.add(P50, latency.p50_us * share);
    row.add_told(P99, latency.p99_us.map(|us| us * share));
    row.add(SERVER_NS, outcome.server_ns_per_operation() * share);
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} items, {} keys; {} server worker{} and one client core, {} sockets \
             with {} requests in flight each;",
            self.workload,
            self.keys,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.connections,
            self.in_flight
        )?;
        writeln!(
            out,
            "median (min..max) of {} repetitions of {} s.\n",
            self.repeat, self.seconds
        )?;
        let sum = |head: &str, figure, show: fn(f64) -> String| {
            Column::new(head, move |row: &Row| {
                let sum = row.has(figure).then(|| row.sum(figure));
                sum.map_or(String::new(), show)
            })
        };
        let mut columns = vec![row::name("what"), row::scaled("M/s", PER_S, 1e6, 2)];
        for echo in &self.echoes {
            let (_, which) = echo.name.split_once("echo").unwrap_or_default();
            let which = match which.strip_prefix(", ") {
                Some("plain") => "of plain echo".to_owned(),
                Some(batches) => format!("of echo, {batches}"),
                None => "of the echo".to_owned(),
            };
            columns.push(row::part(which, PER_S, echo));
        }
        columns.extend([
            sum("lost", LOST, |lost| format!("{:.3}%", lost * 100.0)),
            sum("found", FOUND, |found| format!("{:.1}%", found * 100.0)),
            sum("p50 µs", P50, |us| format!("{us:.0}")),
            sum("p99 µs", P99, |us| number(us, 0)),
            sum("server ns", SERVER_NS, |ns| number(ns, 0)),
        ]);
        let table = Table::of(self.echoes.iter().chain(&self.rows), columns);
        write!(out, "{table}")
    }
}
