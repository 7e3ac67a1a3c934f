//! What was measured.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Tally, record::histogram};

/// Quantiles that are shown, with their names.
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
    /// Requests.
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
    /// Largest.
    pub max_us: f64,
}

impl Latency {
    /// Of a histogram of nanoseconds.
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

/// One second of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// When it began, in seconds after the beginning of the measurement.
    pub at_s: u64,
    /// What was counted.
    #[serde(flatten)]
    pub tally: Tally,
    /// Latencies of reads and writes together.
    pub latency: Latency,
}

/// A whole measurement.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was counted.
    pub tally: Tally,
    /// The measured time in seconds: the mean of all threads.
    pub seconds: f64,
    /// Latencies of reads in nanoseconds: in an open loop from when a request was due, in a closed
    /// one from when it was sent.
    pub reads: Histogram<u64>,
    /// Latencies of writes and deletes.
    pub writes: Histogram<u64>,
    /// How late the client itself was in sending, in an open loop, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// Requests that count whose replies came before the measured time was over.
    pub in_time: u64,
    /// CPU seconds of every client thread.
    pub client_cpu_s: Vec<f64>,
    /// CPU seconds of the server; zero if they are unknown.
    pub server_cpu_s: f64,
    /// Second by second.
    pub series: Vec<Second>,
    /// How long the warm-up took, in seconds.
    pub warm_up_s: f64,
    /// Whether the warm-up ended because everything was steady, if that was asked for.
    pub steady: Option<bool>,
    /// Whether replies fell so far behind that the run ended early.
    pub saturated: bool,
}

impl Outcome {
    /// Latencies of all requests, in nanoseconds.
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = histogram();
        all.add(&self.reads).expect("histograms of one shape");
        all.add(&self.writes).expect("histograms of one shape");
        all
    }

    /// Part of the requests that were answered before the measured time was over: well below one,
    /// replies were falling behind.
    pub fn in_time_share(&self) -> f64 {
        self.in_time as f64 / (self.reads.len() + self.writes.len()).max(1) as f64
    }

    /// Keys read, written and deleted per second.
    pub fn operations_per_s(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }

    /// The busiest client thread's CPU time as part of the time that passed: near one, the client
    /// was the limit and not the server.
    pub fn client_busy(&self) -> f64 {
        self.client_cpu_s.iter().copied().fold(0.0, f64::max) / self.seconds
    }

    /// CPU time of the server per operation in nanoseconds.
    pub fn server_ns_per_operation(&self) -> f64 {
        self.server_cpu_s * 1e9 / self.tally.operations() as f64
    }

    /// What machines are told.
    pub fn summary(&self) -> Summary {
        Summary {
            operations_per_s: self.operations_per_s(),
            seconds: self.seconds,
            hit_ratio: self.tally.hit_ratio(),
            tally: self.tally,
            latency: Latency::of(&self.latency_ns()),
            reads: Latency::of(&self.reads),
            writes: Latency::of(&self.writes),
            client_late: Latency::of(&self.lateness),
            client_busy: self.client_busy(),
            server_cpu_s: self.server_cpu_s,
            warm_up_s: self.warm_up_s,
            steady: self.steady,
            saturated: self.saturated,
            series: self.series.clone(),
        }
    }
}

/// An outcome in figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Keys read, written and deleted per second.
    pub operations_per_s: f64,
    /// The measured time.
    pub seconds: f64,
    /// Part of the keys read that were found.
    pub hit_ratio: f64,
    /// What was counted.
    pub tally: Tally,
    /// Of all requests.
    pub latency: Latency,
    /// Of reads.
    pub reads: Latency,
    /// Of writes and deletes.
    pub writes: Latency,
    /// How late the client was in sending.
    pub client_late: Latency,
    /// The busiest client thread's share of a core.
    pub client_busy: f64,
    /// CPU seconds of the server; zero if they are unknown.
    pub server_cpu_s: f64,
    /// How long the warm-up took.
    pub warm_up_s: f64,
    /// Whether it ended in a steady state.
    pub steady: Option<bool>,
    /// Whether the run ended early because replies fell behind.
    pub saturated: bool,
    /// Second by second.
    pub series: Vec<Second>,
}
