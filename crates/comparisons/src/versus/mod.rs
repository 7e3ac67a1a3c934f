//! Compares our server with widely used ones in one run. Each is started here, pinned to a core,
//! loaded with the same keys, and measured in turn, so that a slow spell of the machine affects all
//! of them.

mod connections;
mod large;
mod latency;
mod scaling;
mod throughput;
mod ways;

use std::{fmt, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{
    bare,
    client::{closed::Outcome, load::Pass},
    row::{BUSY, Figure, RATE, Row, SERVER_NS},
    servers::{self, CONNECTIONS_MAX, Contender, Described, Kind, Launch, Server},
};
use glimmer_loadgen::workload::Popularity;
use glimmer_measure::{
    ceiling::{AHEAD, REGION_BYTES, Region},
    machine::{self, CLIENT_CORE, SERVER_CORE},
    noise::{self, Noise},
    progress::Progress,
    report::Table,
    stats::Spread,
};

use ways::Way;

/// Measurements in an open loop in which the server did not keep up.
const SATURATED: Figure = Figure::count("saturated");

/// A way to load a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Closed loop, 32 requests in flight on every connection.
    Pipeline32,
    /// Closed loop, one request in flight on every connection.
    Pipeline1,
    /// Closed loop, one read of 50 keys in flight on every connection.
    Multiget50,
    /// Closed loop, 32 reads in flight on every connection, in each of memcached's protocols.
    Protocols,
    /// Closed loop over UDP, one read per datagram, 32 in flight on every socket: as plain
    /// datagrams, like existing clients send, and in segment batches (`UDP_SEGMENT`).
    Udp,
    /// Poisson arrivals at 70% of memcached's maximum with one request in flight on every
    /// connection.
    OpenLoop,
    /// Closed loop, one request in flight on each of many connections.
    Connections,
    /// Closed loop, two requests in flight on each of four connections, values of 10 KB to 1 MB.
    Large,
    /// CPU time per operation with two threads compared with one.
    CpuScaling,
}

impl Scenario {
    /// All scenarios, in the order of execution.
    pub const ALL: [Scenario; 9] = [
        Scenario::Pipeline32,
        Scenario::Pipeline1,
        Scenario::Multiget50,
        Scenario::Protocols,
        Scenario::Udp,
        Scenario::OpenLoop,
        Scenario::Connections,
        Scenario::Large,
        Scenario::CpuScaling,
    ];

    /// The name on the command line and in progress lines.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Pipeline32 => "pipeline32",
            Scenario::Pipeline1 => "pipeline1",
            Scenario::Multiget50 => "multiget50",
            Scenario::Protocols => "protocols",
            Scenario::Udp => "udp",
            Scenario::OpenLoop => "open-loop",
            Scenario::Connections => "connections",
            Scenario::Large => "large",
            Scenario::CpuScaling => "cpu-scaling",
        }
    }

    /// Requests that may lie at one socket of a server.
    fn requests_together(self) -> u32 {
        match self {
            Scenario::Pipeline32 | Scenario::Protocols => throughput::IN_FLIGHT,
            // A server has one socket for all.
            Scenario::Udp => throughput::IN_FLIGHT * throughput::UDP_SOCKETS,
            Scenario::CpuScaling => scaling::BURST_REQUESTS,
            Scenario::Large => large::IN_FLIGHT_MAX,
            Scenario::Pipeline1
            | Scenario::Multiget50
            | Scenario::OpenLoop
            | Scenario::Connections => 1,
        }
    }
}

/// What to compare, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The servers. Ratios relate the first one to the others; ours comes first if it takes part.
    pub servers: Vec<Contender>,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// Keys stored before the measurement.
    pub keys: u32,
    /// Length of a value in bytes.
    pub value_bytes: usize,
    /// Key popularity.
    pub popularity: Popularity,
    /// Connections of the client.
    pub connections: usize,
    /// Cores with a client thread each, in closed loops.
    pub client_cores: Vec<usize>,
    /// Numbers of connections in [`Scenario::Connections`].
    pub many_connections: Vec<usize>,
    /// Length of one repetition.
    pub measured: Duration,
    /// Repetitions of every measurement.
    pub repeat: usize,
    /// Each server's `-m`.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

impl Options {
    /// The number of measurements, which are the steps of the progress.
    fn steps(&self) -> usize {
        let of = |scenario: &Scenario| match scenario {
            Scenario::CpuScaling => scaling::cases(&self.servers),
            Scenario::OpenLoop => ways::cases(&self.servers),
            Scenario::Connections => {
                let has_echo = !self.is_encrypted();
                connections::cases(&self.servers, &self.many_connections, has_echo)
            }
            Scenario::Large => large::cases(&self.servers),
            closed => {
                let shapes = throughput::Shape::of(*closed).into_iter();
                let ceilings = !self.is_encrypted();
                shapes
                    .map(|shape| shape.cases(&self.servers, ceilings))
                    .sum()
            }
        };
        self.repeat * self.scenarios.iter().map(of).sum::<usize>()
    }

