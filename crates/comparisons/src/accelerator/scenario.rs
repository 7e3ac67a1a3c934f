//! What is measured: scenarios, popularity laws, and the plans that they make.

use std::time::Duration;

use glimmer_loadgen::{
    load::{Pace, Plan, Requests, WarmUp},
    workload::{Law, Mix, Workload},
};
use serde::Serialize;

use super::subject::Way;
use crate::client;

/// Length of the warm-up before every measurement.
const WARM_UP: Duration = Duration::from_millis(250);
/// Length of a value.
const VALUE_BYTES: usize = 64;
/// Sockets of a client that has one request in flight on each.
const MANY: usize = 64;
/// Sockets of a client with many requests in flight on each.
const FEW: usize = 4;
/// Requests in flight on each of the few.
const IN_FLIGHT: u32 = 32;
/// Connections of writers, with [`IN_FLIGHT`] requests in flight on each.
const WRITERS: usize = 16;
/// ETC as Minos models it, with large values that still travel in a few datagrams.
const ETC: &str = "etc:0.00125:8000";

/// A way to load the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// 64 sockets, one read in flight on each.
    Sockets64,
    /// 4 sockets, 32 reads in flight on each, in plain datagrams.
    Plain,
    /// The same in segment batches.
    Batches,
    /// One socket, one read in flight.
    Alone,
    /// 64 sockets, one read in flight on each, keys so many and so alike that no slot helps.
    Misses,
    /// One socket, one read in flight, the same keys.
    MissesAlone,
    /// Stores of keys that no reader asks for, over TCP, while hot keys have slots.
    Sets,
    /// YCSB A: half reads, half updates of the same hot keys, 64 sockets.
    YcsbA,
    /// The share of reads that find their key when a quarter of the items fit.
    HitRatio,
}

impl Scenario {
    /// All of them, in the order of execution.
    pub const ALL: [Scenario; 9] = [
        Scenario::Sockets64,
        Scenario::Plain,
        Scenario::Batches,
        Scenario::Alone,
        Scenario::Misses,
        Scenario::MissesAlone,
        Scenario::Sets,
        Scenario::YcsbA,
        Scenario::HitRatio,
    ];

    /// Its name on the command line and in progress lines.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Sockets64 => "sockets64",
            Scenario::Plain => "plain",
            Scenario::Batches => "batches",
            Scenario::Alone => "alone",
            Scenario::Misses => "misses",
            Scenario::MissesAlone => "misses-alone",
            Scenario::Sets => "sets",
            Scenario::YcsbA => "ycsb-a",
            Scenario::HitRatio => "hit-ratio",
        }
    }

    /// What it does, as a table's head says it.
    pub fn title(self) -> &'static str {
        match self {
            Scenario::Sockets64 => "64 sockets, one read in flight on each",
            Scenario::Plain => "4 sockets, 32 reads in flight on each, plain datagrams",
            Scenario::Batches => "4 sockets, 32 reads in flight on each, segment batches",
            Scenario::Alone => "one socket, one read in flight",
            Scenario::Misses => "64 sockets, one read in flight on each, all misses",
            Scenario::MissesAlone => "one socket, one read in flight, all misses",
            Scenario::Sets => "stores of cold keys over TCP, 16 connections, 32 in flight on each",
            Scenario::YcsbA => "YCSB A, 64 sockets, one request in flight on each",
            Scenario::HitRatio => "reads that store what they miss, a quarter of the items fits",
        }
    }

    /// Whether the user chooses which keys are asked for.
    pub fn takes_keys(self) -> bool {
        use Scenario::{Alone, Batches, Plain, Sockets64};
        matches!(self, Sockets64 | Plain | Batches | Alone)
    }
}

/// Which keys are asked for: the distributions of the paper (§VII-A), and Zipf's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// A single key.
    One,
    /// All keys alike.
    Uniform,
    /// A normal distribution with a standard deviation of an eighth of the keys.
    Normal,
    /// A Pareto distribution so flat that the 1,024 hottest keys get 15% of the requests.
    Pareto,
    /// Facebook's ETC, as Minos models it, read only.
    Etc,
    /// Zipf's law with an exponent of 0.99.
    Zipf,
}

impl Keys {
    /// All of them.
    pub const ALL: [Keys; 6] = [
        Keys::One,
        Keys::Uniform,
        Keys::Normal,
        Keys::Pareto,
        Keys::Etc,
        Keys::Zipf,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Keys::One => "one",
            Keys::Uniform => "uniform",
            Keys::Normal => "normal",
            Keys::Pareto => "pareto",
            Keys::Etc => "etc",
            Keys::Zipf => "zipf",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Keys::One => "a single key",
            Keys::Uniform => "all keys alike",
            Keys::Normal => "a normal distribution, deviation an eighth of the keys",
            Keys::Pareto => "a flat Pareto distribution: the 1,024 hottest keys get 15%",
            Keys::Etc => "Facebook's ETC as Minos models it, read only, values up to 8,000 bytes",
            Keys::Zipf => "Zipf's law with an exponent of 0.99",
        }
    }

    /// Reads of that many items by this law.
    pub fn reads(self, keys: u64) -> Workload {
        let law = match self {
            Keys::One | Keys::Uniform => Law::Uniform,
            Keys::Normal => Law::Normal { deviation: 0.125 },
            Keys::Pareto => Law::Pareto {
                shape: 1.16,
                scale: 6800.0,
            },
            Keys::Etc => {
                let etc = Workload::preset(ETC, Some(keys)).expect("a preset with its numbers");
                return Workload {
                    mix: Mix::reads(1.0),
                    ..etc
                };
            }
            Keys::Zipf => Law::Zipf { exponent: 0.99 },
        };
        Workload {
            law,
            mix: Mix::reads(1.0),
            ..client::items(if self == Keys::One { 1 } else { keys }, VALUE_BYTES)
        }
    }
}

