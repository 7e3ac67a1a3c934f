//! What tells a worker the time: once per turn, and again after every
//! [`CLOCK_REQUESTS`](glimmer_base::limits::CLOCK_REQUESTS) requests.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use glimmer_base::Moment;
use glimmer_hotset::Timeline;
use rustix::time::{ClockId, clock_gettime};

/// Tells the workers of a node the time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present moment. It never goes back.
    fn now(&self) -> Moment;

    /// The present moment as watchers are told it, in microseconds since 1970.
    fn unix_us(&self) -> u128;

    /// Nanoseconds since some moment, for differences. It never goes back.
    fn ns(&self) -> u64 {
        self.now().ms * 1_000_000
    }

    /// CPU time that a worker has used so far, in nanoseconds; `None` if that is not known.
    /// `thread` is the kernel's number of its thread, or 0 if it has no thread of its own.
    fn cpu_ns(&self, worker: usize, thread: u32) -> Option<u64> {
        let _ = (worker, thread);
        None
    }

    /// Where this clock lies on CLOCK_MONOTONIC.
    fn timeline(&self) -> Timeline {
        Timeline::default()
    }
}

/// The machine's clock. It counts milliseconds since the server's epoch and is monotonic: setting
/// the wall clock moves no expiry. It is CLOCK_MONOTONIC and not the coarse twin, which costs less
/// and shows the last tick of the kernel, up to 10 ms ago: lifetimes have milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// The monotonic clock at the server's epoch, in milliseconds; the epoch may lie before the
    /// machine's start.
    epoch_monotonic_ms: i64,
    epoch_unix_ms: u64,
}

impl SystemClock {
    /// A clock whose epoch lies [`Moment::EPOCH_LEAD_MS`] before now.
    pub fn start() -> SystemClock {
        SystemClock {
            epoch_monotonic_ms: monotonic_ms() - Moment::EPOCH_LEAD_MS as i64,
            epoch_unix_ms: (unix_us() as u64 / 1000).saturating_sub(Moment::EPOCH_LEAD_MS),
        }
    }
}

impl SystemClock {
    /// A clock that now shows `ms` milliseconds since an epoch, which was at this wall-clock time.
    pub fn at(epoch_unix_ms: u64, ms: u64) -> SystemClock {
        SystemClock {
            epoch_monotonic_ms: monotonic_ms() - ms as i64,
            epoch_unix_ms,
        }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Moment {
        Moment {
            ms: (monotonic_ms() - self.epoch_monotonic_ms) as u64,
            epoch_unix_ms: self.epoch_unix_ms,
        }
    }

    fn unix_us(&self) -> u128 {
        unix_us()
    }

    fn ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn cpu_ns(&self, _: usize, thread: u32) -> Option<u64> {
        match thread {
            0 => None,
            thread => glimmer_transport::thread_cpu_ns(thread),
        }
    }

    /// A worker's time is CLOCK_MONOTONIC as it was when the worker read it, so it is never ahead
    /// of it.
    fn timeline(&self) -> Timeline {
        Timeline::with_epoch(self.epoch_monotonic_ms)
    }
}

fn unix_us() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_micros()
}

fn monotonic_ms() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
