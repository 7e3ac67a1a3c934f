//! Until when an item may be answered.

use crate::layout::NEVER_NS;
use glimmer_base::{Expiry, Moment};

const NS_PER_MS: u64 = 1_000_000;

/// Two clocks, read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CLOCK_MONOTONIC in nanoseconds. It is read first.
    pub monotonic_ns: u64,
    /// The server's time. It is read afterwards.
    pub moment: Moment,
}

/// The deadline of an item, in nanoseconds of CLOCK_MONOTONIC. The accelerator expires first and
/// never later: the monotonic clock was read before the server's, and the server's time leaves out
/// what has passed of its millisecond.
pub fn deadline_ns(expiry: Expiry, clocks: Clocks) -> u64 {
    if expiry == Expiry::NEVER {
        return NEVER_NS;
    }
    // A millisecond less, because up to that much of the current one has passed.
    let left_ms = expiry.ms().saturating_sub(clocks.moment.ms + 1);
    let left_ns = left_ms.saturating_mul(NS_PER_MS);
    clocks
        .monotonic_ns
        .saturating_add(left_ns)
        .min(NEVER_NS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At no time does the accelerator answer what the server holds for expired, whatever part of a
    /// millisecond has passed.
    #[test]
    fn the_accelerator_expires_first() {
        const EPOCH_NS: u64 = 77_123_456;
        for true_ns in (5_000_000_000u64..5_003_000_000).step_by(123_457) {
            let moment = Moment {
                ms: true_ns / NS_PER_MS,
                epoch_unix_ms: 0,
            };
            let clocks = Clocks {
                monotonic_ns: EPOCH_NS + true_ns - 1000,
                moment,
            };
            for expiry_ms in 4_999..5_010 {
                let deadline_ns = deadline_ns(Expiry::at_ms(expiry_ms), clocks);
                assert!(deadline_ns <= (EPOCH_NS + expiry_ms * NS_PER_MS).max(clocks.monotonic_ns));
                let lost_ns = (EPOCH_NS + expiry_ms * NS_PER_MS).saturating_sub(deadline_ns);
                assert!(lost_ns < 2 * NS_PER_MS || expiry_ms <= moment.ms);
            }
        }
    }

    #[test]
    fn never_is_never() {
        let clocks = Clocks {
            monotonic_ns: 9,
            moment: Moment {
                ms: 2000,
                epoch_unix_ms: 0,
            },
        };
        assert_eq!(deadline_ns(Expiry::NEVER, clocks), NEVER_NS);
        assert_eq!(deadline_ns(Expiry::AT_ONCE, clocks), 9);
    }
}
