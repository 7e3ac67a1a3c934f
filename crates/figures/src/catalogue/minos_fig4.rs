//! Minos, Figure 4: latency of large requests.

use anyhow::Result;
use glimmer_queueing::Outcome;

use crate::{
    Data, Figure, Kind, Needs, Run, Shape, Spec,
    simulated::{
        self, Curve, System, auto_over_paper, default_workload, latency_by_load, most, panel,
        ratios,
    },
};

const SYSTEMS: [System; 4] = [
    System::Keyhash,
    System::Stealing,
    System::Paper,
    System::Auto,
];
/// Above the highest of these loads, over keyhash sharding's peak, the servers are saturated.
const LOADS: std::ops::RangeInclusive<f64> = 0.0..=0.9;

/// The figure.
pub struct LargeRequests;

impl Figure for LargeRequests {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig4",
            title: "Latency of large requests by load",
            source: "Minos (NSDI'19), Figure 4, §6.1",
            claim: "Minos gives large requests fewer cores. Before saturation their p99 is up to \
                    twice that of stealing.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. The latency is that of \
                   large requests alone. Keyhash sharding is not in the paper's figure.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: simulated::COLUMNS,
            plot: latency_by_load("p99 of large requests"),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let cases = simulated::cases(run, &SYSTEMS, &default_workload());
        let curve = Curve {
            searched: run.pick(600_000, 20_000),
            // One in 800 is large.
            requests: run.pick(4_000_000, 40_000),
            latency_ns: Outcome::large_p99_ns,
        };
        curve.measure(run, &cases);
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for cores in simulated::CORES {
            let panel = panel(cores);
            for system in [System::Paper, System::Auto] {
                // The ledger has the paper's formula on the paper's cores.
                if (system, cores) == (System::Paper, simulated::CORES[0]) {
                    continue;
                }
                let over = most(ratios(data, &panel, system, System::Stealing, &LOADS));
                let name = system.name();
                shape.beside(
                    &format!(
                        "{panel}: p99 of large requests below saturation, {name} over stealing"
                    ),
                    "",
                    over.map(|over| format!("{over:.2}")),
                );
            }
        }
        auto_over_paper(data, shape, "p99 of large requests below saturation", LOADS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, simulated::OF_PEAK};

    fn failures(auto: f64) -> usize {
        let mut data = Data::default();
        for system in SYSTEMS {
            let us = match system {
                System::Auto => 300.0 * auto,
                _ => 300.0,
            };
            for load in [0.1, 0.5, 0.9, 0.95] {
                let us = if load > 0.9 { 10.0 * us } else { us };
                data.add(Point::new(panel(8), system.name(), load, us).also(OF_PEAK, load));
            }
        }
        LargeRequests.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_formula() {
        assert_eq!(failures(1.0), 0);
        assert_eq!(failures(1.1), 1);
    }
}
