//! Exposes a server to hostile clients and measures what its well-behaved clients notice.
//!
//! Each scenario is one file with an implementation of [`Scenario`]. A run starts the server (or
//! uses a running one), lets well-behaved clients visit it alone, then adds hostile clients. It
//! samples the server's resident memory all the time and ends with a verdict.

mod administration;
mod control_datagrams;
mod control_replies;
mod crowd;
mod manners;
mod native_large_reads;
mod native_writers;
mod non_readers;
mod read_everything;
mod report;
mod resident;
mod scenario;
mod slow;
mod slow_mixture;
mod slow_readers;
mod slow_senders;
mod subject;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::servers::{CONNECTIONS_MAX, Kind, Launch};
use glimmer_loadgen::driver::Address;
use glimmer_measure::machine;

pub use crowd::{Crowd, raise_descriptor_limit};
pub use manners::{Latency, PATIENCE, TextVisitor, Visitor};
pub use report::Report;
pub use scenario::{Bounds, Case, Check, Measured, Scenario};
pub use subject::{Subject, TextClient};

use manners::Visitors;
use report::Row;
use resident::Sampler;

/// Every scenario, in the order of execution.
pub const SCENARIOS: &[&dyn Scenario] = &[
    &administration::Administration,
    &control_replies::ControlReplies,
    &control_datagrams::ControlDatagrams,
    &slow_senders::SlowSenders,
    &slow_readers::SlowReaders,
    &non_readers::NonReaders,
    &slow_mixture::SlowMixture,
    &read_everything::ReadEverything,
    &native_writers::ONE_ADDRESS,
    &native_writers::MANY_ADDRESSES,
    &native_large_reads::NativeLargeReads,
];

/// Connections of a server in addition to the hostile ones.
const CONNECTIONS_SPARE: usize = 64;
/// Time between the departure of the hostile clients and the last reading of resident memory.
const SETTLE: Duration = Duration::from_secs(1);

/// What to run, and against which servers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of scenarios in [`SCENARIOS`].
    pub scenarios: Vec<&'static str>,
    /// Whether to run every combination of a scenario's sizes, instead of only the representative
    /// one.
    pub every_case: bool,
    /// Servers to start, one after the other.
    pub servers: Vec<Kind>,
    /// A running server to use instead.
    pub running: Option<Address>,
    /// `-m` of the started servers in MiB, instead of each case's own.
    pub memory_mib: Option<usize>,
    /// Hostile connections, instead of each case's own.
    pub connections: Option<usize>,
    /// Worker threads of the started servers.
    pub threads: usize,
    /// How long well-behaved clients visit alone.
    pub quiet: Duration,
    /// How long hostile clients are connected.
    pub attack: Duration,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// Runs the scenarios. `progress` receives a line for each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let mut report = Report::default();
    for scenario in SCENARIOS {
        if !options.scenarios.contains(&scenario.name()) {
            continue;
        }
        for case in scenario.cases(options.every_case) {
            let case = options.adjust(case);
            match &options.running {
                Some(address) => {
                    let subject = Subject::running(address)?;
                    report.add(one(options, *scenario, case, &subject, progress)?);
                }
                None => {
                    for &kind in options.servers.iter().filter(|&&kind| scenario.suits(kind)) {
                        let server = options.launch(*scenario, &case, kind).start()?;
                        let subject = Subject::started(&server)?;
                        report.add(one(options, *scenario, case.clone(), &subject, progress)?);
                    }
                }
            }
        }
    }
    Ok(report)
}

impl Options {
    /// The case with the overrides of the command line.
    fn adjust(&self, mut case: Case) -> Case {
        case.memory_mib = self.memory_mib.unwrap_or(case.memory_mib);
        case.connections = self.connections.unwrap_or(case.connections);
        case
    }

    fn launch(&self, scenario: &dyn Scenario, case: &Case, kind: Kind) -> Launch {
        let connections = case.connections + CONNECTIONS_SPARE;
        let mut arguments = vec!["-c".to_owned(), connections.to_string()];
        if kind == Kind::Glimmer {
            arguments.extend(scenario.glimmer_arguments(case));
            arguments.extend(self.glimmer_arguments.iter().cloned());
        }
        Launch {
            kind,
            threads: self.threads,
            cores: (0..machine::cores()).collect(),
            memory_mib: case.memory_mib,
            value_bytes: 8,
            udp: scenario.wants_udp(),
            connections_max: CONNECTIONS_MAX,
            arguments,
        }
    }
}

/// Runs one case of a scenario against one server.
fn one(
    options: &Options,
    scenario: &dyn Scenario,
    mut case: Case,
    subject: &Subject,
    progress: &dyn Fn(&str),
) -> Result<Row> {
    let name = format!("{} {case} on {}", scenario.name(), subject.name());
    progress(&name);
    case.connections = subject.connections_fitting(case.connections, CONNECTIONS_SPARE)?;
    let within = || format!("abuse {name}");
    scenario.prepare(subject, &case).with_context(within)?;
    let open = |place| scenario.visitor(subject, place);
    let mut visitors = Visitors::open(scenario.visitors(), &open).with_context(within)?;

    let sampler = Sampler::new(subject);
    let quiet = visitors.visit_for(options.quiet);
    let mut beside = |case: &Case| {
        let (latency, notes, peak) =
            beside(options, scenario, case, subject, &mut visitors, &sampler);
        std::thread::sleep(SETTLE);
        notes
            .map(|notes| (latency, notes, peak))
            .with_context(within)
    };
    let control = scenario.control(&case).map(|control| beside(&control));
    let control = control.transpose()?.map(|(latency, ..)| latency);

    let resident_before = subject.resident_bytes();
    let cpu_before = subject.cpu();
    let (attacked, notes, resident_peak) = beside(&case)?;
    let cpu = subject
        .cpu()
        .zip(cpu_before)
        .map(|(after, before)| after - before);
    let measured = Measured {
        connections: case.connections,
        limit_bytes: subject.limit_bytes(),
        quiet,
        control,
        attacked,
        resident_before,
        resident_peak,
        resident_after: subject.resident_bytes(),
        cpu,
        notes,
    };
    let checks = scenario.judge(&case, &measured);
    Ok(Row::new(
        scenario.name(),
        &case,
        subject.name(),
        measured,
        checks,
    ))
}

/// Has well-behaved clients visit beside the hostile ones. Returns their latencies, a summary of
/// the hostile clients' experience, and the server's maximum resident bytes meanwhile.
fn beside(
    options: &Options,
    scenario: &dyn Scenario,
    case: &Case,
    subject: &Subject,
    visitors: &mut Visitors,
    sampler: &Sampler<'_>,
) -> (Latency, Result<String>, Option<u64>) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attack = scope.spawn(|| scenario.attack(subject, case, &stop));
        let sampling = scope.spawn(|| sampler.peak_until(&stop));
        let begin = Instant::now();
        let latency = visitors.visit_while(|| {
            // If the attack has failed, stop waiting.
            begin.elapsed() < options.attack && !attack.is_finished()
        });
        stop.store(true, Relaxed);
        let notes = attack
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let resident_peak = sampling
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (latency, notes, resident_peak)
    })
}
