//! The results of a measurement.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{BySize, Latency, SizeLatency, Tally, latency::histogram};

/// One second of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// When it began, in seconds since the start of the measurement.
    pub at_s: u64,
    /// The counters of this second.
    #[serde(flatten)]
    pub tally: Tally,
    /// Latencies of reads and writes together.
    pub latency: Latency,
}

/// A whole measurement.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counters of the whole measurement.
    pub tally: Tally,
    /// The measured time in seconds: the mean over all threads.
    pub seconds: f64,
    /// Latencies of reads in nanoseconds. In an open loop they count from the time a request was
    /// due, in a closed loop from the time it was sent.
    pub reads: Histogram<u64>,
    /// Latencies of writes and deletes.
    pub writes: Histogram<u64>,
    /// Latencies of all requests by the length of the values that they moved.
    pub sizes: BySize,
    /// How late the client sent its requests in an open loop, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// How long replies lay in the client's sockets before it read them, in nanoseconds. Empty
    /// without [`Plan::kernel_timestamps`](super::Plan::kernel_timestamps).
    pub unread: Histogram<u64>,
    /// CountBy requests whose replies arrived before the end of the measured time.
    pub in_time: u64,
    /// CPU seconds of each client thread.
    pub client_cpu_s: Vec<f64>,
    /// CPU seconds of the server; zero if unknown.
    pub server_cpu_s: f64,
    /// The time series, second by second.
    pub series: Vec<Second>,
    /// Length of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Whether the warm-up ended in a steady state, if that was requested.
    pub steady: Option<bool>,
    /// Whether the run ended early because the server or the client could not keep up.
    pub saturated: bool,
    /// Whether it was the client.
    pub client_saturated: bool,
}

impl Outcome {
    /// Latencies of all requests, in nanoseconds.
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = histogram();
        all.add(&self.reads).expect("histograms of one shape");
        all.add(&self.writes).expect("histograms of one shape");
        all
    }

    /// The share of requests that were answered before the end of the measured time. Well below
    /// one, the server could not keep up.
    pub fn in_time_share(&self) -> f64 {
        self.in_time as f64 / (self.reads.len() + self.writes.len()).max(1) as f64
    }

    /// Keys read, written and deleted per second.
    pub fn operations_per_s(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }

    /// CPU time of the busiest client thread as a share of the elapsed time. Near one, the client
    /// was the bottleneck and not the server.
    pub fn client_busy(&self) -> f64 {
        self.client_cpu_s.iter().copied().fold(0.0, f64::max) / self.seconds
    }

    /// CPU time of the server per operation, in nanoseconds.
    pub fn server_ns_per_operation(&self) -> f64 {
        self.server_cpu_s * 1e9 / self.tally.operations() as f64
    }

    /// A machine-readable summary.
    pub fn summary(&self) -> Summary {
        Summary {
            operations_per_s: self.operations_per_s(),
            seconds: self.seconds,
            hit_ratio: self.tally.hit_ratio(),
            tally: self.tally,
            latency: Latency::of(&self.latency_ns()),
            reads: Latency::of(&self.reads),
            writes: Latency::of(&self.writes),
            sizes: self.sizes.groups(),
            size_classes: self.sizes.each(),
            client_late: Latency::of(&self.lateness),
            client_unread: Latency::of(&self.unread),
            client_busy: self.client_busy(),
            server_cpu_s: self.server_cpu_s,
            warm_up_s: self.warm_up_s,
            steady: self.steady,
            saturated: self.saturated,
            client_saturated: self.client_saturated,
            series: self.series.clone(),
        }
    }
}

/// A machine-readable summary of an outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Keys read, written and deleted per second.
    pub operations_per_s: f64,
    /// The measured time in seconds.
    pub seconds: f64,
    /// The share of read keys that were found.
    pub hit_ratio: f64,
    /// The counters.
    pub tally: Tally,
    /// Latencies of all requests.
    pub latency: Latency,
    /// Latencies of reads.
    pub reads: Latency,
    /// Latencies of writes and deletes.
    pub writes: Latency,
    /// Latencies by the length of the values, in the groups that tables show.
    pub sizes: Vec<SizeLatency>,
    /// The same in classes that begin at powers of two.
    pub size_classes: Vec<SizeLatency>,
    /// How late the client sent its requests.
    pub client_late: Latency,
    /// How long replies lay in the client's sockets, with timestamps of the kernel.
    pub client_unread: Latency,
    /// CPU share of the busiest client thread.
    pub client_busy: f64,
    /// CPU seconds of the server; zero if unknown.
    pub server_cpu_s: f64,
    /// Length of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Whether the warm-up ended in a steady state.
    pub steady: Option<bool>,
    /// Whether the run ended early because the server or the client could not keep up.
    pub saturated: bool,
    /// Whether it was the client.
    pub client_saturated: bool,
    /// The time series, second by second.
    pub series: Vec<Second>,
}
