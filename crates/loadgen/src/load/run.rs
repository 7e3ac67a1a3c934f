//! Executes a plan: starts the threads with their connections and combines their results.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, anyhow};

use super::{
    Arrivals, CountBy, Drive, Idle, Kernel, KeyPart, Lanes, Outcome, Pace, Plan, Recorder,
    Requests, Second, ServerCpu, WarmUp, Window, closed,
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
        /// The results of that second; `None` for the latencies of requests of the measured time
        /// that were answered after it.
        second: Option<&'a Second>,
        /// All latencies of that second.
        interval: &'a Interval,
        /// The total number of seconds, if known.
        of: Option<u64>,
        /// When the measured time began.
        begun: SystemTime,
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

impl<'a> Shared<'a> {
    pub fn new(plan: &'a Plan, server_cpu: Option<ServerCpu<'a>>) -> Shared<'a> {
        let keys = match &plan.requests {
            Requests::Drawn(workload) => workload.keys,
            Requests::Recorded(_) => 0,
        };
        Shared {
            plan,
            window: Window::closed(),
            glances: (0..plan.all_threads()).map(|_| Glance::default()).collect(),
            ready: AtomicUsize::new(0),
            inserted: Arc::new(AtomicU64::new(keys)),
            start: Instant::now(),
            server_cpu,
        }
    }

    /// When the measured time began, on the machine's clock.
    pub fn begun(&self) -> SystemTime {
        let since = self.start.elapsed();
        SystemTime::now() - since.saturating_sub(Duration::from_nanos(self.window.from()))
    }
}

/// A thread's share of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Its index among the threads that send the same kind of requests.
    index: usize,
    /// The number of these threads.
    threads: usize,
    lanes: Lanes,
    connections: usize,
}

impl Share {
    /// The share of the thread with this index among all threads. Those of large values come last.
    pub(super) fn of(plan: &Plan, part: usize) -> Share {
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

/// Whether a trace is sent at a rate. Each thread then draws all its requests and arrivals, and
/// sends those of its own keys: threads have different numbers of requests, and a share of the rate
/// would be too much for one and too little for another.
fn is_recorded_at_rate(plan: &Plan) -> bool {
    let is_at_rate = match plan.pace {
        Pace::Closed { .. } => false,
        Pace::Open { arrivals, .. } => !matches!(arrivals, Arrivals::Recorded(_)),
    };
    is_at_rate && matches!(plan.requests, Requests::Recorded(_))
}

impl Share {
    /// Threads of different kinds send different keys, so that equal versions do no harm.
    fn seed(&self, plan: &Plan) -> u64 {
        match self.lanes {
            Lanes::Large => !plan.seed,
            _ => plan.seed,
        }
    }

    /// Where the thread's requests come from.
    pub(super) fn source(&self, shared: &Shared<'_>) -> Result<Box<dyn Source>> {
        let (part, parts) = (self.index as u64, self.threads as u64);
        Ok(match &shared.plan.requests {
            Requests::Drawn(workload) => {
                let seed = self.seed(shared.plan);
                Box::new(Drawn::new(workload, seed, part, parts, &shared.inserted))
            }
            Requests::Recorded(trace) if is_recorded_at_rate(shared.plan) => {
                Box::new(Replay::new(trace, 0, 1)?)
            }
            Requests::Recorded(trace) => Box::new(Replay::new(trace, part, parts)?),
        })
    }

    /// The thread's arrivals in an open loop.
    pub(super) fn schedule(
        &self,
        plan: &Plan,
        arrivals: Arrivals,
        burst: u32,
        idle: Idle,
    ) -> open::Schedule {
        let (part, parts) = (self.index as u64, self.threads as u64);
        let whole = open::Schedule {
            arrivals,
            burst,
            gather: plan.gather,
            idle,
            lanes: self.lanes,
            keys: KeyPart { part, parts },
            offset_ns: 0,
            seed: plan.seed,
        };
        if is_recorded_at_rate(plan) {
            return whole;
        }
        open::Schedule {
            arrivals: arrivals.part(self.threads),
            keys: KeyPart::ALL,
            offset_ns: match arrivals {
                Arrivals::Fixed(rate) => (part as f64 * 1e9 / rate) as u64,
                _ => 0,
            },
            seed: self.seed(plan) ^ part << 32,
            ..whole
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
            pace, reply_max, ..
        } = *shared.plan;
        let share = Share::of(shared.plan, part);
        let mut source = share.source(shared)?;
        let mut recorder = Recorder::new(
            &shared.window,
            &shared.glances[part],
            shared.server_cpu,
            intervals,
        );
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
                let schedule = share.schedule(shared.plan, arrivals, burst, idle);
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
    let shared = Shared::new(plan, server_cpu);
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

/// From the first start to the last end.
fn hull<T: Ord + Default>(ranges: impl Iterator<Item = Range<T>>) -> Range<T> {
    let both = |a: Range<T>, b: Range<T>| a.start.min(b.start)..a.end.max(b.end);
    ranges.reduce(both).unwrap_or_default()
}

fn outcome(spans: &[Span], all: Interval, series: Vec<Second>, warming: &Warming<'_>) -> Outcome {
    let ns = hull(spans.iter().map(|span| span.ns.clone()));
    let server_cpu = hull(spans.iter().map(|span| span.server_cpu.clone()));
    let mut outcome = Outcome {
        tally: Default::default(),
        seconds: (ns.end - ns.start) as f64 / 1e9,
        reads: all.reads,
        writes: all.writes,
        sizes: all.sizes,
        lateness: histogram(),
        unread: histogram(),
        in_time: spans.iter().map(|span| span.in_time).sum(),
        lost: spans.iter().map(|span| span.lost).sum(),
        client_cpu_s: spans.iter().map(|span| span.client_cpu_s).collect(),
        client_s: spans.iter().map(Span::seconds).collect(),
        server_cpu_s: server_cpu
            .end
            .saturating_sub(server_cpu.start)
            .as_secs_f64(),
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

    #[test]
    fn threads_that_end_at_different_times_have_the_rate_of_all_their_requests() {
        const SECOND_NS: u64 = 1_000_000_000;
        let plan = Plan::new(
            Requests::Drawn(Workload::default()),
            Pace::Closed { in_flight: 1 },
        );
        let span = |ns, hits, cpu_ms: Range<u64>| Span {
            ns,
            tally: crate::load::Tally {
                hits,
                ..Default::default()
            },
            client_cpu_s: 0.5,
            server_cpu: Duration::from_millis(cpu_ms.start)..Duration::from_millis(cpu_ms.end),
            lateness: histogram(),
            unread: histogram(),
            in_time: 0,
            lost: 0,
            saturated: false,
            client_saturated: false,
        };
        let spans = [
            span(0..SECOND_NS, 100, 10..110),
            span(SECOND_NS / 2..4 * SECOND_NS, 300, 60..410),
        ];
        let shared = Shared::new(&plan, None);
        let warming = Warming::new(&shared);
        let outcome = outcome(&spans, Interval::new(0), Vec::new(), &warming);
        assert_eq!(outcome.seconds, 4.0);
        assert_eq!(outcome.operations_per_s(), 100.0);
        assert_eq!(outcome.client_busy(), 0.5);
        assert_eq!(outcome.server_cpu_s, 0.4);
    }

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
