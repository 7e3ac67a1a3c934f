//! Records the results of one client thread, second by second.

use std::{
    ops::Range,
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
use crate::{
    driver::{Meaning, Reply},
    workload::Verb,
};
use glimmer_measure::machine;

/// Length of an interval of the time series.
pub const INTERVAL_NS: u64 = 1_000_000_000;
/// The index of the interval after the end of the window.
const AFTER_END: u64 = u64::MAX;

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
    /// When it began, in nanoseconds since the start of the window.
    pub from_ns: u64,
    /// When it ended. The last interval of a window may be shorter than the others.
    pub to_ns: u64,
    /// The counters. Lost requests count when they are given up.
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
        let from_ns = index * INTERVAL_NS;
        Interval {
            index,
            from_ns,
            to_ns: from_ns + INTERVAL_NS,
            tally: Tally::default(),
            reads: histogram(),
            writes: histogram(),
            sizes: BySize::default(),
        }
    }

    /// The interval after the end of the window, in which the replies to its last requests arrive.
    pub(super) fn after_end(from_ns: u64) -> Interval {
        Interval {
            index: AFTER_END,
            from_ns,
            ..Interval::new(0)
        }
    }

    /// Whether it is a part of the window.
    pub fn is_measured(&self) -> bool {
        self.index != AFTER_END
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.to_ns - self.from_ns) as f64 / 1e9
    }

    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.tally.lost == 0
    }

    /// Adds the results of another thread.
    pub fn add(&mut self, other: &Interval) {
        self.from_ns = self.from_ns.min(other.from_ns);
        self.to_ns = self.to_ns.max(other.to_ns);
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
    /// When it began and ended, in nanoseconds since the start of the run.
    pub ns: Range<u64>,
    /// The counters. Lost requests are those that were due in the window.
    pub tally: Tally,
    /// CPU seconds of the thread.
    pub client_cpu_s: f64,
    /// The CPU time that the server had used when it began and ended.
    pub server_cpu: Range<Duration>,
    /// How late requests were sent, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// How long replies lay in the client's sockets, in nanoseconds, as far as the kernel says when
    /// they arrived.
    pub unread: Histogram<u64>,
    /// Requests that count and whose replies arrived before the end of the window.
    pub in_time: u64,
    /// Requests that count and whose replies never arrived.
    pub lost: u64,
    /// Whether the thread gave up because it or the server could not keep up.
    pub saturated: bool,
    /// Whether it was the thread itself.
    pub client_saturated: bool,
}

impl Span {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.ns.end - self.ns.start) as f64 / 1e9
    }
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
    /// Replies that count and arrived before the end of the window.
    in_time: u64,
    /// Requests that count and were given up.
    lost: u64,
    /// The keys of these requests that had no reply.
    lost_keys: u64,
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
            lost: 0,
            lost_keys: 0,
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

    /// Records a step of a request that was given up, and whether the request counts.
    pub fn lost(&mut self, reply: &Reply, counts: bool) {
        self.tally.count(reply);
        if counts {
            let keys = u64::from(reply.meaning == Meaning::Lost);
            self.interval.tally.lost += keys;
            self.lost_keys += keys;
            self.lost += u64::from(reply.last);
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
                let to = self.window.to();
                while self.cut_at() <= now && self.cut_at() < to {
                    self.cut(self.cut_at());
                }
                if now >= to {
                    self.last = Some(self.sample(now)?);
                    self.cut(now);
                    self.interval = Interval::after_end(now.saturating_sub(self.window.from()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn cut_at(&self) -> u64 {
        self.window.from() + (self.interval.index + 1) * INTERVAL_NS
    }

    /// Ends the current interval at this time and sends it.
    fn cut(&mut self, at: u64) {
        let next = Interval::new(self.interval.index + 1);
        let mut ended = std::mem::replace(&mut self.interval, next);
        ended.tally = Tally {
            lost: ended.tally.lost,
            ..self.tally.since(&self.cut_tally)
        };
        self.cut_tally = self.tally;
        self.send(ended, at);
    }

    fn send(&self, mut ended: Interval, at: u64) {
        let to_ns = at.saturating_sub(self.window.from());
        ended.to_ns = to_ns.max(ended.from_ns);
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
            Some(last) => {
                let after_end = std::mem::replace(&mut self.interval, Interval::new(0));
                if !after_end.is_empty() {
                    self.send(after_end, now);
                }
                last
            }
            None => {
                let last = self.sample(now)?;
                self.cut(now);
                last
            }
        };
        Ok(Some(Span {
            ns: first.at..last.at,
            tally: Tally {
                lost: self.lost_keys,
                ..last.tally.since(&first.tally)
            },
            client_cpu_s: (last.client_cpu - first.client_cpu).as_secs_f64(),
            server_cpu: first.server_cpu..last.server_cpu,
            lateness: self.lateness,
            unread: self.unread,
            in_time: self.in_time,
            lost: self.lost,
            saturated: self.saturated,
            client_saturated: self.client_saturated,
        }))
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