    /// Whether servers are driven over TLS.
    fn is_encrypted(&self) -> bool {
        self.servers
            .iter()
            .any(|server| server.encryption().is_some())
    }

    /// Length of the warm-up.
    fn warm_up(&self) -> Duration {
        WARM_UP.min(self.measured)
    }

    /// The largest number of connections to one server.
    fn connections_max(&self) -> usize {
        let is_many = self.scenarios.contains(&Scenario::Connections);
        let many = self.many_connections.iter().filter(|_| is_many).max();
        many.map_or(0, |many| many + connections::SPARE)
            .max(CONNECTIONS_MAX)
    }
}

/// The name of the bare echo in tables.
const ECHO_NAME: &str = "bare echo";
/// The share of reads.
const GET_SHARE: f64 = 0.95;
/// Length of the warm-up before every measurement, unless that is shorter itself.
const WARM_UP: Duration = Duration::from_millis(400);
/// Length of a measurement of the machine.
const CEILING_TIME: Duration = Duration::from_millis(200);

/// All results.
#[derive(Debug, Serialize)]
pub struct Report {
    servers: Vec<Described>,
    keys: u32,
    value_bytes: usize,
    connections: usize,
    client_threads: usize,
    seconds: f64,
    repeat: usize,
    random_reads_per_s: Vec<f64>,
    random_reads_huge_page_bytes: u64,
    noise: Noise,
    throughput: Vec<throughput::Comparison>,
    latency: Option<latency::Comparison>,
    connections_many: Option<connections::Comparison>,
    large: Option<large::Comparison>,
    scaling: Option<scaling::Comparison>,
}

/// Runs the comparison. `progress` receives each step.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Report> {
    let monitor = noise::Monitor::begin()?;
    let described = Contender::all_described(&options.servers)?;
    let mut bench = Bench {
        options,
        progress,
        described,
        servers: Vec::new(),
        region: Region::new(REGION_BYTES).context("memory for the machine's ceiling")?,
        random_reads_per_s: Vec::new(),
    };
    progress.expect(options.steps());
    // Servers inherit the limit, and raise theirs themselves only if they may.
    machine::allow_descriptors(options.connections_max() + connections::SPARE, 0)?;
    let on_loaded =
        |scenario: &Scenario| !matches!(scenario, Scenario::Large | Scenario::CpuScaling);
    if options.scenarios.iter().any(on_loaded) {
        bench.load()?;
    }
    let mut throughput = Vec::new();
    for &scenario in &options.scenarios {
        for shape in throughput::Shape::of(scenario) {
            throughput.push(throughput::compare(&mut bench, shape)?);
        }
    }
    let latency = match options.scenarios.contains(&Scenario::OpenLoop) {
        true => Some(latency::compare(&mut bench, &throughput)?),
        false => None,
    };
    let connections_many = match options.scenarios.contains(&Scenario::Connections) {
        true => Some(connections::compare(&mut bench)?),
        false => None,
    };
    bench.servers.clear();
    let large = match options.scenarios.contains(&Scenario::Large) {
        true => Some(large::compare(&mut bench)?),
        false => None,
    };
    let scaling = match options.scenarios.contains(&Scenario::CpuScaling) {
        true => Some(scaling::compare(&mut bench)?),
        false => None,
    };
    Ok(Report {
        noise: monitor.end(&bench.random_reads_per_s)?,
        servers: bench.described,
        keys: options.keys,
        value_bytes: options.value_bytes,
        connections: options.connections,
        client_threads: options.client_cores.len(),
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        random_reads_huge_page_bytes: bench.region.huge_bytes()?,
        random_reads_per_s: bench.random_reads_per_s,
        throughput,
        latency,
        connections_many,
        large,
        scaling,
    })
}

/// A comparison in progress.
struct Bench<'a> {
    options: &'a Options,
    progress: &'a dyn Progress,
    described: Vec<Described>,
    servers: Vec<Server>,
    region: Region,
    random_reads_per_s: Vec<f64>,
}

