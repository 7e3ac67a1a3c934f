//! Deadlines: an item's expiry as a time of CLOCK_MONOTONIC, from which on a body does not answer
//! it.

use crate::layout::NEVER_NS;
use glimmer_base::Expiry;

const NS_PER_MS: u64 = 1_000_000;

/// Converts the server's time to CLOCK_MONOTONIC, the clock of the bodies.
///
/// The server's clock shows a millisecond no earlier than CLOCK_MONOTONIC reaches
/// [`ns`](Timeline::ns) of it, and often some milliseconds later. So the accelerator expires first,
/// and never later than the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// CLOCK_MONOTONIC at the server's epoch in milliseconds. The epoch may lie before the
    /// machine's start.
    epoch_ms: i64,
}

impl Timeline {
    /// The server's epoch is at this time of CLOCK_MONOTONIC, in milliseconds.
    pub fn with_epoch(epoch_ms: i64) -> Timeline {
        Timeline { epoch_ms }
    }

    /// The time of CLOCK_MONOTONIC in nanoseconds before which the server's clock does not show
    /// this millisecond.
    #[inline]
    pub fn ns(self, ms: u64) -> u64 {
        let at_ms = (ms as i64).saturating_add(self.epoch_ms).max(0) as u64;
        at_ms.saturating_mul(NS_PER_MS).min(NEVER_NS - 1)
    }

    /// The deadline of an item.
    pub fn deadline_ns(self, expiry: Expiry) -> u64 {
        match expiry {
            Expiry::NEVER => NEVER_NS,
            expiry => self.ns(expiry.ms()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Moment;

    /// At no time does the accelerator answer what the server holds for expired, however late the
    /// server's clock is.
    #[test]
    fn the_accelerator_expires_first() {
        for epoch_ms in [-5_000i64, 0, 77_123] {
            let timeline = Timeline::with_epoch(epoch_ms);
            for monotonic_ns in (90_000_000_000u64..90_003_000_000).step_by(123_457) {
                for late_ns in [0, 1, 3_999_999] {
                    let shown_ms = ((monotonic_ns - late_ns) / NS_PER_MS) as i64 - epoch_ms;
                    let now = Moment {
                        ms: shown_ms as u64,
                        epoch_unix_ms: 0,
                    };
                    for expiry_ms in now.ms - 5..now.ms + 10 {
                        let expiry = Expiry::at_ms(expiry_ms);
                        let has_expired = monotonic_ns >= timeline.deadline_ns(expiry);
                        assert!(has_expired || !expiry.is_due(now));
                        let lost_ns = late_ns + NS_PER_MS;
                        let expires_soon = expiry_ms * NS_PER_MS < now.ms * NS_PER_MS + lost_ns;
                        assert!(!has_expired || expires_soon);
                    }
                }
            }
        }
    }

    #[test]
    fn never_is_never_and_before_the_start_is_at_once() {
        let timeline = Timeline::with_epoch(-2_000);
        assert_eq!(timeline.deadline_ns(Expiry::NEVER), NEVER_NS);
        assert_eq!(timeline.deadline_ns(Expiry::AT_ONCE), 0);
        assert_eq!(timeline.ns(2_003), 3 * NS_PER_MS);
        assert_eq!(timeline.ns(u64::MAX >> 1), NEVER_NS - 1);
    }
}
