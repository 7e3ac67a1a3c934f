//! The papers' workloads, as far as figures share them.

use std::fmt;

use glimmer_loadgen::{
    client::closed::{Burst, Plan},
    workload::Popularity,
};

use crate::{Run, systems::Items};

/// Skew of Zipf's law in MICA (§5.1) and in YCSB.
const EXPONENT: f64 = 0.99;
/// Connections of a client.
pub const CONNECTIONS: usize = 50;
/// Requests in flight on each where the server is to be the limit.
const PIPELINE: u32 = 32;

/// Key popularity and share of reads (MICA §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Zipf's law, or all keys alike.
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

    /// The law over so many keys.
    pub fn popularity(self, keys: u32) -> Popularity {
        match self.skewed {
            false => Popularity::uniform(keys.into()),
            true => Popularity::zipf(keys.into(), EXPONENT),
        }
    }

    /// Reads as a part of one.
    pub fn get_share(self) -> f64 {
        f64::from(self.gets_percent) / 100.0
    }

    /// A closed loop of so many requests at a time.
    pub fn closed(self, run: &Run<'_>, items: Items, measured_ms: u64, seed: u64) -> Plan {
        Plan {
            connections: CONNECTIONS,
            burst: Burst::Single {
                requests: PIPELINE,
                get_share: self.get_share(),
            },
            popularity: self.popularity(items.keys),
            warm_up: run.warm_up(),
            measured: run.measured(measured_ms),
            seed,
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = if self.skewed { "skewed" } else { "uniform" };
        write!(out, "{law}, {}% GET", self.gets_percent)
    }
}
