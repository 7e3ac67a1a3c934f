//! What was measured.

use crate::{Accesses, costs::packets, request::Request};
use glimmer_dispatch::Plan;
use hdrhistogram::Histogram;

/// Latencies up to a minute are told apart, in steps of 0.1%.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// A server that executes this share of the requests keeps up with them.
const SUSTAINED: f64 = 0.98;

/// What one core did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreLoad {
    /// Requests that it executed.
    pub requests: u64,
    /// Packets of their values.
    pub packets: u64,
    /// Time during which it was busy, in nanoseconds.
    pub busy_ns: f64,
}

/// The measurements of a run, without its warm-up.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Latencies of the requests that the workload counts as small, in nanoseconds.
    pub small: Histogram<u64>,
    /// Latencies of the large ones.
    pub large: Histogram<u64>,
    /// Requests that found a full queue.
    pub lost: u64,
    /// Requests that found their core at work.
    pub waited: u64,
    /// Requests that an idle core took from the queues of another.
    pub stolen: u64,
    /// Reads of the RX queues of other cores, where cores wait for one another.
    pub shared_reads: Accesses,
    /// Requests put into the software queues of other cores, where cores wait for one another.
    pub shared_puts: Accesses,
    /// The load of each core.
    pub cores: Vec<CoreLoad>,
    /// Time that was measured, in nanoseconds.
    pub measured_ns: f64,
    /// Time during which the link was busy, in nanoseconds.
    pub link_busy_ns: f64,
    /// The same of its other direction, by which requests come.
    pub inward_busy_ns: f64,
    /// Latencies of all requests, in nanoseconds, by the window in which they arrived.
    pub windows: Vec<Histogram<u64>>,
    /// Length of a window in nanoseconds.
    pub(crate) window_ns: Option<f64>,
    /// Every plan that was in force, and from when on, in nanoseconds from the start of the run.
    pub plans: Vec<(f64, Plan)>,
}

impl Outcome {
    pub(crate) fn new(cores: usize, window_ns: Option<f64>) -> Outcome {
        let histogram = || Histogram::new_with_max(LATENCY_MAX_NS, 3).expect("valid bounds");
        Outcome {
            small: histogram(),
            large: histogram(),
            lost: 0,
            waited: 0,
            stolen: 0,
            shared_reads: Accesses::default(),
            shared_puts: Accesses::default(),
            cores: vec![CoreLoad::default(); cores],
            measured_ns: 0.0,
            link_busy_ns: 0.0,
            inward_busy_ns: 0.0,
            windows: Vec::new(),
            window_ns,
            plans: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, now_ns: f64, request: &Request) {
        let latency_ns = (now_ns - request.arrived_ns).round() as u64;
        match request.is_large {
            true => self.large.saturating_record(latency_ns),
            false => self.small.saturating_record(latency_ns),
        }
        if let Some(window_ns) = self.window_ns {
            let place = (request.arrived_ns / window_ns) as usize;
            while self.windows.len() <= place {
                let window = Histogram::new_with_max(LATENCY_MAX_NS, 2).expect("valid bounds");
                self.windows.push(window);
            }
            self.windows[place].saturating_record(latency_ns);
        }
    }

    pub(crate) fn executed(&mut self, core: usize, request: &Request) {
        self.cores[core].requests += 1;
        self.cores[core].packets += u64::from(packets(request.bytes));
    }

    /// The latency below which 99% of all requests were, in nanoseconds.
    pub fn p99_ns(&self) -> f64 {
        self.quantile_ns(0.99)
    }

    /// The median latency of all requests, in nanoseconds.
    pub fn p50_ns(&self) -> f64 {
        self.quantile_ns(0.5)
    }

    fn quantile_ns(&self, quantile: f64) -> f64 {
        let mut all = self.small.clone();
        all.add(&self.large).expect("equal bounds");
        all.value_at_quantile(quantile) as f64
    }

    /// The same of large requests alone.
    pub fn large_p99_ns(&self) -> f64 {
        self.large.value_at_quantile(0.99) as f64
    }

    /// The mean latency of all requests, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        let sum = |of: &Histogram<u64>| of.mean() * of.len() as f64;
        (sum(&self.small) + sum(&self.large)) / (self.small.len() + self.large.len()) as f64
    }

    /// Requests that were answered in a second.
    pub fn answered_per_s(&self) -> f64 {
        (self.small.len() + self.large.len()) as f64 / self.measured_ns * 1e9
    }

    /// Requests that were executed in a second, whether or not their replies were sent.
    pub fn executed_per_s(&self) -> f64 {
        let executed: u64 = self.cores.iter().map(|core| core.requests).sum();
        executed as f64 / self.measured_ns * 1e9
    }

    /// Whether the server keeps up with this many requests per second: none is lost, and no queue
    /// grows all the time.
    pub fn is_sustained(&self, offered_per_s: f64) -> bool {
        self.lost == 0 && self.executed_per_s() > SUSTAINED * offered_per_s
    }

    /// The share of the time during which replies kept the link busy.
    pub fn link_utilisation(&self) -> f64 {
        self.link_busy_ns / self.measured_ns
    }
}
