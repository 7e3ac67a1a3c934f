//! Minos, §3.1 and §6.1: designs that the paper speaks of and does not build.

use anyhow::Result;
use glimmer_queueing::Outcome;

use crate::{
    Columns, Figure, Kind, Needs, Run, Spec,
    plot::{Plot, Unit},
    simulated::{self, Case, Curve, System, default_workload},
};

const SYSTEMS: [System; 5] = [
    System::Keyhash,
    System::Stealing,
    System::Paper,
    System::OneMore,
    System::SmallBySize,
];
/// A latency in nanoseconds.
type Percentile = fn(&Outcome) -> f64;
/// What the panels show.
const LATENCIES: [(&str, Percentile); 2] = [
    ("all requests", Outcome::p99_ns),
    ("large requests", Outcome::large_p99_ns),
];

/// The figure.
pub struct Designs;

impl Figure for Designs {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-designs",
            title: "Latency by load: designs beside size-aware sharding",
            source: "Minos (NSDI'19), §3.1 and §6.1",
            claim: "One more core for large requests, which takes small ones when it has none, \
                    would serve large requests better and small ones hardly worse. Sharding small \
                    requests by size as well performs poorly, as small cores spend their time on \
                    handing requests over.",
            here: "Simulated in virtual time, with costs that `glimmer bench calibrate` measured \
                   at a server of ours, 8 cores and the paper's link. With one more large core, \
                   large cores take small requests from all RX queues, one at a time. With small \
                   requests sharded, each small core has the sizes of an equal number of them, \
                   and hands over the others that it receives. Loads at which a server loses \
                   requests are left out.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "latency of",
                series: "dispatch",
                x: "throughput, Mops",
                y: "p99, µs",
            },
            plot: Plot::lines("throughput, Mops", "p99")
                .unit(Unit::Microseconds)
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let cases = simulated::cases(run, &SYSTEMS, &default_workload());
        let is_papers = |case: &Case| case.server.cores == simulated::CORES[0];
        let cases: Vec<Case> = cases.into_iter().filter(is_papers).collect();
        let curve = Curve {
            searched: run.pick(600_000, 20_000),
            // One in 800 is large.
            requests: run.pick(4_000_000, 40_000),
            latency_ns: Outcome::p99_ns,
        };
        let places = curve.places(run, &cases);
        for (panel, latency_ns) in LATENCIES {
            for place in &places {
                run.add(place.point(panel, latency_ns(&place.outcome)));
            }
        }
        Ok(())
    }
}
