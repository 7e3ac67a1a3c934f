//! Virtual time.

use glimmer_base::Moment;
use glimmer_node::Clock;
use glimmer_transport::packet::Microseconds;
use std::sync::Arc;

/// When the server's epoch is said to be, in milliseconds since 1970.
const EPOCH_UNIX_MS: u64 = 1_700_000_000_000;

/// A clock that the simulator moves. It never goes back; a step is a pause of the whole machine.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Microseconds);

impl SimClock {
    /// Microseconds since the beginning.
    pub fn us(&self) -> u64 {
        self.0.now()
    }

    /// Lets time pass.
    pub fn advance(&self, us: u64) {
        self.0.set(self.us() + us);
    }

    /// The same time for devices with delays.
    pub fn microseconds(&self) -> Microseconds {
        self.0.clone()
    }

    /// For the workers.
    pub fn shared(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.us() / 1000,
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
