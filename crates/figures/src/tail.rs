//! Which percentiles of a live server are shown: those above which many requests lie. A p99 of a
//! few hundred requests follows from the slowest three.

use glimmer_loadgen::load::Latency;
use std::time::Duration;

use crate::Run;

/// Requests that lie above a percentile which is shown.
const ABOVE_MIN: u64 = 1_000;
/// Requests that a p99 needs for that.
const P99_REQUESTS: u64 = 100 * ABOVE_MIN;
/// A measurement is longer by this part than requests need that arrive at an even rate.
const RESERVE: f64 = 1.05;

impl Run<'_> {
    /// The length of a measurement whose p99 is shown, with this many requests per second: as
    /// [`measured`](Run::measured), or as long as it takes until there are enough of them.
    pub fn measured_for_p99(&self, unless_told_ms: u64, requests_per_s: f64) -> Duration {
        let needed_ms = RESERVE * P99_REQUESTS as f64 / requests_per_s * 1e3;
        self.measured(unless_told_ms.max(needed_ms as u64))
    }

    /// The 99th percentile in microseconds, if enough requests lie above it. A quick run, which
    /// proves nothing, has one in any case: the longest of few requests.
    pub fn p99_us(&self, latency: &Latency) -> Option<f64> {
        let is_shown = latency.count >= self.pick(P99_REQUESTS, 1);
        is_shown.then_some(latency.slow().1)
    }
}
