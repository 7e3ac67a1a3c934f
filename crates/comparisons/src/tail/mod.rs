//! Latency of small requests beside large ones, in an open loop: ours under each dispatch policy,
//! memcached and Redis, measured in turn with and without the large requests.

mod report;
mod slow_readers;
mod subject;

use std::{thread, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use glimmer_loadgen::{
    driver::{Address, Target},
    load::{
        Arrivals, Group, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp, sweep,
    },
    workload::{Law, Workload},
};
use glimmer_measure::{machine, noise, progress::Progress};
use glimmer_notation::{microseconds, per_second};
use serde::Serialize;

use crate::servers::{Contender, Server};
use slow_readers::SlowReaders;
use subject::Subject;
pub use subject::policies;

pub use report::{Report, Row, Sample};

/// By how much large requests that come as fast as they are answered outlast the small ones on
/// either side.
const OVERLAP: Duration = Duration::from_millis(100);

/// What to compare, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Our dispatch policies, by name.
    pub policies: Vec<String>,
    /// The protocols that the clients of our server speak.
    pub protocols: Vec<OurProtocol>,
    /// Other servers. One that is not installed is left out, and the report says so.
    pub peers: Vec<Contender>,
    /// Numbers of server threads. Redis and Valkey have one, and take part only there.
    pub threads: Vec<usize>,
    /// Requests per second.
    pub rates: Vec<f64>,
    /// Tiny, small and large items.
    pub workload: Workload,
    /// Connections of the small requests.
    pub connections: usize,
    /// Connections, and perhaps threads, of the large requests.
    pub large: LargeApart,
    /// When the large requests are sent.
    pub large_pace: LargePace,
    /// Clients that take the largest value slowly; with 0, nothing is measured beside them.
    pub slow_readers: usize,
    /// Whether a latency ends when the kernel received the reply.
    pub kernel_timestamps: bool,
    /// Length of the load before every measurement. `size-aware` makes a plan once a second, and
    /// needs two.
    pub warm_up: Duration,
    /// Length of one measurement.
    pub measured: Duration,
    /// Repetitions of every measurement.
    pub repeat: usize,
    /// Each server's `-m`; Redis has no limit.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// A protocol of our server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OurProtocol {
    /// memcached's text protocol over TCP.
    Memcached,
    /// The native protocol over UDP.
    Native,
}

/// When large requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LargePace {
    /// When they are due: they are a share of all requests.
    Due,
    /// As fast as they are answered, one in flight on each connection. All requests at the rate are
    /// small ones.
    Saturating,
}

/// What is sent beside the small requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    Alone,
    /// Large ones.
    BesideLarge,
    /// Replies to clients that take large values slowly.
    BesideSlow,
}

impl Load {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Load::Alone => "alone",
            Load::BesideLarge => "beside large",
            Load::BesideSlow => "beside slow readers",
        }
    }
}

/// The workload with this share of requests for large items, and otherwise the same.
fn with_large_share(workload: &Workload, large_share: f64) -> Result<Workload> {
    let Law::Trimodal {
        exponent,
        large_keys,
        ..
    } = workload.law
    else {
        bail!("the workload has no large items of their own: use etc or minos");
    };
    let law = Law::Trimodal {
        exponent,
        large_keys,
        large_share,
    };
    Ok(Workload {
        law,
        ..workload.clone()
    })
}

/// Where the client runs beside a server with this many threads.
fn client_core(threads: usize) -> (usize, bool) {
    let cores = machine::cores();
    match threads < cores {
        true => (threads, true),
        false => (cores - 1, false),
    }
}

impl Options {
    /// What is measured, the load without large requests first.
    fn loads(&self) -> impl Iterator<Item = Load> + Clone {
        let slow = (self.slow_readers > 0).then_some(Load::BesideSlow);
        [Load::Alone, Load::BesideLarge].into_iter().chain(slow)
    }

