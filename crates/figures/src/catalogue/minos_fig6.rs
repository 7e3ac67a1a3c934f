//! Minos, Figure 6: throughput within a bound, by the share of large requests.

use anyhow::Result;
use glimmer_queueing::Trimodal;

use crate::{
    Columns, Data, Figure, Kind, Needs, Run, Shape, Spec,
    plot::Plot,
    simulated::{GETS, Gains, LARGE_BYTES, Workloads, judge_gains},
};

const WORKLOADS: Workloads = Workloads {
    values: &[0.0625, 0.125, 0.25, 0.5, 0.75],
    of: |percent| Trimodal::new(percent, LARGE_BYTES, GETS),
};

/// The figure.
pub struct ByShare;

impl Figure for ByShare {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig6",
            title: "Gain within a latency bound by the share of large requests",
            source: "Minos (NSDI'19), Figure 6, §6.3",
            claim: "Within 50 or 100 µs Minos serves more than each other system, at every share \
                    of large requests. The gain grows with the share, up to 7.4 times stealing \
                    within 50 µs and 3.9 times within 100 µs.",
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
                x: "percentage of large requests",
                y: "throughput over the other system's",
            },
            plot: Plot::lines("% of large requests", "throughput over the other system's").log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let gains = Gains {
            workloads: WORKLOADS,
            requests: run.pick(400_000, 20_000),
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
        ByShare.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_formula() {
        assert_eq!(failures(1.0), 0);
        assert_eq!(failures(0.9), 1);
    }
}
