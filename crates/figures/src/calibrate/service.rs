//! CPU time of a request by the size of its value, measured at a running server.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::{Pace, Plan};

use crate::{
    Point, Run,
    calibration::Sample,
    systems::{Items, Running, System},
    workload::Mix,
};

/// Sizes of values in bytes, up to the largest of the paper's workload.
const SIZES: [u32; 8] = [8, 400, 1400, 4200, 14_000, 70_000, 250_000, 500_000];
/// Bytes of all values of one size: more than a core's private caches hold.
const VALUES_BYTES: u64 = 64 << 20;
const KEYS_MAX: u64 = 100_000;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: u32 = 16;
const VERBS: [(&str, u32); 2] = [("GET", 100), ("PUT", 0)];

struct Case {
    server: Running,
    items: Items,
    verb: &'static str,
    gets_percent: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {} bytes", self.verb, self.items.value_bytes)
    }
}

/// Measures GETs and PUTs over TCP on loopback, with one worker.
pub fn measure(run: &mut Run<'_>) -> Result<[Vec<Sample>; 2]> {
    let bytes = run.pick(VALUES_BYTES, 4 << 20);
    let mut cases = Vec::new();
    for value_bytes in SIZES {
        let items = Items {
            keys: (bytes / u64::from(value_bytes)).clamp(2, run.pick(KEYS_MAX, 2000)),
            key_bytes: 8,
            value_bytes,
        };
        for (verb, gets_percent) in VERBS {
            let server = System::glimmer("crcw").start(run, items)?;
            cases.push(Case {
                server,
                items,
                verb,
                gets_percent,
            });
        }
    }
    run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
        let pace = Pace::Closed {
            in_flight: IN_FLIGHT,
        };
        let plan = Plan {
            seed,
            connections: CONNECTIONS,
            ..Mix::new(false, case.gets_percent).plan(run, case.items, 1, pace, 250)
        };
        let outcome = case.server.measure(plan)?;
        let value_bytes = f64::from(case.items.value_bytes);
        let nanoseconds = outcome.server_ns_per_operation();
        Ok(Point::new("", case.verb, value_bytes, nanoseconds))
    })?;
    Ok(VERBS.map(|(verb, _)| {
        let rows = run.data().line("", verb).zip(SIZES);
        let sample = rows.map(|(row, bytes)| Sample {
            bytes,
            nanoseconds: row.samples.clone(),
        });
        sample.collect()
    }))
}
