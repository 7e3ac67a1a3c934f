//! The hot-key accelerator: memcached, ours, and ours with each body, loaded in turn over
//! memcached's UDP protocol. Servers run in one network namespace and the client in another, joined
//! by a virtual cable for each server, or all on loopback.

mod bars;
mod changing;
mod report;
mod results;
mod scenario;
mod subject;

use std::time::Duration;

use anyhow::{Result, ensure};
use glimmer_measure::{machine, noise, progress::Progress};

use crate::{
    lab::{Lab, Namespaces, Receiver},
    servers::{Contender, Kind},
};

pub use changing::{Changed, Changing};
pub use results::{Report, Row, Sample};
pub use scenario::{Case, Keys, Scenario, items};
pub use subject::{Body, CONTROL, Measured, Running, SOFTWARE, Setup, Subject, Way};

/// How long an accelerator sees requests before they are measured.
const SETTLING: Duration = Duration::from_millis(1500);
/// Requests for each item that fits, before a hit ratio is measured.
const REQUESTS_PER_ITEM: u64 = 4;
/// Keys of [`Scenario::HitRatio`] for each key of the other scenarios: this many times as many as
/// fit.
const CROWDING: u64 = 4;
/// An estimate of what an item of most scenarios takes with its index.
const ITEM_BYTES: u64 = 112;
/// The least memory of a server that evicts.
const CROWDED_MIB_MIN: u64 = 64;
/// What a slot of an accelerator takes of the server's memory, rounded down.
const SLOT_BYTES: usize = 2200;

/// What to compare, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bodies of ours.
    pub bodies: Vec<Body>,
    /// Whether memcached takes part.
    pub memcached: bool,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// Which keys are asked for, where a scenario leaves that open.
    pub keys_by: Vec<Keys>,
    /// Whether all run on loopback, which needs no rights. Packet programs then take no part.
    pub loopback: bool,
    /// Who receives for a server with a packet program.
    pub receiver: Receiver,
    /// Keys stored before the measurement.
    pub keys: u64,
    /// Items for which an accelerator has room.
    pub slots: usize,
    /// Length of one measurement.
    pub measured: Duration,
    /// Repetitions of every measurement.
    pub repeat: usize,
    /// Cores with a client thread each.
    pub client_cores: Vec<usize>,
    /// Each server's `-m`.
    pub memory_mib: usize,
    /// More arguments for our server.
    pub glimmer_arguments: Vec<String>,
}

impl Options {
    /// The servers, those that are compared with first.
    fn subjects(&self) -> Vec<Subject> {
        let memcached = self.memcached.then(Subject::memcached);
        let bodies = self.bodies.iter();
        let ours = bodies.clone().map(|&body| Subject::ours(body));
        let has_cable = !self.loopback && bodies.clone().any(|body| body.is_at_interface());
        let control = has_cable.then(Subject::control);
        let mut subjects: Vec<Subject> = memcached.into_iter().chain(ours).collect();
        // After the server without an accelerator.
        let place = subjects
            .iter()
            .position(|subject| *subject == Subject::ours(Body::Off));
        let place = place.map_or(usize::from(self.memcached), |place| place + 1);
        subjects.splice(place..place, control);
        subjects
    }

    fn setup(&self) -> Setup {
        Setup {
            memory_mib: self.memory_mib,
            slots: self.slots,
            client_cores: self.client_cores.clone(),
            arguments: self.glimmer_arguments.clone(),
        }
    }

    /// A server of this memory has room for a part of the keys. The accelerator's slots come on
    /// top, so that every store has the same.
    fn crowded(&self, subject: &Subject) -> Setup {
        let mib = ((self.keys * ITEM_BYTES) >> 20).max(CROWDED_MIB_MIN) as usize;
        let slots_mib = match subject.body() {
            Body::Off => 0,
            _ => (self.slots * SLOT_BYTES) >> 20,
        };
        Setup {
            memory_mib: mib + slots_mib,
            ..self.setup()
        }
    }

