//! Hardware Acceleration of Key-Value Stores, Figure 17: latency of reads of a Pareto distribution.

use anyhow::Result;
use glimmer_comparisons::accelerator::Keys;

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, here},
};

/// The figure.
pub struct Pareto;

impl Figure for Pareto {
    fn spec(&self) -> Spec {
        accelerated::spec(
            "accel-fig17",
            "Latency of GET, Pareto distributed keys",
            "Figure 17, §VII-B",
            "About 11% of the requests are answered by the accelerator, ten times as fast. \
             Requests for other keys have a higher latency than in software.",
            here!(
                "; the paper gives no parameters, and here the shape is 1.16 and the scale \
                 6,800 keys, so that the 1,024 hottest get 15% of the requests"
            ),
        )
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, Keys::Pareto)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        accelerated::judge_gain(data, shape, 11.0, 5.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(data: &Data) -> usize {
        Pareto.judged(data).failures().count()
    }

    #[test]
    fn the_papers_shape_holds_and_another_does_not() {
        assert_eq!(failures(&accelerated::drawn(15.0, 1.0)), 0);
        // The share is too small with both bodies, and the percentile lies among misses.
        assert_eq!(failures(&accelerated::drawn(3.0, 1.0)), 3);
    }
}