    /// The requests that arrive at the rate.
    fn plan(&self, load: Load, threads: usize, rate: f64, seed: u64) -> Result<Plan> {
        let workload = match (load, self.large_pace) {
            (Load::BesideLarge, LargePace::Due) => self.workload.clone(),
            (Load::Alone | Load::BesideSlow, _) | (Load::BesideLarge, LargePace::Saturating) => {
                with_large_share(&self.workload, 0.0)?
            }
        };
        let (core, is_own) = client_core(threads);
        let spins = is_own && self.large_pace == LargePace::Due;
        let pace = Pace::Open {
            arrivals: Arrivals::Poisson(rate),
            burst: 1,
            idle: if spins { Idle::Spin } else { Idle::Sleep },
        };
        // Threads for large requests take the cores after the client's, where there are any.
        let last = (core + self.large.threads).min(machine::cores() - 1);
        Ok(Plan {
            connections: self.connections,
            large: (self.large_pace == LargePace::Due).then_some(self.large),
            kernel_timestamps: self.kernel_timestamps,
            cores: (core..=last).collect(),
            real_time: !spins,
            warm_up: WarmUp::Fixed(self.warm_up),
            measured: Some(self.measured),
            seed,
            ..Plan::new(Requests::Drawn(workload), pace)
        })
    }

    /// Large requests that come as fast as they are answered, while those of `small` are measured.
    fn saturating(&self, small: &Plan) -> Result<Plan> {
        let threads = self.large.threads.max(1);
        let workload = with_large_share(&self.workload, 1.0)?;
        let closed = Pace::Closed { in_flight: 1 };
        // With threads of their own, they leave the first core to the small requests if they can.
        let own = usize::from(self.large.threads > 0).min(small.cores.len() - 1);
        Ok(Plan {
            threads,
            connections: self.large.connections,
            cores: small.cores[own..].to_vec(),
            measured: Some(self.measured + OVERLAP),
            seed: !small.seed,
            ..Plan::new(Requests::Drawn(workload), closed)
        })
    }

    /// Measures one server once.
    fn measure(&self, server: &Server, target: &Target, load: Load, plan: &Plan) -> Result<Sample> {
        if load == Load::BesideSlow {
            return self.measure_beside_slow(server, target, plan);
        }
        if (load, self.large_pace) != (Load::BesideLarge, LargePace::Saturating) {
            return Sample::of(&server.drive_at(target, plan)?).in_memory_of(server);
        }
        let large = Plan {
            warm_up: WarmUp::Fixed(self.warm_up.saturating_sub(OVERLAP)),
            ..self.saturating(plan)?
        };
        thread::scope(|scope| {
            let large = scope.spawn(|| server.drive_at(target, &large));
            let small = server.drive_at(target, plan);
            let large = large
                .join()
                .map_err(|_| anyhow!("a client thread failed"))?;
            let large = large.context("the large requests")?;
            Sample::of(&small?).beside(&large).in_memory_of(server)
        })
    }

    /// Measures one server once, beside slow readers. They share the client's core.
    fn measure_beside_slow(&self, server: &Server, target: &Target, plan: &Plan) -> Result<Sample> {
        let Address::Tcp(address) = server.target().address else {
            bail!("slow readers need a TCP port");
        };
        let readers = SlowReaders {
            server: address,
            dialect: server.target().dialect,
            clients: self.slow_readers,
            value_bytes: self.workload.sizes.max() as usize,
        };
        let core = plan.cores.first().copied();
        let measure = || {
            readers.store()?;
            readers.beside(|| Sample::of(&server.drive_at(target, plan)?).in_memory_of(server))
        };
        let (sample, closed) = machine::on_core(core, measure)??;
        Ok(Sample { closed, ..sample? })
    }

    /// An upper bound of the time that measurements of this many servers take, without storing.
    fn duration(&self, servers: usize) -> Duration {
        let measurements = servers * self.rates.len() * self.loads().count() * self.repeat;
        (self.measured + self.warm_up) * measurements as u32
    }
}

