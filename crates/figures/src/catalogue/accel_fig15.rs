//! Hardware Acceleration of Key-Value Stores, Figure 15: latency of reads of a uniform
//! distribution.

use anyhow::Result;
use glimmer_comparisons::accelerator::Keys;

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, here},
};

/// The figure.
pub struct Uniform;

impl Figure for Uniform {
    fn spec(&self) -> Spec {
        accelerated::spec(
            "accel-fig15",
            "Latency of GET, uniform keys",
            "Figure 15, §VII-B",
            "The accelerated implementation performs worse than the software: all requests \
             pay for the check whether their key is in the accelerator, and hardly any gains.",
            here!(""),
        )
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, Keys::Uniform)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        accelerated::judge_price(data, shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(data: &Data) -> usize {
        Uniform.judged(data).failures().count()
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
