//! Records the results of one client thread, second by second.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::Sender,
    },
    time::Duration,
};

use anyhow::Result;
use hdrhistogram::Histogram;

pub use super::latency::histogram;
use super::{BySize, Tally};
use crate::{driver::Reply, workload::Verb};
use glimmer_measure::machine;

/// Length of an interval of the time series.
pub const INTERVAL_NS: u64 = 1_000_000_000;

/// The measured time in nanoseconds since the start, shared by all threads. It may be moved while
/// they run.
#[derive(Debug)]
pub struct Window {
    from: AtomicU64,
    to: AtomicU64,
}

impl Window {
    /// A window that is not open yet.
    pub fn closed() -> Window {
        Window {
            from: AtomicU64::new(u64::MAX),
            to: AtomicU64::new(u64::MAX),
        }
    }

    /// Opens the window. Everything before `from` is warm-up; at `to` the run ends.
    pub fn open(&self, from: u64, to: u64) {
        self.to.store(to, Ordering::Relaxed);
        self.from.store(from, Ordering::Release);
    }

    /// Ends the window at `to` or earlier.
    pub fn end_by(&self, to: u64) {
        self.to.fetch_min(to, Ordering::Relaxed);
    }

    /// The start of the window.
    #[inline]
    pub fn from(&self) -> u64 {
        self.from.load(Ordering::Acquire)
    }

    /// The end of the window.
    #[inline]
    pub fn to(&self) -> u64 {
        self.to.load(Ordering::Relaxed)
    }

    /// Whether a point in time lies in the window.
    #[inline]
    pub fn contains(&self, at: u64) -> bool {
        self.from() <= at && at < self.to()
    }
}

/// Counters of a thread that other threads may read while it runs.
#[derive(Debug, Default)]
pub struct Glance {
    operations: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Glance {
    /// Operations, hits and misses so far.
    pub fn look(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.operations), load(&self.hits), load(&self.misses))
    }
}

/// One interval of one thread, or of all threads together.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its index, counted from the start of the window.
    pub index: u64,
    /// The counters.
    pub tally: Tally,
    /// Latencies of reads in nanoseconds.
    pub reads: Histogram<u64>,
    /// Latencies of writes and deletes in nanoseconds.
    pub writes: Histogram<u64>,
    /// All latencies by the length of the values.
    pub sizes: BySize,
}

impl Interval {
    /// An empty interval.
    pub fn new(index: u64) -> Interval {
        Interval {
            index,
            tally: Tally::default(),
            reads: histogram(),
            writes: histogram(),
            sizes: BySize::default(),
        }
    }

    /// Adds the results of another thread.
    pub fn add(&mut self, other: &Interval) {
        self.tally += other.tally;
        self.reads
            .add(&other.reads)
            .expect("histograms of one shape");
        self.writes
            .add(&other.writes)
            .expect("histograms of one shape");
        self.sizes.add(&other.sizes);
    }
}

/// The results of a thread over the whole window.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its length in seconds.
    pub seconds: f64,
    /// The counters.
    pub tally: Tally,
    /// CPU seconds of the thread.
    pub client_cpu_s: f64,
    /// CPU seconds of the server.
    pub server_cpu_s: f64,
    /// How late requests were sent, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// How long replies lay in the client's sockets, in nanoseconds, as far as the kernel says when
    /// they arrived.
    pub unread: Histogram<u64>,
    /// CountBy requests whose replies arrived before the end of the window.
    pub in_time: u64,
    /// Whether the thread gave up because it or the server could not keep up.
    pub saturated: bool,
    /// Whether it was the thread itself.
    pub client_saturated: bool,
}

#[derive(Clone, Copy)]
struct Sample {
    at: u64,
    tally: Tally,
    client_cpu: Duration,
    server_cpu: Duration,
}

/// The CPU time that the server has used so far.
pub type ServerCpu<'a> = &'a (dyn Fn() -> Result<Duration> + Sync);