/// Runs the comparison. `progress` receives each step.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Report> {
    ensure!(
        machine::cores() >= 2,
        "a server and its client want a core each; this machine offers one"
    );
    for load in options.loads() {
        let plan = options.plan(load, 1, options.rates[0], 0)?;
        plan.check().map_err(anyhow::Error::msg)?;
        if options.large_pace == LargePace::Saturating {
            let large = options.saturating(&plan)?;
            large.check().map_err(anyhow::Error::msg)?;
        }
    }
    let monitor = noise::Monitor::begin()?;
    let mut notes = Vec::new();
    if !machine::may_run_in_real_time() {
        notes.push(
            "a client that shares its core is late, because it may not have real-time priority: \
             run as root, or allow it (`ulimit -r 1`)"
                .to_owned(),
        );
    }
    Contender::ensure_distinct(&options.peers)?;
    let mut servers = Vec::new();
    let mut rows = Vec::new();
    let subjects = subject::all(options, &mut servers, &mut notes)?;
    let mut running = Vec::new();
    for subject in subjects {
        progress.say(&format!(
            "{subject}: storing {} keys",
            options.workload.keys
        ));
        match subject.start(options) {
            Ok(server) => running.push((subject, server)),
            Err(error) => notes.push(format!("{subject} is left out: {error:#}")),
        }
    }
    ensure!(
        !running.is_empty(),
        "no server to measure: {}",
        notes.join("; ")
    );
    let seconds = options.duration(running.len()).as_secs_f64();
    progress.say(&format!(
        "{} servers; this takes about {seconds:.0} s",
        running.len()
    ));
    let measurements = running.len() * options.rates.len() * options.loads().count();
    progress.expect(measurements * options.repeat);
    for repetition in 0..options.repeat {
        for &rate in &options.rates {
            for load in options.loads() {
                for (subject, server) in &running {
                    let plan = options.plan(load, subject.threads, rate, repetition as u64)?;
                    let target = subject.target(server);
                    let sample = options.measure(server, &target, load, &plan)?;
                    let (slow, us) = sample.small.slow();
                    let us = microseconds(us);
                    let at = format!("{} of {}", repetition + 1, options.repeat);
                    progress.step(&format!(
                        "{subject}, {}, {}, repetition {at}: {slow} {us}",
                        per_second(rate),
                        load.name(),
                    ));
                    add(&mut rows, subject, (rate, load), sample);
                }
            }
        }
    }
    drop(running);
    Ok(Report {
        servers,
        workload: options.workload.clone(),
        connections: options.connections,
        large: options.large,
        large_pace: options.large_pace,
        slow_readers: options.slow_readers,
        memory_mib: options.memory_mib,
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        cores: machine::cores(),
        notes,
        noise: monitor.end(&[])?,
        rows,
    })
}

fn add(rows: &mut Vec<Row>, subject: &Subject, (rate, load): (f64, Load), sample: Sample) {
    let is_here = |row: &Row| {
        (
            row.server.as_str(),
            row.threads,
            row.requests_per_s,
            row.load,
        ) == (subject.name.as_str(), subject.threads, rate, load)
    };
    if let Some(row) = rows.iter_mut().find(|row| is_here(row)) {
        return row.samples.push(sample);
    }
    let (client_core, client_has_its_core) = client_core(subject.threads);
    rows.push(Row {
        server: subject.name.clone(),
        threads: subject.threads,
        requests_per_s: rate,
        load,
        client_core,
        client_has_its_core,
        samples: vec![sample],
    });
}

