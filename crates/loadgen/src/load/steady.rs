//! Detects when a server has warmed up: its rate and hit ratio are steady.

use std::collections::VecDeque;

/// Samples that are compared: an older and a newer half.
const SAMPLES: usize = 8;
/// The mean rates of the halves differ by less than this share, or by less than the noise.
const RATE_DRIFT_MAX: f64 = 0.03;
/// The hit ratios of the halves differ by less than this.
const HIT_RATIO_DRIFT_MAX: f64 = 0.002;
/// A difference below this many standard errors is noise.
const STANDARD_ERRORS: f64 = 2.0;
/// A rate whose samples vary by more than this share is not steady, however little its mean
/// changes.
const VARIATION_MAX: f64 = 0.25;

/// Examines samples taken at equal intervals.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    samples: VecDeque<(f64, f64)>,
}

impl Detector {
    /// Adds a sample of the rate and the hit ratio. Returns true once both are steady.
    pub fn push(&mut self, rate: f64, hit_ratio: f64) -> bool {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((rate, hit_ratio));
        if self.samples.len() < SAMPLES {
            return false;
        }
        let half = SAMPLES / 2;
        let mean = |from: usize, what: fn(&(f64, f64)) -> f64| {
            self.samples
                .iter()
                .skip(from)
                .take(half)
                .map(what)
                .sum::<f64>()
                / half as f64
        };
        let (old_rate, new_rate) = (mean(0, |sample| sample.0), mean(half, |sample| sample.0));
        let hit_ratio_drift = (mean(0, |sample| sample.1) - mean(half, |sample| sample.1)).abs();
        let all = (old_rate + new_rate) / 2.0;
        if all <= 0.0 {
            return false;
        }
        let within = |from: usize, mean: f64| {
            self.samples
                .iter()
                .skip(from)
                .take(half)
                .map(|&(rate, _)| (rate - mean).powi(2))
                .sum::<f64>()
        };
        let deviation =
            ((within(0, old_rate) + within(half, new_rate)) / (SAMPLES - 2) as f64).sqrt();
        let standard_error = deviation * (2.0 / half as f64).sqrt();
        let drift = (new_rate - old_rate).abs();
        let rate_is_steady = drift < (RATE_DRIFT_MAX * all).max(STANDARD_ERRORS * standard_error);
        rate_is_steady && deviation < VARIATION_MAX * all && hit_ratio_drift < HIT_RATIO_DRIFT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// The number of samples after which a server counts as steady.
    fn steady_after(sample: impl Fn(usize) -> (f64, f64)) -> Option<usize> {
        let mut detector = Detector::default();
        (0..200).find(|&index| {
            let (rate, hit_ratio) = sample(index);
            detector.push(rate, hit_ratio)
        })
    }

    #[test]
    fn a_constant_rate_is_steady_at_once() {
        assert_eq!(steady_after(|_| (1e6, 0.9)), Some(SAMPLES - 1));
        let noise: Vec<f64> = {
            let mut rng = SmallRng::seed_from_u64(1);
            (0..200).map(|_| rng.random_range(0.9..1.1)).collect()
        };
        assert!(steady_after(|index| (1e6 * noise[index], 0.9)).unwrap() < 20);
    }

    #[test]
    fn a_filling_cache_is_not_steady_before_its_hit_ratio_is() {
        let filling = |index: usize| (1e6, 0.9 * (1.0 - (-(index as f64) / 20.0).exp()));
        let steady = steady_after(filling).unwrap();
        // The hit ratio changes by more than the limit as long as 0.9 e^(-t/20) (e^(4/20) - 1) is
        // above it.
        assert!((80..130).contains(&steady), "{steady}");
    }

    #[test]
    fn a_rate_that_climbs_or_stands_still_at_nothing_is_not_steady() {
        assert_eq!(
            steady_after(|index| (1e4 * 1.02f64.powi(index as i32), 1.0)),
            None
        );
        assert_eq!(steady_after(|_| (0.0, 1.0)), None);
        assert_eq!(
            steady_after(|index| (if index % 2 == 0 { 1e3 } else { 1e6 }, 1.0)),
            None
        );
    }
}