    /// All measurements with full servers; those with crowded ones are apart.
    fn cases(&self) -> Vec<Case> {
        let full = self.scenarios.iter().copied();
        let full = full.filter(|scenario| *scenario != Scenario::HitRatio);
        let cases = full.flat_map(|scenario| {
            let laws = match scenario.takes_keys() {
                true => &self.keys_by[..],
                false => &[Keys::Zipf],
            };
            laws.iter()
                .map(move |&law| Case::new(scenario, law, self.keys))
        });
        cases.collect()
    }
}

/// A comparison in progress.
struct Bench<'a> {
    options: &'a Options,
    progress: &'a dyn Progress,
    versions: Vec<String>,
    notes: Vec<String>,
    rows: Vec<Row>,
}

/// Runs the comparison. `progress` receives each step.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Report> {
    ensure!(
        machine::cores() >= 2,
        "a server and its client want a core each; this machine offers one"
    );
    let monitor = noise::Monitor::begin()?;
    let mut bench = Bench {
        options,
        progress,
        versions: Vec::new(),
        notes: Vec::new(),
        rows: Vec::new(),
    };
    let mut lab = match options.loopback {
        true => Lab::Loopback,
        false => Lab::Namespaces(Namespaces::new(options.receiver)?),
    };
    let subjects = bench.installed();
    let cases = options.cases();
    if !cases.is_empty() {
        bench.full(&mut lab, &subjects, &cases)?;
    }
    if options.scenarios.contains(&Scenario::HitRatio) {
        bench.crowded(&mut lab, &subjects)?;
    }
    drop(lab);
    Ok(Report {
        versions: bench.versions,
        loopback: options.loopback,
        receiver: options.receiver,
        keys: options.keys,
        slots: options.slots,
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        cores: machine::cores(),
        client_threads: options.client_cores.len(),
        notes: bench.notes,
        noise: monitor.end(&[])?,
        rows: bench.rows,
    })
}