impl Sample {
    fn of(outcome: &Outcome) -> Sample {
        let large = outcome.sizes.of(&[Group::Large]);
        let large_per_s = large.len() as f64 / outcome.seconds;
        let small = [Group::NoValue, Group::Tiny, Group::Small];
        Sample {
            small: Latency::of(&outcome.sizes.of(&small)),
            large: (!large.is_empty()).then(|| Latency::of(&large)),
            large_per_s,
            client_late: Latency::of(&outcome.lateness),
            server_cores: outcome.server_cpu_s / outcome.seconds,
            server_mib: f64::NAN,
            closed: 0,
            misses: outcome.tally.misses,
            lost: outcome.tally.lost,
            saturated: !sweep::kept_up(outcome),
        }
    }

    /// The same with the memory that the server has at its end.
    fn in_memory_of(self, server: &Server) -> Result<Sample> {
        let (bytes, _) = machine::resident_bytes(server.pid())?;
        Ok(Sample {
            server_mib: bytes as f64 / f64::from(1 << 20),
            ..self
        })
    }

    /// The same with large requests that another plan sent meanwhile.
    fn beside(self, outcome: &Outcome) -> Sample {
        let other = Sample::of(outcome);
        Sample {
            large: other.large,
            large_per_s: other.large_per_s,
            misses: self.misses + other.misses,
            lost: self.lost + other.lost,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_loadgen::load::record::histogram;

    #[test]
    fn the_client_has_a_core_of_its_own_where_there_is_one() {
        let cores = machine::cores();
        for threads in 1..cores {
            assert_eq!(client_core(threads), (threads, true));
        }
        assert_eq!(client_core(cores), (cores - 1, false));
    }

    #[test]
    fn a_server_that_answers_half_of_the_requests_in_time_is_saturated() {
        let remarks = |in_time| {
            let row = Row {
                server: "a server".to_owned(),
                threads: 1,
                requests_per_s: 1000.0,
                load: Load::Alone,
                client_core: 1,
                client_has_its_core: true,
                samples: vec![Sample::of(&outcome(in_time))],
            };
            row.remarks()
        };
        assert_eq!(remarks(1000), "");
        assert_eq!(remarks(500), "SATURATED in 1 of 1");
    }

    #[test]
    fn few_requests_have_their_remarks_too() {
        let sample = |latency_ns, late_ns| {
            let mut outcome = Outcome::idle();
            outcome.sizes.record(100, latency_ns);
            outcome.lateness.saturating_record(late_ns);
            outcome.reads.saturating_record(latency_ns);
            outcome.in_time = 1;
            Sample::of(&outcome)
        };
        let remarks = |samples: [Sample; 2]| {
            let row = Row {
                server: "a server".to_owned(),
                threads: 1,
                requests_per_s: 1.0,
                load: Load::Alone,
                client_core: 1,
                client_has_its_core: true,
                samples: samples.to_vec(),
            };
            row.remarks()
        };
        assert_eq!(remarks([sample(1_000_000, 1_000); 2]), "");
        let late = remarks([sample(1_000_000, 600_000); 2]);
        assert_eq!(late, "CLIENT LATE by 600 µs");
        let noisy = remarks([sample(1_000_000, 1_000), sample(9_000_000, 1_000)]);
        assert_eq!(noisy, "NOISY");
    }

    /// Of a thousand requests in a second, with this many replies in it.
    fn outcome(in_time: u64) -> Outcome {
        let mut reads = histogram();
        reads.saturating_record_n(1_000_000, 1000);
        Outcome {
            reads,
            in_time,
            ..Outcome::idle()
        }
    }

    #[test]
    fn large_requests_are_left_out_and_nothing_else_changes() {
        let beside = Workload::preset("minos:0.75%:1m", Some(16_000)).unwrap();
        let alone = with_large_share(&beside, 0.0).unwrap();
        assert!(matches!(
            alone.law,
            Law::Trimodal {
                large_share: 0.0,
                large_keys: 10,
                ..
            }
        ));
        assert_eq!((&alone.sizes, alone.keys), (&beside.sizes, beside.keys));
        assert!(with_large_share(&Workload::default(), 0.0).is_err());
    }
}
