//! Executes a plan: starts the threads with their connections and combines their results.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use super::{
    CountBy, Drive, Kernel, Lanes, Outcome, Pace, Plan, Recorder, Requests, Second, ServerCpu,
    WarmUp, Window, closed,
    gather::Gather,
    open,
    record::{Glance, Interval, Span, histogram},
    warming::{SAMPLE, Warming},
};
use crate::{
    driver::{Awaited, Connect, Job, Link},
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

/// A thread's share of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    /// Its index among the threads that send the same kind of requests.
    index: usize,
    /// The number of these threads.
    threads: usize,
    lanes: Lanes,
    connections: usize,
}

impl Share {
    /// The share of the thread with this index among all threads. Those of large values come last.
    fn of(plan: &Plan, part: usize) -> Share {
        // If connections cannot be divided evenly, the first threads get one more.
        let divided = |connections: usize, index: usize, threads: usize| {
            (connections + threads - 1 - index) / threads
        };
        let own = |lanes, connections, index, threads| Share {
            index,
            threads,
            lanes,
            connections: divided(connections, index, threads),
        };
        match plan.large {
            None => own(Lanes::Mixed, plan.connections, part, plan.threads),
            Some(large) if large.threads == 0 => {
                let others = divided(plan.connections, part, plan.threads);
                Share {
                    connections: others + divided(large.connections, part, plan.threads),
                    ..own(Lanes::Apart(others), plan.connections, part, plan.threads)
                }
            }
            Some(_) if part < plan.threads => {
                own(Lanes::Small, plan.connections, part, plan.threads)
            }
            Some(large) => {
                let index = part - plan.threads;
                own(Lanes::Large, large.connections, index, large.threads)
            }
        }
    }
}

/// The work of one thread.
struct Thread<'a> {
    shared: &'a Shared<'a>,
    part: usize,
    intervals: Sender<Interval>,
}

impl Job for Thread<'_> {
    type Output = Option<Span>;

    fn run<L: Link + Awaited>(self, links: Vec<L>) -> Result<Option<Span>> {
        let Thread {
            shared,
            part,
            intervals,
        } = self;
        let Plan {
            pace,
            seed,
            reply_max,
            ..
        } = *shared.plan;
        let Share {
            index,
            threads,
            lanes,
            ..
        } = Share::of(shared.plan, part);
        // Threads of different kinds send different keys, so that equal versions do no harm.
        let seed = match lanes {
            Lanes::Large => !seed,
            _ => seed,
        };
        let index = index as u64;
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
        let mut drive = Drive::new(
            links,
            kernel,
            &mut recorder,
            counted,
            reply_max.as_nanos() as u64,
        );
        if let Some(bytes) = shared.plan.read_bytes {
            drive.read_at_most(bytes);
        }
        if shared.plan.kernel_timestamps {
            drive.note_arrivals()?;
        }
        match pace {
            Pace::Closed { in_flight } => closed::run(drive, &mut *source, in_flight)?,
            Pace::Open {
                arrivals,
                burst,
                idle,
            } => {
                let arrivals_per_thread = arrivals.part(threads);
                let offset_ns = match arrivals {
                    open::Arrivals::Fixed(rate) => (index as f64 * 1e9 / rate) as u64,
                    _ => 0,
                };
                let schedule = open::Schedule {
                    arrivals: arrivals_per_thread,
                    burst,
                    gather: shared.plan.gather,
                    idle,
                    lanes,
                    offset_ns,
                    seed: seed ^ index << 32,
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
        glances: (0..plan.all_threads()).map(|_| Glance::default()).collect(),
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
                    if plan.real_time && part < plan.threads {
                        // Refused without privileges. The client is then later, and reports it.
                        let _ = machine::run_in_real_time();
                    }
                    target.open(
                        Share::of(plan, part).connections,
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
        let threads: Vec<_> = (0..plan.all_threads()).map(work).collect();
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
        unread: histogram(),
        in_time: spans.iter().map(|span| span.in_time).sum(),
        client_cpu_s: spans.iter().map(|span| span.client_cpu_s).collect(),
        server_cpu_s: spans.iter().map(|span| span.server_cpu_s).sum(),
        series,
        warm_up_s: warming.seconds,
        steady: warming.steady,
        saturated: spans.iter().any(|span| span.saturated),
        client_saturated: spans.iter().any(|span| span.client_saturated),
    };
    for span in spans {
        outcome.tally += span.tally;
        outcome
            .lateness
            .add(&span.lateness)
            .expect("histograms of one shape");
        outcome
            .unread
            .add(&span.unread)
            .expect("histograms of one shape");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load::LargeApart, workload::Workload};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn threads_share_all_connections_and_each_request_has_one_kind_of_thread(
            threads in 1usize..9,
            more in 0usize..20,
            large in prop::option::of((0usize..5, 0usize..20)),
        ) {
            let pace = Pace::Closed { in_flight: 1 };
            let large = large.map(|(of_their_own, more)| LargeApart {
                connections: of_their_own.max(threads) + more,
                threads: of_their_own,
            });
            let plan = Plan {
                threads,
                connections: threads + more,
                large,
                ..Plan::new(Requests::Drawn(Workload::default()), pace)
            };
            let shares = (0..plan.all_threads()).map(|part| Share::of(&plan, part));
            let shares: Vec<Share> = shares.collect();
            let connections: usize = shares.iter().map(|share| share.connections).sum();
            let of_large = large.map_or(0, |large| large.connections);
            prop_assert_eq!(connections, plan.connections + of_large);
            let is_sound = |share: &Share| share.connections > 0 && share.index < share.threads;
            prop_assert!(shares.iter().all(is_sound));
            let count = |kind: fn(&Lanes) -> bool| shares.iter().filter(|s| kind(&s.lanes)).count();
            let of_all = count(|lanes| matches!(lanes, Lanes::Mixed | Lanes::Apart(_)));
            let of_small = count(|lanes| matches!(lanes, Lanes::Small));
            let of_large = count(|lanes| matches!(lanes, Lanes::Large));
            let expected = match large {
                Some(large) if large.threads > 0 => (0, threads, large.threads),
                _ => (threads, 0, 0),
            };
            prop_assert_eq!((of_all, of_small, of_large), expected);
            for share in &shares {
                if let Lanes::Apart(first) = share.lanes {
                    prop_assert!(first > 0 && first < share.connections);
                }
            }
        }
    }
}
