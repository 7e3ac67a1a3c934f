//! The server's clock, read once per turn of a worker's loop.

use std::time::{SystemTime, UNIX_EPOCH};

use glimmer_base::Moment;
use rustix::time::{ClockId, clock_gettime};

/// Counts milliseconds since the server's epoch. Coarse (a few milliseconds) and monotonic: setting
/// the wall clock moves no expiry.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The monotonic clock at the server's epoch, in milliseconds; the epoch may lie before the
    /// machine's start.
    epoch_monotonic_ms: i64,
    epoch_unix_ms: u64,
}

impl Clock {
    /// A clock whose epoch lies [`Moment::EPOCH_LEAD_MS`] before now.
    pub fn start() -> Clock {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Clock {
            epoch_monotonic_ms: monotonic_ms() - Moment::EPOCH_LEAD_MS as i64,
            epoch_unix_ms: (unix.as_millis() as u64).saturating_sub(Moment::EPOCH_LEAD_MS),
        }
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> Moment {
        Moment {
            ms: (monotonic_ms() - self.epoch_monotonic_ms) as u64,
            epoch_unix_ms: self.epoch_unix_ms,
        }
    }
}

fn monotonic_ms() -> i64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
