//! Hardware Acceleration of Key-Value Stores, Figures 15 to 18: latency of reads by distribution of
//! keys.

use anyhow::Result;
use glimmer_comparisons::accelerator::Keys;

use crate::{
    Data, Figure, Run, Shape, Spec,
    accelerated::{self, here},
};

/// A figure of one distribution.
pub struct Reads {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    claim: &'static str,
    here: &'static str,
    keys: Keys,
    judged_by: Rule,
}

/// What is held against the data.
enum Rule {
    /// [`accelerated::judge_price`].
    Price,
    /// [`accelerated::judge_gain`].
    Gain { percent: f64, percentile: f64 },
}

/// Figure 15.
pub static UNIFORM: Reads = Reads {
    name: "accel-fig15",
    title: "Latency of GET, uniform keys",
    source: "Figure 15, §VII-B",
    claim: "The accelerated implementation performs worse than the software: all requests pay for \
            the check whether their key is in the accelerator, and hardly any gains.",
    here: here!(""),
    keys: Keys::Uniform,
    judged_by: Rule::Price,
};

/// Figure 16.
pub static NORMAL: Reads = Reads {
    name: "accel-fig16",
    title: "Latency of GET, normally distributed keys",
    source: "Figure 16, §VII-B",
    claim: "The results are similarly poor as for uniform keys: the distribution is not skewed \
            enough.",
    here: here!(
        "; the paper gives no parameters, and here the standard deviation is an eighth of the \
         keys, so that the 1,024 hottest get 0.3% of the requests"
    ),
    keys: Keys::Normal,
    judged_by: Rule::Price,
};

/// Figure 17.
pub static PARETO: Reads = Reads {
    name: "accel-fig17",
    title: "Latency of GET, Pareto distributed keys",
    source: "Figure 17, §VII-B",
    claim: "About 11% of the requests are answered by the accelerator, ten times as fast. Requests \
            for other keys have a higher latency than in software.",
    here: here!(
        "; the paper gives no parameters, and here the shape is 1.16 and the scale 6,800 keys, so \
         that the 1,024 hottest get 15% of the requests"
    ),
    keys: Keys::Pareto,
    judged_by: Rule::Gain {
        percent: 11.0,
        percentile: 5.0,
    },
};

/// Figure 18.
pub static ETC: Reads = Reads {
    name: "accel-fig18",
    title: "Latency of GET, Facebook's ETC",
    source: "Figure 18, §VII-B",
    claim: "40% of all requests get a factor-of-ten improvement in latency.",
    here: here!(
        "; the paper gives no parameters, and here ETC is as Minos models it, read only, with \
         values of up to 8,000 bytes"
    ),
    keys: Keys::Etc,
    judged_by: Rule::Gain {
        percent: 40.0,
        percentile: 20.0,
    },
};

impl Figure for Reads {
    fn spec(&self) -> Spec {
        accelerated::spec(self.name, self.title, self.source, self.claim, self.here)
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        accelerated::measure(run, self.keys)
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        match self.judged_by {
            Rule::Price => accelerated::judge_price(data, shape),
            Rule::Gain {
                percent,
                percentile,
            } => accelerated::judge_gain(data, shape, percent, percentile),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(figure: &Reads, share: f64, price: f64) -> usize {
        let data = accelerated::drawn(share, price);
        figure.judged(&data).failures().count()
    }

    #[test]
    fn a_distribution_that_no_cache_helps_gains_nothing() {
        for figure in [&UNIFORM, &NORMAL] {
            assert_eq!(failures(figure, 0.3, 0.5), 0);
            // Many requests gain.
            assert_eq!(failures(figure, 30.0, 0.5), 2);
            // Requests are faster although hardly any was answered.
            assert_eq!(failures(figure, 0.3, -10.0), 2);
        }
    }

    #[test]
    fn a_skewed_distribution_gains() {
        // Where the share is too small with both bodies, the percentile lies among misses.
        for (figure, share, too_small) in [(&PARETO, 15.0, 3.0), (&ETC, 44.0, 18.0)] {
            assert_eq!(failures(figure, share, 1.0), 0);
            assert_eq!(failures(figure, too_small, 1.0), 3);
        }
    }
}
