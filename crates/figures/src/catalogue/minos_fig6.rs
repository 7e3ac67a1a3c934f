//! Minos, Figure 6: throughput within a bound, by the share of large requests.

use anyhow::Result;
use glimmer_queueing::Trimodal;

use crate::{
    Columns, Data, Figure, Kind, Needs, Run, Shape, Spec,
    plot::Plot,
    simulated::{BOUNDS_US, CORES, GETS, Gains, LARGE_BYTES, Workloads, judge_gains, over_best},
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
            needs: Needs {
                cores: 1,
                cores_of_paper: 1,
                memory_mib: 256,
                peers: &[],
            },
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
        for (bound_us, (paper, bound)) in BOUNDS_US.into_iter().zip([("7.4", 5.0), ("3.9", 2.5)]) {
            let gains = over_best(data, CORES[0], bound_us);
            let last = gains
                .last()
                .filter(|_| gains.len() == WORKLOADS.values.len());
            shape.at_least(
                &format!("8 cores, p99 ≤ {bound_us} µs: gain over the best other at 0.75%"),
                paper,
                last.copied(),
                bound,
            );
        }
        judge_gains(
            data,
            shape,
            &WORKLOADS,
            "% of large requests",
            ["6.2, 1.7", "6.9, 2.3"],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    fn failures(first: f64, step: f64) -> usize {
        let mut data = Data::default();
        for bound_us in BOUNDS_US {
            for (place, &value) in WORKLOADS.values.iter().enumerate() {
                let gain = first + step * place as f64;
                let panel = format!("8 cores, p99 ≤ {bound_us} µs");
                let point = Point::new(panel, "over stealing", value, gain);
                data.add(point.also("over the best other", gain));
            }
        }
        let mut shape = Shape::default();
        ByShare.judge(&data, &mut shape);
        shape.failures().count()
    }

    #[test]
    fn judged_by_the_papers_gains_and_that_they_rise() {
        assert_eq!(failures(1.5, 1.0), 0);
        assert_eq!(failures(1.5, 0.5), 1);
        // They fall, at both bounds.
        assert_eq!(failures(20.0, -1.0), 2);
    }
}