impl Bench<'_> {
    /// The servers that are installed and can run here. The others are noted.
    fn installed(&mut self) -> Vec<Subject> {
        let mut here = Vec::new();
        for subject in self.options.subjects() {
            if self.options.loopback && subject.body().is_at_interface() {
                let without = "a packet program needs an interface: leave --loopback out, as root";
                self.notes.push(format!("{subject} is left out: {without}"));
                continue;
            }
            match Contender::from(subject.kind()).version() {
                Ok(version) if self.versions.contains(&version) => here.push(subject),
                Ok(version) => {
                    self.versions.push(version);
                    here.push(subject);
                }
                Err(error) => self.notes.push(format!("{subject} is left out: {error:#}")),
            }
        }
        here
    }

    /// Starts these servers. One that does not start is noted.
    fn started(
        &mut self,
        lab: &mut Lab,
        subjects: &[Subject],
        setup: impl Fn(&Subject) -> Setup,
    ) -> Result<Vec<Running>> {
        let mut running = Vec::new();
        for subject in subjects {
            match subject.start(lab, &setup(subject)) {
                Ok(server) => running.push(server),
                Err(error) => self.notes.push(format!("{subject} is left out: {error:#}")),
            }
        }
        let notes = self.notes.join("; ");
        ensure!(!running.is_empty(), "no server to measure: {notes}");
        Ok(running)
    }

    /// Servers with room for everything.
    fn full(&mut self, lab: &mut Lab, subjects: &[Subject], cases: &[Case]) -> Result<()> {
        let setup = self.options.setup();
        let running = self.started(lab, subjects, |_| setup.clone())?;
        for items in items(cases) {
            for server in &running {
                self.progress
                    .say(&format!("{server}: storing {} items", items.keys));
                server.store(&items)?;
            }
        }
        self.progress
            .expect(cases.len() * self.options.repeat * running.len());
        for case in cases {
            for server in running.iter().filter(|it| it.subject().body() != Body::Off) {
                let requests = case.before.as_ref().unwrap_or(&case.requests);
                server.settle(requests, SETTLING.min(self.options.measured * 2))?;
            }
            self.repeat(case, &running)?;
        }
        Ok(())
    }

    /// Servers with room for a part of the items. memcached takes no part: the question is whether
    /// an accelerator misleads our eviction rule.
    fn crowded(&mut self, lab: &mut Lab, subjects: &[Subject]) -> Result<()> {
        let options = self.options;
        let ours =
            |subject: &&Subject| subject.kind() == Kind::Glimmer && **subject != Subject::control();
        let subjects: Vec<Subject> = subjects.iter().filter(ours).cloned().collect();
        let running = self.started(lab, &subjects, |subject| options.crowded(subject))?;
        let case = Case::new(Scenario::HitRatio, Keys::Zipf, options.keys * CROWDING);
        for server in &running {
            self.progress.say(&format!("{server}: filling its memory"));
            server.store(&case.items())?;
            let mut done = 0;
            while done < options.keys * REQUESTS_PER_ITEM {
                done += server.settle(&case.requests, SETTLING)?;
            }
        }
        self.progress.expect(options.repeat * running.len());
        self.repeat(&case, &running)
    }

    /// Measures all servers in turn, repeatedly.
    fn repeat(&mut self, case: &Case, running: &[Running]) -> Result<()> {
        for repetition in 0..self.options.repeat {
            for server in running {
                let plan = case.plan(self.options.measured, repetition as u64);
                let sample = Sample::of(&server.measure(case.way, &plan)?);
                let told = sample.told();
                self.progress.step(&format!(
                    "{}, {server}, repetition {} of {}: {told}",
                    case.name(),
                    repetition + 1,
                    self.options.repeat
                ));
                self.add(case, server.subject(), sample);
            }
        }
        Ok(())
    }

    fn add(&mut self, case: &Case, subject: &Subject, sample: Sample) {
        let (case_name, server) = (case.name(), subject.name());
        let is_here = |row: &&mut Row| (&row.case, &row.server) == (&case_name, &server);
        if let Some(row) = self.rows.iter_mut().find(is_here) {
            return row.samples.push(sample);
        }
        self.rows.push(Row {
            case: case_name,
            scenario: case.scenario,
            keys: case.keys,
            server,
            body: subject.body(),
            samples: vec![sample],
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            bodies: vec![Body::Off, Body::Model, Body::Xdp],
            memcached: true,
            scenarios: Scenario::ALL.into(),
            keys_by: vec![Keys::One, Keys::Zipf],
            loopback: false,
            receiver: Receiver::Sender,
            keys: 1000,
            slots: 1024,
            measured: Duration::from_secs(1),
            repeat: 1,
            client_cores: machine::client_cores(1),
            memory_mib: 64,
            glimmer_arguments: Vec::new(),
        }
    }

    #[test]
    fn a_packet_program_is_compared_with_ours_over_the_same_cable() {
        let names = |options: &Options| -> Vec<String> {
            options.subjects().iter().map(Subject::name).collect()
        };
        let all = [
            "memcached",
            SOFTWARE,
            CONTROL,
            "glimmer model",
            "glimmer xdp",
        ];
        assert_eq!(names(&options()), all);
        let model = Options {
            bodies: vec![Body::Off, Body::Model],
            memcached: false,
            ..options()
        };
        assert_eq!(names(&model), [SOFTWARE, "glimmer model"]);
        let alone = Options {
            bodies: vec![Body::Xdp],
            ..options()
        };
        assert_eq!(names(&alone), ["memcached", CONTROL, "glimmer xdp"]);
    }

    #[test]
    fn each_law_is_measured_where_it_is_a_choice() {
        let names: Vec<String> = options().cases().iter().map(Case::name).collect();
        let expected = [
            "sockets64 one",
            "sockets64 zipf",
            "plain one",
            "plain zipf",
            "batches one",
            "batches zipf",
            "alone one",
            "alone zipf",
            "misses",
            "misses-alone",
            "sets",
            "ycsb-a",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_store_of_an_accelerated_server_has_the_memory_of_the_others() {
        let options = options();
        let [off, model] = [Body::Off, Body::Model].map(Subject::ours);
        let [off, model] = [off, model].map(|subject| options.crowded(&subject).memory_mib);
        assert_eq!((off, model), (64, 66));
    }
}