/// The recorder of one thread.
pub struct Recorder<'a> {
    window: &'a Window,
    glance: &'a Glance,
    server_cpu: Option<ServerCpu<'a>>,
    intervals: Sender<Interval>,
    interval: Interval,
    tally: Tally,
    /// The counters at the start of the current interval.
    cut_tally: Tally,
    first: Option<Sample>,
    last: Option<Sample>,
    /// How late requests were sent, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// How long replies lay in the client's sockets, in nanoseconds.
    pub unread: Histogram<u64>,
    /// CountBy replies that arrived before the end of the window.
    in_time: u64,
    /// Whether the thread gave up because it or the server could not keep up.
    pub saturated: bool,
    /// Whether it was the thread itself.
    pub client_saturated: bool,
}

impl<'a> Recorder<'a> {
    /// A recorder that sends every finished interval to `intervals`, the last one when it finishes.
    pub fn new(
        window: &'a Window,
        glance: &'a Glance,
        server_cpu: Option<ServerCpu<'a>>,
        intervals: Sender<Interval>,
    ) -> Self {
        Recorder {
            window,
            glance,
            server_cpu,
            intervals,
            interval: Interval::new(0),
            tally: Tally::default(),
            cut_tally: Tally::default(),
            first: None,
            last: None,
            lateness: histogram(),
            unread: histogram(),
            in_time: 0,
            saturated: false,
            client_saturated: false,
        }
    }

    /// The measured time.
    pub fn window(&self) -> &'a Window {
        self.window
    }

    /// The counters so far, including the warm-up.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Records a step of a reply. `latency_ns` is the latency of a complete reply that counts.
    #[inline]
    pub fn reply(&mut self, reply: &Reply, latency_ns: Option<u64>) {
        self.tally.count(reply);
        if let Some(latency_ns) = latency_ns {
            let histogram = if reply.verb == Verb::Get {
                &mut self.interval.reads
            } else {
                &mut self.interval.writes
            };
            histogram.saturating_record(latency_ns.max(1));
            self.interval
                .sizes
                .record(reply.item_bytes, latency_ns.max(1));
            self.in_time += u64::from(reply.tag + latency_ns < self.window.to());
        }
    }

    /// Cuts intervals, and takes samples at the start and end of the window. Called in every
    /// iteration of a loop.
    #[inline]
    pub fn tick(&mut self, now: u64) -> Result<()> {
        self.glance
            .operations
            .store(self.tally.operations(), Ordering::Relaxed);
        self.glance.hits.store(self.tally.hits, Ordering::Relaxed);
        self.glance
            .misses
            .store(self.tally.misses, Ordering::Relaxed);
        match &self.first {
            None if now >= self.window.from() => {
                self.first = Some(self.sample(now)?);
                self.cut_tally = self.tally;
            }
            Some(_) if self.last.is_none() => {
                while now >= self.cut_at() && now < self.window.to() {
                    self.cut();
                }
                if now >= self.window.to() {
                    self.last = Some(self.sample(now)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn cut_at(&self) -> u64 {
        self.window.from() + (self.interval.index + 1) * INTERVAL_NS
    }

    /// Ends the current interval and sends it.
    fn cut(&mut self) {
        let next = Interval::new(self.interval.index + 1);
        let mut ended = std::mem::replace(&mut self.interval, next);
        ended.tally = self.tally.since(&self.cut_tally);
        self.cut_tally = self.tally;
        // The receiver is gone only if the run has failed.
        let _ = self.intervals.send(ended);
    }

    fn sample(&self, at: u64) -> Result<Sample> {
        Ok(Sample {
            at,
            tally: self.tally,
            client_cpu: machine::thread_cpu(),
            server_cpu: self.server_cpu.map_or(Ok(Duration::ZERO), |cpu| cpu())?,
        })
    }

    /// Ends the last interval and returns the thread's results over the window; `None` if the
    /// window never opened.
    pub fn finish(mut self, now: u64) -> Result<Option<Span>> {
        let Some(first) = self.first else {
            return Ok(None);
        };
        let last = match self.last {
            Some(last) => last,
            None => self.sample(now)?,
        };
        self.cut();
        Ok(Some(Span {
            seconds: (last.at - first.at) as f64 / 1e9,
            tally: last.tally.since(&first.tally),
            client_cpu_s: (last.client_cpu - first.client_cpu).as_secs_f64(),
            server_cpu_s: last
                .server_cpu
                .saturating_sub(first.server_cpu)
                .as_secs_f64(),
            lateness: self.lateness,
            unread: self.unread,
            in_time: self.in_time,
            saturated: self.saturated,
            client_saturated: self.client_saturated,
        }))
    }
}
