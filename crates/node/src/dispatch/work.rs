//! The workers' CPU time, and the part of it that large requests take.

use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU32, AtomicU64};
use glimmer_dispatch::Busy;

use crate::clock::Clock;

/// The time of one worker, as it reports it. Only the worker writes.
#[derive(Debug)]
pub struct Work {
    /// The kernel's number of its thread; 0 if it has no thread of its own.
    thread: AtomicU32,
    /// Time in which it executed large requests, in nanoseconds.
    large_ns: AtomicU64,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            thread: AtomicU32::new(0),
            large_ns: AtomicU64::new(0),
        }
    }
}

impl Work {
    /// The worker runs on this thread.
    pub fn note_thread(&self, thread: u32) {
        self.thread.store(thread, Relaxed);
    }

    /// CPU time that it has used, in nanoseconds; `None` if the clock does not know.
    pub fn cpu_ns(&self, number: usize, clock: &dyn Clock) -> Option<u64> {
        clock.cpu_ns(number, self.thread.load(Relaxed))
    }

    /// It has executed large requests for this time.
    pub fn add_large(&self, ns: u64) {
        let before_ns = self.large_ns.load(Relaxed);
        self.large_ns.store(before_ns + ns, Relaxed);
    }
}

/// The time that all workers together have used up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worked {
    at_ms: u64,
    /// On their CPUs.
    cpu_ns: u64,
    /// With large requests.
    large_ns: u64,
}

impl Worked {
    /// Up to now; `None` if the clock does not know the CPU time.
    pub fn now<'w>(
        workers: impl Iterator<Item = &'w Work>,
        now_ms: u64,
        clock: &dyn Clock,
    ) -> Option<Worked> {
        let mut worked = Worked {
            at_ms: now_ms,
            cpu_ns: 0,
            large_ns: 0,
        };
        for (number, work) in workers.enumerate() {
            worked.cpu_ns += work.cpu_ns(number, clock)?;
            worked.large_ns += work.large_ns.load(Relaxed);
        }
        Some(worked)
    }

    /// How busy the workers were since an earlier moment.
    pub fn since(self, before: Worked) -> Option<Busy> {
        let ns = self.at_ms.saturating_sub(before.at_ms) * 1_000_000;
        let cores = |ns_then: u64, ns_now: u64| ns_now.saturating_sub(ns_then) as f64 / ns as f64;
        let large = cores(before.large_ns, self.large_ns);
        let all = cores(before.cpu_ns, self.cpu_ns);
        (ns > 0).then_some(Busy {
            small: (all - large).max(0.0),
            large,
        })
    }
}