impl Bench<'_> {
    fn say(&self, line: impl fmt::Display) {
        self.progress.say(&line.to_string());
    }

    /// Reports that a repetition of a scenario is done for one server.
    fn step(&self, scenario: Scenario, repetition: usize, line: impl fmt::Display) {
        let (name, at, of) = (scenario.name(), repetition + 1, self.options.repeat);
        let line = format!("{name}, repetition {at} of {of}: {line}");
        self.progress.step(&line);
    }

    fn launch(&self, contender: &Contender, threads: usize, cores: Vec<usize>) -> Launch {
        let Options {
            memory_mib,
            value_bytes,
            ..
        } = *self.options;
        let scenarios = self.options.scenarios.iter();
        let together = scenarios.map(|scenario| scenario.requests_together()).max();
        let mut arguments = contender.arguments(&self.options.glimmer_arguments);
        arguments.extend(contender.arguments_for(together.unwrap_or(1)));
        Launch {
            contender: contender.clone(),
            threads,
            cores,
            memory_mib,
            value_bytes,
            udp: self.options.scenarios.contains(&Scenario::Udp),
            connections_max: self.options.connections_max(),
            arguments,
        }
    }

    /// The ways in which each loaded server is driven: the server's place, the way, and what `case`
    /// makes of the way's name.
    fn cases<C>(
        &self,
        ways: impl Fn(&Contender) -> Vec<(String, Way)>,
        case: impl Fn(String) -> C,
    ) -> Vec<(usize, Way, C)> {
        let mut cases = Vec::new();
        for (place, server) in self.servers.iter().enumerate() {
            let ways = ways(server.contender()).into_iter();
            cases.extend(ways.map(|(name, way)| (place, way, case(name))));
        }
        cases
    }

    /// Starts every server on its core and stores all keys in each.
    fn load(&mut self) -> Result<()> {
        for contender in &self.options.servers {
            let server = self.launch(contender, 1, vec![SERVER_CORE]).start()?;
            self.fill(&server)?;
            self.note_settings(&server);
            self.servers.push(server);
        }
        Ok(())
    }

    /// Records with which settings a server runs.
    fn note_settings(&mut self, server: &Server) {
        let mut described = self.described.iter_mut();
        if let Some(it) = described.find(|it| it.server == server.name()) {
            it.settings = server.settings();
            it.tls = server.encrypted().map(str::to_owned);
        }
    }

    /// The bare echo, on the core of the servers, unless values are too large for one receive. It
    /// does not encrypt, so that it is no ceiling for servers that do.
    fn echo(&self) -> Result<Option<Server>> {
        if self.options.is_encrypted() || self.options.value_bytes > bare::VALUE_BYTES_MAX {
            return Ok(None);
        }
        let echo = Contender::from(Kind::Echo);
        self.launch(&echo, 1, vec![SERVER_CORE]).start().map(Some)
    }

    fn fill(&self, server: &Server) -> Result<()> {
        let keys = self.options.keys;
        self.say(format_args!("{}: storing {keys} keys", server.name()));
        let core = Some(CLIENT_CORE);
        machine::on_core(core, || server.pass(Pass::Write, 0..keys, |_| {}))??;
        Ok(())
    }

    /// Measures the machine next to a repetition.
    fn look_at_machine(&mut self) -> Result<()> {
        let reads = self
            .region
            .random_reads_per_s::<AHEAD>(&[SERVER_CORE], CEILING_TIME)?;
        self.random_reads_per_s.push(reads);
        Ok(())
    }
}

/// Adds what every closed loop measures.
fn add(row: &mut Row, outcome: &Outcome) {
    row.add(RATE, outcome.operations_per_s());
    row.add(BUSY, outcome.client_busy());
    row.add(SERVER_NS, outcome.server_ns_per_operation());
}

/// Says below a table which servers did not keep up with its rate. Each measurement at this rate
/// has added to one of the `repeated` figures.
fn say_saturated(rows: &[Row], repeated: &[Figure], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for row in rows.iter().filter(|row| row.counted(SATURATED) > 0) {
        let measurements: usize = repeated.iter().map(|&figure| row.each(figure).len()).sum();
        let (count, name) = (row.counted(SATURATED), &row.name);
        writeln!(
            out,
            "\nSATURATED in {count} of {measurements}: {name} did not keep up with the rate"
        )?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        servers::list(&self.servers, out)?;
        writeln!(
            out,
            "{} keys of 16 bytes, values of {} bytes, {} connections, {} client thread{}; median \
             (min..max) of {} repetitions of {} s.\n",
            self.keys,
            self.value_bytes,
            self.connections,
            self.client_threads,
            if self.client_threads == 1 { "" } else { "s" },
            self.repeat,
            self.seconds
        )?;
        for comparison in &self.throughput {
            writeln!(out, "{comparison}")?;
        }
        if let Some(latency) = &self.latency {
            writeln!(out, "{latency}")?;
        }
        if let Some(connections) = &self.connections_many {
            writeln!(out, "{connections}")?;
        }
        if let Some(large) = &self.large {
            writeln!(out, "{large}")?;
        }
        if let Some(scaling) = &self.scaling {
            writeln!(out, "{scaling}")?;
        }
        if !self.random_reads_per_s.is_empty() {
            let reads = Spread::of(&self.random_reads_per_s);
            let mut table = Table::new(["the machine in this run", "M/s"]);
            let huge = self.random_reads_huge_page_bytes * 100 / REGION_BYTES as u64;
            let head = format!(
                "random 64-byte reads, {AHEAD} in flight, one core, 2 GiB, {huge}% on huge pages"
            );
            let cell = format!(
                "{:.1} ({:.1}..{:.1})",
                reads.median / 1e6,
                reads.min / 1e6,
                reads.max / 1e6
            );
            table.row([head, cell]);
            writeln!(out, "{table}")?;
        }
        write!(out, "{}", self.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_named_as_on_the_command_line() {
        for scenario in Scenario::ALL {
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            let name = scenario.name();
            assert!(
                name.chars().all(|letter| is_plain(letter) || letter == '-'),
                "{name}"
            );
        }
    }
}
