//! The results of a measurement.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{BySize, Latency, SizeLatency, Tally, latency::histogram};

/// One second of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// When it began, in seconds since the start of the measurement.
    pub at_s: u64,
    /// Its length in seconds. The last one may be shorter than a second.
    pub seconds: f64,
    /// The counters of this second. Lost requests count when they are given up.
    #[serde(flatten)]
    pub tally: Tally,
    /// Latencies of reads and writes together.
    pub latency: Latency,
}

impl Second {
    /// Keys read, written and deleted per second.
    pub fn operations_per_s(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }
}

/// A whole measurement.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counters of the whole measurement. In an open loop, lost requests are those that were
    /// due in the measured time.
    pub tally: Tally,
    /// The measured time in seconds, from the first thread's begin to the last thread's end.
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
    /// Requests that count and whose replies arrived before the end of the measured time.
    pub in_time: u64,
    /// Requests that count and whose replies never arrived.
    pub lost: u64,
    /// CPU seconds of each client thread.
    pub client_cpu_s: Vec<f64>,
    /// The measured time of each client thread in seconds. If a trace is divided among threads,
    /// they end at different times.
    pub client_s: Vec<f64>,
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
    /// A second of one thread in which nothing was sent.
    pub fn idle() -> Outcome {
        Outcome {
            tally: Tally::default(),
            seconds: 1.0,
            reads: histogram(),
            writes: histogram(),
            sizes: BySize::default(),
            lateness: histogram(),
            unread: histogram(),
            in_time: 0,
            lost: 0,
            client_cpu_s: vec![1.0],
            client_s: vec![1.0],
            server_cpu_s: 0.0,
            series: Vec::new(),
            warm_up_s: 0.0,
            steady: None,
            saturated: false,
            client_saturated: false,
        }
    }

    /// Latencies of all requests, in nanoseconds.
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = histogram();
        all.add(&self.reads).expect("histograms of one shape");
        all.add(&self.writes).expect("histograms of one shape");
        all
    }

    /// The share of requests that were answered before the end of the measured time. Well below
    /// one, the server could not keep up, or requests were lost.
    pub fn in_time_share(&self) -> f64 {
        let requests = self.reads.len() + self.writes.len() + self.lost;
        self.in_time as f64 / requests.max(1) as f64
    }

    /// The latency of all requests at a quantile, in microseconds. A lost request counts as one
    /// that took for ever: the result is infinite if the quantile is one of them, or if no request
    /// was answered.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        let answered = self.latency_ns();
        if answered.is_empty() {
            return f64::INFINITY;
        }
        let rank = quantile * (answered.len() + self.lost) as f64;
        let quantile = rank / answered.len() as f64;
        match quantile > 1.0 {
            true => f64::INFINITY,
            false => answered.value_at_quantile(quantile) as f64 / 1e3,
        }
    }

    /// Keys read, written and deleted per second.
    pub fn operations_per_s(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }

    /// CPU time of the busiest client thread as a share of the time that it ran. Near one, the
    /// client was the bottleneck and not the server.
    pub fn client_busy(&self) -> f64 {
        let threads = self.client_cpu_s.iter().zip(&self.client_s);
        threads.map(|(cpu_s, s)| cpu_s / s).fold(0.0, f64::max)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this many reads that took 1 ms each and were answered in time, and of others that were
    /// lost.
    fn outcome(answered: u64, lost: u64) -> Outcome {
        let mut reads = histogram();
        reads.saturating_record_n(1_000_000, answered);
        Outcome {
            reads,
            in_time: answered,
            lost,
            client_cpu_s: vec![0.9, 0.9],
            client_s: vec![1.0, 4.0],
            ..Outcome::idle()
        }
    }

    #[test]
    fn lost_requests_are_not_answered_in_time() {
        assert_eq!(outcome(1000, 0).in_time_share(), 1.0);
        assert_eq!(outcome(500, 500).in_time_share(), 0.5);
        assert_eq!(outcome(0, 10).in_time_share(), 0.0);
    }

    #[test]
    fn a_lost_request_takes_for_ever() {
        let is_1_ms = |us: f64| (us - 1000.0).abs() < 1.0;
        assert!(is_1_ms(outcome(1000, 0).latency_us(1.0)));
        let lossy = outcome(980, 20);
        assert!(is_1_ms(lossy.latency_us(0.97)));
        assert_eq!(lossy.latency_us(0.99), f64::INFINITY);
        assert_eq!(outcome(0, 1).latency_us(0.5), f64::INFINITY);
        assert_eq!(outcome(0, 0).latency_us(0.5), f64::INFINITY);
    }

    #[test]
    fn a_client_thread_is_busy_in_its_own_time() {
        assert!((outcome(1, 0).client_busy() - 0.9).abs() < 1e-9);
    }
}