/// A scenario with its requests.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// Which keys it asks for, if that is a choice.
    pub keys: Option<Keys>,
    /// Its requests.
    pub requests: Workload,
    /// Requests that tell an accelerator which keys are hot, if they are others.
    pub before: Option<Workload>,
    /// How requests travel.
    pub way: Way,
    connections: usize,
    in_flight: u32,
}

impl Case {
    /// A scenario over this number of keys. `law` counts where the scenario leaves it open.
    pub fn new(scenario: Scenario, law: Keys, keys: u64) -> Case {
        let zipf = Keys::Zipf.reads(keys);
        let (requests, way, connections, in_flight) = match scenario {
            Scenario::Sockets64 => (law.reads(keys), Way::Datagrams, MANY, 1),
            Scenario::Plain => (law.reads(keys), Way::Datagrams, FEW, IN_FLIGHT),
            Scenario::Batches => (law.reads(keys), Way::Batches, FEW, IN_FLIGHT),
            Scenario::Alone => (law.reads(keys), Way::Datagrams, 1, 1),
            Scenario::Misses => (Keys::Uniform.reads(keys), Way::Datagrams, MANY, 1),
            Scenario::MissesAlone => (Keys::Uniform.reads(keys), Way::Datagrams, 1, 1),
            Scenario::Sets => {
                // Keys of another length are other keys.
                let cold = Workload {
                    key_bytes: client::KEY_BYTES + 1,
                    mix: Mix::reads(0.0),
                    ..Keys::Uniform.reads(keys)
                };
                (cold, Way::Tcp, WRITERS, IN_FLIGHT)
            }
            Scenario::YcsbA => {
                let ycsb = Workload::preset("ycsb-a", Some(keys.div_ceil(4)));
                (ycsb.expect("a preset"), Way::Datagrams, MANY, 1)
            }
            Scenario::HitRatio => {
                let mix = Mix {
                    set_on_miss: true,
                    ..Mix::reads(1.0)
                };
                let requests = Workload {
                    mix,
                    ..zipf.clone()
                };
                (requests, Way::Datagrams, FEW, IN_FLIGHT)
            }
        };
        Case {
            scenario,
            keys: scenario.takes_keys().then_some(law),
            requests,
            before: (scenario == Scenario::Sets).then_some(zipf),
            way,
            connections,
            in_flight,
        }
    }

    /// The items that have to be there.
    pub fn items(&self) -> Workload {
        let items = self.before.as_ref().unwrap_or(&self.requests);
        Workload {
            law: Law::Uniform,
            mix: Mix::reads(0.0),
            ..items.clone()
        }
    }

    /// Its name in progress lines and tables.
    pub fn name(&self) -> String {
        match self.keys {
            Some(keys) => format!("{} {}", self.scenario.name(), keys.name()),
            None => self.scenario.name().to_owned(),
        }
    }

    /// One measurement.
    pub fn plan(&self, measured: Duration, seed: u64) -> Plan {
        let pace = Pace::Closed {
            in_flight: self.in_flight,
        };
        Plan {
            connections: self.connections,
            warm_up: WarmUp::Fixed(WARM_UP),
            measured: Some(measured),
            seed,
            ..Plan::new(Requests::Drawn(self.requests.clone()), pace)
        }
    }
}

/// The items that all these cases need, each set once.
pub fn items(cases: &[Case]) -> Vec<Workload> {
    let mut all: Vec<Workload> = Vec::new();
    let alike = |a: &Workload, b: &Workload| (a.key_bytes, &a.sizes) == (b.key_bytes, &b.sizes);
    for items in cases.iter().map(Case::items) {
        match all.iter_mut().find(|known| alike(known, &items)) {
            Some(known) => known.keys = known.keys.max(items.keys),
            None => all.push(items),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_stored_once_and_cover_every_case() {
        let all = Scenario::ALL.into_iter().flat_map(|scenario| {
            let laws = Keys::ALL
                .into_iter()
                .filter(move |law| scenario.takes_keys() || *law == Keys::Zipf);
            laws.map(move |law| Case::new(scenario, law, 1000))
        });
        let all: Vec<Case> = all.collect();
        let items = items(&all);
        let lengths: Vec<_> = items.iter().map(|items| items.key_bytes).collect();
        // Most items, ETC's, and YCSB's records.
        assert_eq!(lengths, [16, 8, 23]);
        let counts: Vec<_> = items.iter().map(|items| items.keys).collect();
        assert_eq!(counts, [1000, 1000, 250]);
        for case in &all {
            let plan = case.plan(Duration::from_secs(1), 1);
            assert_eq!(plan.check(), Ok(()), "{}", case.name());
        }
    }

    /// Writers of cold keys do not touch a key that readers ask for.
    #[test]
    fn stores_are_of_other_keys_than_the_hot_ones() {
        let case = Case::new(Scenario::Sets, Keys::Zipf, 1000);
        let hot = case.before.as_ref().unwrap();
        assert_ne!(hot.key_bytes, case.requests.key_bytes);
        assert_eq!(case.requests.mix.set, 1.0);
    }
}
