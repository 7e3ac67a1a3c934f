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

/// A latency distribution in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Number of requests.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// 99.99th percentile.
    pub p9999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl Latency {
    /// Converts a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: us(0.5),
            p90_us: us(0.9),
            p99_us: us(0.99),
            p999_us: us(0.999),
            p9999_us: us(0.9999),
            max_us: us(1.0),
        }
    }
}
