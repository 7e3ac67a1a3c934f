//! Hardware Acceleration of Key-Value Stores, Figure 16: latency of reads of a normal distribution.

use anyhow::Result;
use glimmer_comparisons::accelerator::Keys;

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, here},
};

/// The figure.
pub struct Normal;

impl Figure for Normal {
    fn spec(&self) -> Spec {
        accelerated::spec(
            "accel-fig16",
            "Latency of GET, normally distributed keys",
            "Figure 16, §VII-B",
            "The results are similarly poor as for uniform keys: the distribution is not \
             skewed enough.",
            here!(
                "; the paper gives no parameters, and here the standard deviation is an \
                 eighth of the keys, so that the 1,024 hottest get 0.3% of the requests"
            ),
        )
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, Keys::Normal)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        accelerated::judge_price(data, shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(data: &Data) -> usize {
        Normal.judged(data).failures().count()
    }

    #[test]
    fn the_papers_shape_holds_and_another_does_not() {
        assert_eq!(failures(&accelerated::drawn(0.3, 0.5)), 0);
        // Many requests gain.
        assert_eq!(failures(&accelerated::drawn(30.0, 0.5)), 2);
        // Requests are faster although hardly any was answered.
        assert_eq!(failures(&accelerated::drawn(0.3, -10.0)), 2);
    }
}
