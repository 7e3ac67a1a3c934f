//! Round-trip times of a small request over the last intervals.

use std::{collections::VecDeque, time::Duration};

use hdrhistogram::Histogram;

/// Longer round trips are recorded as this value.
const LATENCY_US_MAX: u64 = 60_000_000;
/// Number of intervals that count. With fewer round trips, a high percentile would be meaningless.
const INTERVALS: usize = 60;

/// Percentiles of round-trip times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub p50_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
    /// The number of round trips.
    pub count: u64,
}

/// Collects round trips.
#[derive(Default)]
pub struct Probes {
    intervals: VecDeque<Histogram<u64>>,
}

impl Probes {
    /// Starts an interval and drops the oldest.
    pub fn next_interval(&mut self) {
        if self.intervals.len() == INTERVALS {
            self.intervals.pop_front();
        }
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, 2);
        self.intervals
            .push_back(histogram.expect("bounds that a histogram can have"));
    }

    /// Adds a round trip to the current interval.
    pub fn add(&mut self, round_trip: Duration) {
        if self.intervals.is_empty() {
            self.next_interval();
        }
        if let Some(now) = self.intervals.back_mut() {
            now.saturating_record(round_trip.as_micros().max(1) as u64);
        }
    }

    /// The percentiles over all intervals, if there are any round trips.
    pub fn latency(&self) -> Option<Latency> {
        let mut intervals = self.intervals.iter();
        let mut all = intervals.next()?.clone();
        for more in intervals {
            all.add(more).expect("histograms of one shape");
        }
        (!all.is_empty()).then(|| Latency {
            p50_us: all.value_at_quantile(0.5),
            p99_us: all.value_at_quantile(0.99),
            max_us: all.max(),
            count: all.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_the_last_intervals() {
        let mut probes = Probes::default();
        assert_eq!(probes.latency(), None);
        probes.add(Duration::from_millis(5));
        for _ in 0..INTERVALS {
            probes.next_interval();
            probes.add(Duration::from_micros(100));
        }
        let latency = probes.latency().unwrap();
        assert_eq!((latency.p50_us, latency.p99_us), (100, 100));
        assert_eq!(
            latency.count, INTERVALS as u64,
            "the first interval is forgotten"
        );
        probes.add(Duration::from_micros(3000));
        let longest = probes.latency().unwrap().max_us;
        assert!((2980..=3020).contains(&longest), "{longest}");
    }
}
