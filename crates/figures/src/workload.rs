//! The papers' workloads that several figures share.

use std::fmt;

use glimmer_loadgen::{
    load::{Pace, Plan, Requests, WarmUp},
    workload::{self, Law, Popularity, Shard},
};

pub use crate::systems::PIPELINE;
use crate::{Run, systems::Items};

/// Exponent of Zipf's law in MICA (§5.1) and in YCSB.
const EXPONENT: f64 = 0.99;
/// Connections of a client.
const CONNECTIONS: usize = 50;

/// Key popularity and share of reads (MICA §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Whether the keys follow Zipf's law; otherwise they are uniform.
    pub skewed: bool,
    /// Reads in percent; the rest are writes.
    pub gets_percent: u32,
}

impl Mix {
    /// MICA's four.
    pub const ALL: [Mix; 4] = [
        Mix::new(false, 50),
        Mix::new(false, 95),
        Mix::new(true, 50),
        Mix::new(true, 95),
    ];

    /// A mix.
    pub const fn new(skewed: bool, gets_percent: u32) -> Mix {
        Mix {
            skewed,
            gets_percent,
        }
    }

    fn law(self) -> Law {
        match self.skewed {
            false => Law::Uniform,
            true => Law::Zipf { exponent: EXPONENT },
        }
    }

    /// The popularity law over this many keys.
    pub fn popularity(self, keys: u32) -> Popularity {
        Popularity::new(self.law(), keys.into())
    }

    /// The share of reads.
    pub fn get_share(self) -> f64 {
        f64::from(self.gets_percent) / 100.0
    }

    /// A measurement of `measured_ms` milliseconds by default: requests of this mix for these
    /// items, with this many keys per read.
    pub fn plan(
        self,
        run: &Run<'_>,
        items: Items,
        keys_per_get: u32,
        pace: Pace,
        measured_ms: u64,
    ) -> Plan {
        self.plan_of(self.law(), run, items, keys_per_get, pace, measured_ms)
    }

    /// The same with keys that another law draws.
    pub fn plan_of(
        self,
        law: Law,
        run: &Run<'_>,
        items: Items,
        keys_per_get: u32,
        pace: Pace,
        measured_ms: u64,
    ) -> Plan {
        let mix = workload::Mix::reads(self.get_share()).keys_per_get(keys_per_get);
        Plan {
            connections: CONNECTIONS,
            warm_up: WarmUp::Fixed(run.warm_up()),
            measured: Some(run.measured(measured_ms)),
            ..Plan::new(Requests::Drawn(items.workload(law, mix)), pace)
        }
    }

    /// A closed loop with [`PIPELINE`] requests in flight on every connection.
    pub fn saturating(self, run: &Run<'_>, items: Items, measured_ms: u64, seed: u64) -> Plan {
        let pace = Pace::Closed {
            in_flight: PIPELINE,
        };
        Plan {
            seed,
            ..self.plan(run, items, 1, pace, measured_ms)
        }
    }
}

/// One of several servers among which clients divide the keys: the one that is asked most.
#[derive(Clone, Copy, Debug)]
pub struct Hottest {
    /// The law of its keys.
    pub law: Law,
    /// Its share of all requests.
    pub share: f64,
}

impl Hottest {
    /// Of this many servers with as many keys each, under Zipf's law.
    pub fn of(shards: u32, keys: u64) -> Hottest {
        let server = |shard| Hottest {
            law: Law::Shard {
                exponent: EXPONENT,
                shard,
                shards,
            },
            share: Shard::new(keys, EXPONENT, shard, shards).share(),
        };
        let servers = (0..shards).map(server);
        let hottest = servers.max_by(|a, b| a.share.total_cmp(&b.share));
        hottest.expect("there is a server")
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = if self.skewed { "skewed" } else { "uniform" };
        write!(out, "{law}, {}% GET", self.gets_percent)
    }
}
