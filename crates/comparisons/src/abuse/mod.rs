//! Exposes a server to hostile clients and measures what its well-behaved clients notice.
//!
//! Each scenario is one file with an implementation of [`Scenario`]. A run starts the server (or
//! uses a running one), lets well-behaved clients visit it alone, then adds hostile clients. It
//! samples the server's resident memory all the time and ends with a verdict.

mod administration;
mod control_datagrams;
mod control_replies;
mod crowd;
mod greedy;
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
mod uploads;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::servers::{CONNECTIONS_MAX, Contender, Kind, Launch};
use glimmer_loadgen::driver::Address;
use glimmer_measure::{machine, noise};

pub use crowd::{Crowd, raise_descriptor_limit};
pub use manners::{Latency, PATIENCE, TextVisitor, Visitor};
pub use report::Report;
pub use scenario::{Bounds, Case, Check, Measured, Scenario};
pub use subject::{Subject, TextClient};

use manners::{Visitors, Visits};
use report::Row;
use resident::Sampler;

/// Every scenario, in the order of execution.
pub const SCENARIOS: &[&dyn Scenario] = &[
    &administration::Administration,
    &control_replies::ControlReplies,
    &control_datagrams::ControlDatagrams,
    &slow_senders::SlowSenders,
    &uploads::Uploads,
    &slow_readers::SlowReaders,
    &non_readers::NonReaders,
    &slow_mixture::SlowMixture,
    &read_everything::ReadEverything,
    &greedy::Greedy,
    &native_writers::ONE_ADDRESS,
    &native_writers::MANY_ADDRESSES,
    &native_large_reads::NativeLargeReads,
];

/// Connections of a server in addition to the hostile ones.
const CONNECTIONS_SPARE: usize = 64;
/// Time between the departure of the hostile clients and the last reading of resident memory.
const SETTLE: Duration = Duration::from_secs(1);

/// Hostile clients and those of the control take turns this often. What else the machine does then
/// meets both alike.
const ROUNDS: u32 = 5;
/// Time between the departure of some and the arrival of the others.
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// What to run, and against which servers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of scenarios in [`SCENARIOS`].
    pub scenarios: Vec<&'static str>,
    /// Whether to run every combination of a scenario's sizes, instead of only the representative
    /// one.
    pub every_case: bool,
    /// Only cases whose description contains one of these texts, if there is one.
    pub only: Vec<String>,
    /// Servers to start, one after the other.
    pub servers: Vec<Contender>,
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
    /// How often each case is run, with the servers in turn.
    pub repeat: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

/// Runs the scenarios. `progress` receives a line for each step.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let servers = match options.running {
        Some(_) => Vec::new(),
        None => Contender::all_described(&options.servers)?,
    };
    let monitor = noise::Monitor::begin()?;
    let mut rows = Vec::new();
    for scenario in SCENARIOS {
        if !options.scenarios.contains(&scenario.name()) {
            continue;
        }
        for case in scenario.cases(options.every_case) {
            let case = options.adjust(case);
            if !options.wants(&case) {
                continue;
            }
            for _ in 0..options.repeat {
                rows.extend(once(options, *scenario, &case, progress)?);
            }
        }
    }
    ensure!(
        !rows.is_empty(),
        "nothing was run: no server suits these scenarios, or --only names no case of them"
    );
    Ok(Report {
        servers,
        threads: options.threads,
        attack_s: options.attack.as_secs_f64(),
        repeat: options.repeat,
        noise: monitor.end(&[])?,
        rows,
    })
}

/// Runs one case of a scenario against every server.
fn once(
    options: &Options,
    scenario: &dyn Scenario,
    case: &Case,
    progress: &dyn Fn(&str),
) -> Result<Vec<Row>> {
    if let Some(address) = &options.running {
        let subject = Subject::running(address)?;
        return Ok(vec![one(
            options,
            scenario,
            case.clone(),
            &subject,
            progress,
        )?]);
    }
    let suits = |server: &&Contender| scenario.suits(server.kind());
    let contenders = options.servers.iter().filter(suits);
    let rows = contenders.map(|contender| {
        let server = options.launch(scenario, case, contender).start()?;
        let subject = Subject::started(&server)?;
        one(options, scenario, case.clone(), &subject, progress)
    });
    rows.collect()
}

impl Options {
    /// The case with the overrides of the command line.
    fn adjust(&self, mut case: Case) -> Case {
        case.memory_mib = self.memory_mib.unwrap_or(case.memory_mib);
        case.connections = self.connections.unwrap_or(case.connections);
        case
    }

    fn wants(&self, case: &Case) -> bool {
        let name = case.to_string();
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text))
    }

    fn launch(&self, scenario: &dyn Scenario, case: &Case, contender: &Contender) -> Launch {
        let connections = case.connections + CONNECTIONS_SPARE;
        let mut arguments = vec!["-c".to_owned(), connections.to_string()];
        if contender.kind() == Kind::Glimmer {
            arguments.extend(scenario.glimmer_arguments(case));
            arguments.extend(self.glimmer_arguments.iter().cloned());
        }
        Launch {
            contender: contender.clone(),
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
    let quiet = visitors.visit_for(options.quiet).latency();
    let control = scenario.control(&case);
    let rounds = control.as_ref().map_or(1, |_| ROUNDS);
    let mut control_visits = control.as_ref().map(|_| Visits::default());
    let resident_before = subject.resident_bytes();
    let (mut attacked, mut resident_peak, mut notes) = (Visits::default(), None, String::new());
    let mut cpu = subject.cpu().map(|_| Duration::ZERO);
    for _ in 0..rounds {
        let mut beside = |case: &Case| {
            let time = options.attack / rounds;
            beside(time, scenario, case, subject, &mut visitors, &sampler).with_context(within)
        };
        if let (Some(case), Some(visits)) = (&control, &mut control_visits) {
            visits.add(&beside(case)?.visits);
            std::thread::sleep(ROUND_PAUSE);
        }
        let cpu_before = subject.cpu();
        let seen = beside(&case)?;
        let spent = subject.cpu().zip(cpu_before);
        cpu = cpu
            .zip(spent)
            .map(|(sum, (after, before))| sum + (after - before));
        attacked.add(&seen.visits);
        resident_peak = resident_peak.max(seen.resident_peak);
        notes = seen.notes;
        std::thread::sleep(ROUND_PAUSE);
    }
    std::thread::sleep(SETTLE - ROUND_PAUSE);
    let measured = Measured {
        connections: case.connections,
        limit_bytes: subject.limit_bytes(),
        quiet,
        control: control_visits.map(|visits| visits.latency()),
        attacked: attacked.latency(),
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

/// What was seen while hostile clients were there.
struct Seen {
    visits: Visits,
    /// A summary of the hostile clients' experience.
    notes: String,
    /// The server's maximum resident bytes.
    resident_peak: Option<u64>,
}

/// Has well-behaved clients visit beside the hostile ones, for this time.
fn beside(
    time: Duration,
    scenario: &dyn Scenario,
    case: &Case,
    subject: &Subject,
    visitors: &mut Visitors,
    sampler: &Sampler<'_>,
) -> Result<Seen> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attack = scope.spawn(|| scenario.attack(subject, case, &stop));
        let sampling = scope.spawn(|| sampler.peak_until(&stop));
        let begin = Instant::now();
        let visits = visitors.visit_while(|| {
            // If the attack has failed, stop waiting.
            begin.elapsed() < time && !attack.is_finished()
        });
        stop.store(true, Relaxed);
        let notes = attack
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let resident_peak = sampling
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Seen {
            visits,
            notes: notes?,
            resident_peak,
        })
    })
}
