//! Latency of small requests beside large ones, in an open loop: ours under each dispatch policy,
//! memcached and Redis, measured in turn with and without the large requests.

mod report;
mod subject;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use glimmer_loadgen::{
    load::{Arrivals, Group, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp},
    workload::{Law, Workload},
};
use glimmer_measure::{machine, noise, progress::Progress};
use glimmer_notation::{microseconds, per_second};
use serde::Serialize;

use crate::servers::Kind;
use subject::Subject;
pub use subject::policies;

pub use report::{Report, Row, Sample};

/// Length of the warm-up before every measurement.
const WARM_UP: Duration = Duration::from_millis(250);

/// What to compare, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Our dispatch policies, by name.
    pub policies: Vec<String>,
    /// Other servers. One that is not installed is left out, and the report says so.
    pub peers: Vec<Kind>,
    /// Numbers of server threads. Redis has one, and takes part only there.
    pub threads: Vec<usize>,
    /// Requests per second.
    pub rates: Vec<f64>,
    /// Tiny, small and large items.
    pub workload: Workload,
    /// Connections of the small requests.
    pub connections: usize,
    /// Connections, and perhaps threads, of the large requests.
    pub large: LargeApart,
    /// Whether a latency ends when the kernel received the reply.
    pub kernel_timestamps: bool,
    /// Length of one measurement.
    pub measured: Duration,
    /// Repetitions of every measurement.
    pub repeat: usize,
    /// Each server's `-m`; Redis has no limit.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// Whether large requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Only small ones.
    Alone,
    /// Small ones beside large ones.
    BesideLarge,
}

impl Load {
    /// Both, the one without large requests first.
    pub const ALL: [Load; 2] = [Load::Alone, Load::BesideLarge];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Load::Alone => "alone",
            Load::BesideLarge => "beside large",
        }
    }
}

/// The workload with no requests for large items, and otherwise the same.
fn without_large(workload: &Workload) -> Result<Workload> {
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
        large_share: 0.0,
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
    fn plan(&self, load: Load, threads: usize, rate: f64, seed: u64) -> Result<Plan> {
        let workload = match load {
            Load::Alone => without_large(&self.workload)?,
            Load::BesideLarge => self.workload.clone(),
        };
        let (core, is_own) = client_core(threads);
        let pace = Pace::Open {
            arrivals: Arrivals::Poisson(rate),
            burst: 1,
            idle: if is_own { Idle::Spin } else { Idle::Sleep },
        };
        // Threads for large requests take the cores after the client's, where there are any.
        let last = (core + self.large.threads).min(machine::cores() - 1);
        Ok(Plan {
            connections: self.connections,
            large: Some(self.large),
            kernel_timestamps: self.kernel_timestamps,
            cores: (core..=last).collect(),
            warm_up: WarmUp::Fixed(WARM_UP),
            measured: Some(self.measured),
            seed,
            ..Plan::new(Requests::Drawn(workload), pace)
        })
    }

    /// An upper bound of the time that measurements of this many servers take, without storing.
    fn duration(&self, servers: usize) -> Duration {
        let measurements = servers * self.rates.len() * Load::ALL.len() * self.repeat;
        (self.measured + WARM_UP) * measurements as u32
    }
}

/// Runs the comparison. `progress` receives each step.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Report> {
    ensure!(
        machine::cores() >= 2,
        "a server and its client want a core each; this machine offers one"
    );
    for load in Load::ALL {
        let plan = options.plan(load, 1, options.rates[0], 0)?;
        plan.check().map_err(anyhow::Error::msg)?;
    }
    let monitor = noise::Monitor::begin()?;
    let mut notes = Vec::new();
    let mut versions = Vec::new();
    let mut rows = Vec::new();
    let subjects = subject::all(options, &mut versions, &mut notes);
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
    progress.expect(running.len() * options.rates.len() * Load::ALL.len() * options.repeat);
    for repetition in 0..options.repeat {
        for &rate in &options.rates {
            for load in Load::ALL {
                for (subject, server) in &running {
                    let plan = options.plan(load, subject.threads, rate, repetition as u64)?;
                    let sample = Sample::of(&server.drive(&plan)?);
                    let p99 = microseconds(sample.small.p99_us);
                    let at = format!("{} of {}", repetition + 1, options.repeat);
                    progress.step(&format!(
                        "{subject}, {}, {}, repetition {at}: p99 {p99}",
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
        versions,
        workload: options.workload.clone(),
        connections: options.connections,
        large: options.large,
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
        let small = [Group::NoValue, Group::Tiny, Group::Small];
        Sample {
            small: Latency::of(&outcome.sizes.of(&small)),
            large: (!large.is_empty()).then(|| Latency::of(&large)),
            client_late_p99_us: Latency::of(&outcome.lateness).p99_us,
            server_cores: outcome.server_cpu_s / outcome.seconds,
            misses: outcome.tally.misses,
            saturated: outcome.saturated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_has_a_core_of_its_own_where_there_is_one() {
        let cores = machine::cores();
        for threads in 1..cores {
            assert_eq!(client_core(threads), (threads, true));
        }
        assert_eq!(client_core(cores), (cores - 1, false));
    }

    #[test]
    fn large_requests_are_left_out_and_nothing_else_changes() {
        let beside = Workload::preset("minos:0.75%:1m", Some(16_000)).unwrap();
        let alone = without_large(&beside).unwrap();
        assert!(matches!(
            alone.law,
            Law::Trimodal {
                large_share: 0.0,
                large_keys: 10,
                ..
            }
        ));
        assert_eq!((&alone.sizes, alone.keys), (&beside.sizes, beside.keys));
        assert!(without_large(&Workload::default()).is_err());
    }
}
