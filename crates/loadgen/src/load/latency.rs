//! Distributions of latencies.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer latencies are recorded as this value: 100 seconds.
const LATENCY_NS_MAX: u64 = 100_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// An empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    histogram_of(DIGITS)
}

/// The same with this many significant decimal digits, from 0 to 5.
pub fn histogram_of(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, digits).expect("bounds that a histogram can have")
}

/// The reported quantiles with their names.
pub const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

/// Requests that lie above a percentile that is told. With fewer, it follows from single requests.
pub const ABOVE_MIN: u64 = 10;

/// Whether enough of this many requests lie above a quantile to tell it.
pub fn is_told(quantile: f64, requests: u64) -> bool {
    // Rounded, because `1.0 - 0.999` is not exact.
    let above = ((1.0 - quantile) * requests as f64 * 1e6).round() / 1e6;
    above >= ABOVE_MIN as f64
}

/// The value at a quantile above the median; `None` if fewer than [`ABOVE_MIN`] lie above it.
pub fn percentile(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    is_told(quantile, histogram.len()).then(|| histogram.value_at_quantile(quantile))
}

/// A latency distribution in microseconds. A percentile above the median is `None` if fewer than
/// [`ABOVE_MIN`] requests lie above it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Number of requests.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// 99.99th percentile.
    pub p9999_us: Option<f64>,
    /// Maximum.
    pub max_us: f64,
}

impl Latency {
    /// Converts a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        let us = |ns: u64| ns as f64 / 1e3;
        let told = |quantile| percentile(histogram, quantile).map(us);
        Latency {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: us(histogram.value_at_quantile(0.5)),
            p90_us: told(0.9),
            p99_us: told(0.99),
            p999_us: told(0.999),
            p9999_us: told(0.9999),
            max_us: us(histogram.max()),
        }
    }

    /// The 99th percentile in microseconds with its name, or the maximum if it is not told.
    pub fn slow(&self) -> (&'static str, f64) {
        match self.p99_us {
            Some(us) => ("p99", us),
            None => ("max", self.max_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_told_if_ten_requests_lie_above_it() {
        for (quantile, requests) in [(0.9, 100), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000)] {
            assert!(is_told(quantile, requests), "{quantile}");
            assert!(!is_told(quantile, requests - 1), "{quantile}");
        }
        let mut histogram = histogram();
        histogram.record_n(1000, 999).unwrap();
        let few = Latency::of(&histogram);
        assert!(few.p90_us.is_some());
        assert_eq!((few.p99_us, few.slow()), (None, ("max", 1.0)));
        histogram.record(2000).unwrap();
        let enough = Latency::of(&histogram);
        assert_eq!((enough.p99_us, enough.slow()), (Some(1.0), ("p99", 1.0)));
        assert_eq!((enough.p999_us, enough.max_us), (None, 2.0));
    }
}
