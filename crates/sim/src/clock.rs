//! Virtual time.

use glimmer_base::Moment;
use glimmer_node::Clock;
use glimmer_transport::packet::Microseconds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// When the server's epoch is said to be, in milliseconds since 1970.
const EPOCH_UNIX_MS: u64 = 1_700_000_000_000;

/// How old the time may be that a worker goes by, in microseconds: it has read the clock, and then
/// others had the processor.
pub const LATE_US_MAX: u64 = 3_000;

/// A clock that the simulator moves. It never goes back; a step is a pause of the whole machine.
#[derive(Clone, Debug, Default)]
pub struct SimClock {
    now: Microseconds,
    /// How old the time is that the worker goes by whose turn it is.
    late_us: Arc<AtomicU64>,
}

impl SimClock {
    /// Microseconds since the beginning.
    pub fn us(&self) -> u64 {
        self.now.now()
    }

    /// Lets time pass.
    pub fn advance(&self, us: u64) {
        self.now.set(self.us() + us);
    }

    /// The same time for devices with delays.
    pub fn microseconds(&self) -> Microseconds {
        self.now.clone()
    }

    /// What a worker reads from now on is this old.
    pub fn set_late(&self, us: u64) {
        self.late_us.store(us, Relaxed);
    }

    /// For the workers.
    pub fn shared(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + (self.us() - self.late_us.load(Relaxed)) / 1000,
            epoch_unix_ms: EPOCH_UNIX_MS,
        }
    }

    fn unix_us(&self) -> u128 {
        u128::from(EPOCH_UNIX_MS * 1000 + Moment::EPOCH_LEAD_MS * 1000 + self.us())
    }

    fn ns(&self) -> u64 {
        self.us() * 1000
    }
}
