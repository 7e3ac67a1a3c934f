//! Minos, Figure 3, where servers handle large values in slices, as ours does.

use anyhow::Result;
use glimmer_queueing::Outcome;

use crate::{
    Columns, Data, Figure, Kind, Needs, Run, Shape, Spec,
    plot::{Plot, Unit},
    simulated::{self, Case, Curve, PEAK, System, WITHIN, default_workload, limit, most, ratios},
};

const WHOLE: &str = "values as a whole";
const SLICED: &str = "slices of 64 KiB";

/// The figure.
pub struct Slices;

impl Figure for Slices {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-slices",
            title: "Latency by load: large values as a whole and in slices",
            source: "Minos (NSDI'19), Figure 3 and §3.2",
            claim: "Slicing large requests may cost efficiency, so Minos runs each to its end.",
            here: "Simulated in virtual time as Figure 3, 8 cores. In one panel, a core that \
                   reads an RX queue handles a large value in slices of 64 KiB and looks for small \
                   requests after each, as the live server does under every policy. Looking costs \
                   what asking a socket costs; that slices use caches worse is not in the model. \
                   Large cores of size-aware sharding and workers of hand-off read no RX queue, \
                   and send values as a whole.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "large values",
                series: "dispatch",
                x: "throughput, Mops",
                y: "p99, µs",
            },
            plot: Plot::lines("throughput, Mops", "p99")
                .unit(Unit::Microseconds)
                .log_y()
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let whole = simulated::cases(run, &System::ALL, &default_workload()).into_iter();
        let whole = whole.filter(|case| case.server.cores == simulated::CORES[0]);
        let both = |case: Case| {
            let sliced = Case {
                panel: SLICED.to_owned(),
                server: case.server.slicing(),
                ..case.clone()
            };
            let panel = WHOLE.to_owned();
            [Case { panel, ..case }, sliced]
        };
        let mut cases: Vec<Case> = whole.flat_map(both).collect();
        cases.sort_by_key(|case| case.panel == SLICED);
        let curve = Curve {
            searched: run.pick(600_000, 20_000),
            requests: run.pick(1_500_000, 20_000),
            latency_ns: Outcome::p99_ns,
        };
        curve.measure(run, &cases);
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for panel in [WHOLE, SLICED] {
            let ratios = ratios(data, panel, System::Keyhash, System::Paper, &(0.0..=0.9));
            shape.beside(
                &format!("{panel}: p99 of keyhash over size-aware, most up to 90% of the peak"),
                "",
                most(ratios).map(|ratio| format!("{ratio:.0}")),
            );
        }
        for column in [PEAK, WITHIN[0], WITHIN[1]] {
            let of = |panel| limit(data, panel, System::Keyhash, column);
            shape.beside(
                &format!("keyhash: {column}, {SLICED} over {WHOLE}"),
                "",
                of(SLICED)
                    .zip(of(WHOLE))
                    .map(|(sliced, whole)| format!("{:.2}", sliced / whole)),
            );
        }
    }
}
