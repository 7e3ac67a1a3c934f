//! MICA, §2: the latency of a GET that is alone, by the packets that its reply takes.

use anyhow::{Error, Result};
use glimmer_loadgen::{
    load::{Outcome, Pace, Plan, Requests, WarmUp},
    workload::{Empirical, Law, Mix, Sizes, Workload},
};

use super::mica_transports::{self, Carried, SERVER_NS};
use crate::{
    Columns, Figure, Kind, Needs, Point, Row, Run, Spec,
    plot::{Plot, Unit},
};

/// Keys of all lengths together: they take 70 MB.
const KEYS: u64 = 4000;
const KEY_BYTES: usize = 16;
/// Packets of a reply. The client takes a value in rounds of 32.
const PACKETS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes of a reply in each of its packets, and what is left of them for its header.
const DATA_BYTES: u32 = 1352;
const HEADER_BYTES: u32 = 64;
const PANEL: &str = "";
const P99: &str = "p99, µs";

/// The figure.
pub struct Packets;

/// The length of values whose replies take this many packets. Each has a class of its own among
/// those by which latencies are recorded, which begin at powers of two.
const fn value_bytes(packets: u32) -> u32 {
    packets * DATA_BYTES - HEADER_BYTES
}

/// Equally many keys for each number of packets.
fn workload(keys: u64) -> Result<Workload> {
    let weights = PACKETS.map(|packets| (value_bytes(packets), 1.0));
    Ok(Workload {
        keys,
        law: Law::Uniform,
        key_bytes: KEY_BYTES,
        sizes: Sizes::Empirical(Empirical::new("packets", &weights).map_err(Error::msg)?),
        mix: Mix::reads(1.0),
    })
}

impl Figure for Packets {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-packets",
            title: "Latency of a GET that is alone, by packets of its reply",
            source: "MICA (NSDI'14), §2; Hardware Acceleration of Key-Value Stores, Figure 1",
            claim: "An item too large for a packet can lie elsewhere, with a pointer to it in \
                    MICA: one more round trip takes less time than transferring a large item in \
                    several packets.",
            here: "A closed loop of GETs at one EREW worker, over each transport of \
                   `mica-transports`: one client with one socket or device and one request in \
                   flight, so that each request is alone. A packet has 1,400 bytes at most. \
                   Each request reads a value of a random length, and latencies are recorded by \
                   length. The client asks for a longer reply in rounds of 32 packets, so one \
                   of 64 packets takes two round trips. There is no network card and no cable: \
                   a packet costs time in software at both ends and none on a wire. Points are \
                   medians; bars span the 5th to the 95th percentile.",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 2048),
            columns: Columns {
                panel: "panel",
                series: "transport",
                x: "packets of the reply",
                y: "median latency, µs",
            },
            plot: Plot::lines("packets of the reply", "latency")
                .unit(Unit::Microseconds)
                .log_x()
                .log_y()
                .columns(1),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let workload = workload(run.pick(KEYS, 200))?;
        let mut all = mica_transports::start_with(run, &workload)?;
        run.rounds_of_many(run.repeat(7), &mut all, |carried, run, seed| {
            measure_one(carried, &workload, run, seed)
        })
    }
}

fn measure_one(
    carried: &Carried,
    workload: &Workload,
    run: &Run<'_>,
    seed: u64,
) -> Result<Vec<Point>> {
    let pace = Pace::Closed { in_flight: 1 };
    let plan = Plan {
        connections: 1,
        warm_up: WarmUp::Fixed(run.warm_up()),
        measured: Some(run.measured(1500)),
        seed,
        ..Plan::new(Requests::Drawn(workload.clone()), pace)
    };
    let outcome = carried.server.measure(plan)?;
    let of = |packets| point(carried.server.name(), packets, &outcome);
    Ok(PACKETS.into_iter().filter_map(of).collect())
}

/// `None` if there was no reply of this length, as in a quick run.
fn point(transport: &str, packets: u32, outcome: &Outcome) -> Option<Point> {
    let bytes = value_bytes(packets);
    let mut classes = outcome.sizes.classes();
    let (_, _, latency_ns) = classes.find(|(from, to, _)| (*from..=*to).contains(&bytes))?;
    let us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    let point = Point::new(PANEL, transport, f64::from(packets), us(0.5));
    let point = point.also(Row::LOW, us(0.05)).also(Row::HIGH, us(0.95));
    let point = point.also(P99, us(0.99));
    Some(point.also(SERVER_NS, outcome.server_ns_per_operation()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use glimmer_loadgen::load::BySize;

    use super::*;

    #[test]
    fn each_number_of_packets_has_a_class_of_its_own() {
        let mut sizes = BySize::default();
        for packets in PACKETS {
            sizes.record(value_bytes(packets), 1);
        }
        assert_eq!(sizes.classes().count(), PACKETS.len());
    }

    #[test]
    fn few_keys_have_all_lengths() {
        let workload = workload(200).unwrap();
        let lengths: BTreeSet<u32> = (0..200).map(|key| workload.sizes.of(key)).collect();
        assert!(PACKETS.map(value_bytes).iter().eq(&lengths));
    }
}
