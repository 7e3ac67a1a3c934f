//! Minos, Figure 1: the service time of a GET by the size of its item.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::load::{Outcome, Pace, Plan};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Plot, Unit},
    profile,
    systems::{Items, Running, System},
    workload::Mix,
};

/// Sizes of values in bytes. The largest leaves room for key and header in an item of 1 MiB.
const SIZES: [u32; 9] = [
    8,
    64,
    512,
    1400,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    (1 << 20) - 512,
];
/// Bytes of all values of one size, so that large values do not fit into a core's private caches.
const VALUES_BYTES: u64 = 64 << 20;
const KEYS_MAX: u64 = 200_000;
/// Few enough that the replies in flight fit into the memory for buffers, whatever their size.
const CONNECTIONS: usize = 4;
const IN_FLIGHT: u32 = 8;
const GETS: Mix = Mix::new(false, 100);
const MEASURED_MS: u64 = 500;
const PANEL: &str = "";
/// Column with the time of functions that copy, over that of all others.
const COPYING: &str = "time in copies over the rest";
const CPU: &str = "glimmer";

/// The figure.
pub struct ServiceTime;

struct Case {
    server: Running,
    items: Items,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "values of {} bytes", self.items.value_bytes)
    }
}

impl Figure for ServiceTime {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig1",
            title: "Service time of a GET by the size of its value",
            source: "Minos (NSDI'19), Figure 1, §2.1",
            claim: "Service times are closely related to the size of the item. A large item takes \
                    up to almost four orders of magnitude longer than a small one, so a small \
                    request that waits for a large one waits for a long time.",
            here: "The CPU time that one worker takes for a GET over TCP on loopback, kernel \
                   included, at 4 connections with 8 requests in flight on each. All keys of a \
                   server have values of one size. The paper measures from the reception of a \
                   request to the transmission of its reply, over UDP without the kernel, where a \
                   small request costs less. A column has the time in functions that copy bytes \
                   over the time in all others, by 1,999 samples a second (`perf`).",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 2048),
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "bytes of the value",
                y: "server CPU time per GET, ns",
            },
            plot: Plot::lines("bytes of the value", "CPU time per GET")
                .unit(Unit::Nanoseconds)
                .log_x()
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let bytes = run.pick(VALUES_BYTES, 4 << 20);
        let mut cases = Vec::new();
        for value_bytes in SIZES {
            let items = Items {
                keys: (bytes / u64::from(value_bytes)).clamp(2, run.pick(KEYS_MAX, 2000)),
                key_bytes: 16,
                value_bytes,
            };
            let server = System::glimmer("crcw").start(run, items)?;
            cases.push(Case { server, items });
        }
        let has_perf = profile::is_here();
        if !has_perf {
            run.note("no column on copying: `perf` cannot sample here");
        }
        run.rounds(run.repeat(5), &mut cases, |case, run, seed| {
            let pace = Pace::Closed {
                in_flight: IN_FLIGHT,
            };
            let plan = Plan {
                seed,
                connections: CONNECTIONS,
                ..GETS.plan(run, case.items, 1, pace, MEASURED_MS)
            };
            let value_bytes = f64::from(case.items.value_bytes);
            let point = |outcome: &Outcome| {
                let nanoseconds = outcome.server_ns_per_operation();
                Point::new(PANEL, CPU, value_bytes, nanoseconds)
            };
            if !has_perf {
                return Ok(point(&case.server.measure(plan)?));
            }
            let time = run.warm_up() + run.measured(MEASURED_MS);
            let (outcome, copying) = case.server.measure_copying(plan, time)?;
            let point = point(&outcome);
            Ok(match copying {
                Some(copying) => point.also(COPYING, copying / (1.0 - copying).max(f64::EPSILON)),
                None => point,
            })
        })
    }
}
