//! Hardware Acceleration of Key-Value Stores, Figure 14: latency of reads of one key.

use anyhow::Result;
use glimmer_comparisons::accelerator::{CONTROL, Keys, SOFTWARE};

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, MEMCACHED, MODEL, XDP, here},
};

/// The figure.
pub struct OneKey;

impl Figure for OneKey {
    fn spec(&self) -> Spec {
        accelerated::spec(
            "accel-fig14",
            "Latency of GET when only one key is asked for",
            "Figure 14, §VII-B",
            "There is approximately an order of magnitude improvement between a request \
             served by the accelerator and a request served by memcached software running on \
             the CPU.",
            here!(", of which one is asked for"),
        )
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, Keys::One)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for system in [XDP, MODEL] {
            shape.at_least(
                &format!("requests that {system} answers from its slots, %"),
                "",
                accelerated::share(data, system),
                99.0,
            );
        }
        shape.at_least(
            &format!("median of {MEMCACHED} over that of {XDP}"),
            "",
            accelerated::gain(data, 50.0, MEMCACHED, XDP),
            1.6,
        );
        for (system, without) in [(XDP, CONTROL), (MODEL, SOFTWARE)] {
            shape.beside(
                &format!("median of {without} over that of {system}"),
                "",
                accelerated::gain(data, 50.0, without, system).map(|gain| gain.text(2)),
            );
        }
        accelerated::beside_circuit(shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(data: &Data) -> usize {
        OneKey.judged(data).failures().count()
    }

    #[test]
    fn the_papers_shape_holds_and_another_does_not() {
        assert_eq!(failures(&accelerated::drawn(100.0, 1.0)), 0);
        // A few requests are not answered, and hits are no faster.
        assert_eq!(failures(&accelerated::drawn(90.0, 1.0)), 2);
        let mut slow = Data::default();
        accelerated::draw(&mut slow, MEMCACHED, 0.0, [0.0, 6.0]);
        accelerated::draw(&mut slow, XDP, 100.0, [5.0, 5.0]);
        assert_eq!(failures(&slow), 1);
    }
}
