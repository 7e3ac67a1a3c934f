//! Executes a plan: starts the threads with their connections and combines their results.

use std::{
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use super::{
    CountBy, Drive, Kernel, Outcome, Pace, Plan, Recorder, Requests, Second, ServerCpu, WarmUp,
    Window, closed,
    gather::Gather,
    open,
    record::{Glance, Interval, Span, histogram},
    warming::{SAMPLE, Warming},
};
use crate::{
    driver::{Connect, Job, Link},
    workload::{Drawn, Source, trace::Replay},
};
use glimmer_measure::machine;

/// Time between the moment when all threads are ready and the start of the measurement.
const MOMENT: Duration = Duration::from_millis(10);

/// What happens during a measurement, for an observer.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The warm-up is in progress.
    Warming {
        /// Seconds since its start.
        seconds: f64,
        /// The current rate in operations per second.
        operations_per_s: f64,
    },
    /// A second has been measured.
    Measured {
        /// The results of that second.
        second: &'a Second,
        /// All latencies of that second.
        interval: &'a Interval,
        /// The total number of seconds, if known.
        of: Option<u64>,
    },
}

/// State shared by all threads.
pub struct Shared<'a> {
    pub plan: &'a Plan,
    pub window: Window,
    pub glances: Vec<Glance>,
    /// Threads whose connections are open.
    pub ready: AtomicUsize,
    inserted: Arc<AtomicU64>,
    pub start: Instant,
    server_cpu: Option<ServerCpu<'a>>,
}

/// The work of one thread.
struct Thread<'a> {
    shared: &'a Shared<'a>,
    part: usize,
    intervals: Sender<Interval>,
}

impl Job for Thread<'_> {
    type Output = Option<Span>;

    fn run<L: Link + AsFd>(self, links: Vec<L>) -> Result<Option<Span>> {
        let Thread {
            shared,
            part,
            intervals,
        } = self;
        let Plan {
            threads,
            pace,
            seed,
            reply_max,
            ..
        } = *shared.plan;
        let index = part as u64;
        let mut source: Box<dyn Source> = match &shared.plan.requests {
            Requests::Drawn(workload) => Box::new(Drawn::new(
                workload,
                seed,
                index,
                threads as u64,
                &shared.inserted,
            )),
            Requests::Recorded(trace) => Box::new(Replay::new(trace, index, threads as u64)?),
        };
        let server_cpu = shared.server_cpu.filter(|_| part == 0);
        let mut recorder =
            Recorder::new(&shared.window, &shared.glances[part], server_cpu, intervals);
        let kernel = Kernel::new(shared.start, &links)?;
        shared.ready.fetch_add(1, Ordering::Release);
        let counted = match pace {
            Pace::Closed { .. } => CountBy::ByReply,
            Pace::Open { .. } => CountBy::ByDueTime,
        };
        let drive = Drive::new(
            links,
            kernel,
            &mut recorder,
            counted,
            reply_max.as_nanos() as u64,
        );
        match pace {
            Pace::Closed { in_flight } => closed::run(drive, &mut *source, in_flight)?,
            Pace::Open {
                arrivals,
                burst,
                idle,
            } => {
                let arrivals_per_thread = arrivals.part(threads);
                let offset_ns = match arrivals {
                    open::Arrivals::Fixed(rate) => (part as f64 * 1e9 / rate) as u64,
                    _ => 0,
                };
                let schedule = open::Schedule {
                    arrivals: arrivals_per_thread,
                    burst,
                    idle,
                    offset_ns,
                    seed: seed ^ (part as u64) << 32,
                };
                open::run(drive, &mut *source, &schedule)?;
            }
        }
        if let Some(error) = source.error() {
            return Err(error);
        }
        recorder.finish(shared.start.elapsed().as_nanos() as u64)
    }
}

/// Measures a server. `server_cpu` returns the CPU time that the server has used so far, if that is
/// known. `progress` receives reports.
pub fn run(
    target: &impl Connect,
    plan: &Plan,
    server_cpu: Option<ServerCpu<'_>>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome> {
    plan.check().map_err(|error| anyhow!(error))?;
    let keys = match &plan.requests {
        Requests::Drawn(workload) => workload.keys,
        Requests::Recorded(_) => 0,
    };
    let shared = Shared {
        plan,
        window: Window::closed(),
        glances: (0..plan.threads).map(|_| Glance::default()).collect(),
        ready: AtomicUsize::new(0),
        inserted: Arc::new(AtomicU64::new(keys)),
        start: Instant::now(),
        server_cpu,
    };
    let mut warming = Warming::new(&shared);
    if plan.warm_up == WarmUp::Fixed(Duration::ZERO) {
        // There is no warm-up: the very first request counts.
        warming.began = Some(shared.start);
        warming.open(Duration::ZERO);
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let work = |part: usize| {
            let (shared, intervals) = (&shared, sender.clone());
            scope.spawn(move || {
                let result = (|| {
                    if !plan.cores.is_empty() {
                        machine::pin([plan.cores[part % plan.cores.len()]])?;
                    }
                    // If connections cannot be divided evenly, the first threads get one more.
                    let connections = (plan.connections + plan.threads - 1 - part) / plan.threads;
                    target.open(
                        connections,
                        Thread {
                            shared,
                            part,
                            intervals,
                        },
                    )
                })();
                if result.is_err() {
                    shared.window.end_by(0);
                }
                result
            })
        };
        let threads: Vec<_> = (0..plan.threads).map(work).collect();
        drop(sender);
        let mut gather = Gather::new(&shared, progress);
        loop {
            let patience = if warming.opened { SAMPLE } else { MOMENT };
            match receiver.recv_timeout(patience) {
                Ok(interval) => gather.add(interval),
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            warming.look(gather.progress());
        }
        let mut spans = Vec::new();
        for thread in threads {
            let span = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            spans.push(span.context("the requests ended before the warm-up did")?);
        }
        let (all, series) = gather.all();
        Ok(outcome(&spans, all, series, &warming))
    })
}

fn outcome(spans: &[Span], all: Interval, series: Vec<Second>, warming: &Warming<'_>) -> Outcome {
    let mut outcome = Outcome {
        tally: Default::default(),
        seconds: spans.iter().map(|span| span.seconds).sum::<f64>() / spans.len() as f64,
        reads: all.reads,
        writes: all.writes,
        sizes: all.sizes,
        lateness: histogram(),
        in_time: spans.iter().map(|span| span.in_time).sum(),
        client_cpu_s: spans.iter().map(|span| span.client_cpu_s).collect(),
        server_cpu_s: spans.iter().map(|span| span.server_cpu_s).sum(),
        series,
        warm_up_s: warming.seconds,
        steady: warming.steady,
        saturated: spans.iter().any(|span| span.saturated),
    };
    for span in spans {
        outcome.tally += span.tally;
        outcome
            .lateness
            .add(&span.lateness)
            .expect("histograms of one shape");
    }
    outcome
}
