//! Hardware Acceleration of Key-Value Stores, Figure 18: latency of reads of ETC.

use anyhow::Result;
use glimmer_comparisons::accelerator::Keys;

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, here},
};

/// The figure.
pub struct Etc;

impl Figure for Etc {
    fn spec(&self) -> Spec {
        accelerated::spec(
            "accel-fig18",
            "Latency of GET, Facebook's ETC",
            "Figure 18, §VII-B",
            "40% of all requests get a factor-of-ten improvement in latency.",
            here!(
                "; the paper gives no parameters, and here ETC is as Minos models it, read \
                 only, with values of up to 8,000 bytes"
            ),
        )
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, Keys::Etc)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        accelerated::judge_gain(data, shape, 40.0, 20.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(data: &Data) -> usize {
        Etc.judged(data).failures().count()
    }

    #[test]
    fn the_papers_shape_holds_and_another_does_not() {
        assert_eq!(failures(&accelerated::drawn(44.0, 1.0)), 0);
        // The share is too small with both bodies, and the percentile lies among misses.
        assert_eq!(failures(&accelerated::drawn(18.0, 1.0)), 3);
    }
}
