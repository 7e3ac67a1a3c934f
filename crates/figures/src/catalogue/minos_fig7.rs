//! Minos, Figure 7: throughput within a bound, by the size of the largest value.

use anyhow::Result;
use glimmer_queueing::Trimodal;

use crate::{
    Columns, Data, Figure, Kind, Needs, Run, Shape, Spec,
    plot::Plot,
    simulated::{GETS, Gains, LARGE_PERCENT, Workloads, judge_gains},
};

const WORKLOADS: Workloads = Workloads {
    values: &[250.0, 500.0, 1000.0],
    of: |kb| Trimodal::new(LARGE_PERCENT, (kb * 1e3) as u32, GETS),
};

/// The figure.
pub struct BySize;

impl Figure for BySize {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig7",
            title: "Gain within a latency bound by the size of large values",
            source: "Minos (NSDI'19), Figure 7, §6.3",
            claim: "Within 50 or 100 µs Minos serves more than each other system, whatever the \
                    size of large values. The gain grows with the size. At 250 KB it is 1.34 times \
                    within 100 µs.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. The highest load within \
                   the bound is searched for, and that of size-aware sharding with the paper's \
                   formula is divided by that of each other system. Hand-off has the best of 1, 2 \
                   or 3 dispatching cores of 8.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "server and bound",
                series: "other system",
                x: "largest value, KB",
                y: "throughput over the other system's",
            },
            plot: Plot::lines("largest value, KB", "throughput over the other system's").log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let gains = Gains {
            workloads: WORKLOADS,
            requests: run.pick(500_000, 20_000),
        };
        gains.measure(run);
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        judge_gains(data, shape, &WORKLOADS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, simulated::BOUNDS_US};

    fn failures(auto: f64) -> usize {
        let mut data = Data::default();
        for bound_us in BOUNDS_US {
            for &value in WORKLOADS.values {
                let panel = format!("8 cores, p99 ≤ {bound_us} µs");
                let point = Point::new(panel, "over stealing", value, 2.0);
                data.add(point.also("auto over the paper's formula", auto));
            }
        }
        BySize.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_formula() {
        assert_eq!(failures(1.0), 0);
        assert_eq!(failures(0.9), 1);
    }
}
