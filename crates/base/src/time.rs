//! Time as the store and the protocols see it: a number passed as an argument. This code never
//! reads a clock.

use crate::sync::weakened;

/// The time at which a batch of requests is executed. The owner of the clock reads it once per
/// burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the server's epoch, which lies [`Moment::EPOCH_LEAD_MS`] before its
    /// start. Never goes backwards.
    pub ms: u64,
    /// Wall-clock time of the server's epoch, in milliseconds since 1970.
    pub epoch_unix_ms: u64,
}

impl Moment {
    /// How far the epoch lies before the start. It keeps every moment above zero and leaves a
    /// number for "already expired".
    pub const EPOCH_LEAD_MS: u64 = 2_000;
}

/// When an item expires: milliseconds since the server's epoch, or never.
///
/// Forty bits hold 34 years. Later times count as never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(u64);

impl Expiry {
    /// The item stays until it is evicted or deleted.
    pub const NEVER: Expiry = Expiry(0);
    /// The item is stored but invisible at once, as in memcached with a negative expiry time.
    pub const AT_ONCE: Expiry = Expiry(1);
    /// Bits of an item that hold its expiry.
    pub const BITS: u32 = 40;

    /// An expiry `ms` milliseconds after the epoch, or never if it does not fit.
    pub fn at_ms(ms: u64) -> Expiry {
        if ms >> Self::BITS == 0 {
            Expiry(ms.max(1))
        } else {
            Expiry::NEVER
        }
    }

    /// Milliseconds after the epoch; zero means never.
    pub fn ms(self) -> u64 {
        self.0
    }

    /// Whether an item with this expiry has expired at `now`.
    #[inline]
    pub fn is_due(self, now: Moment) -> bool {
        let late_ms = if weakened("expiry_one_second_late") {
            1000
        } else {
            0
        };
        self.0 != 0 && self.0 + late_ms <= now.ms
    }

    /// Converts a memcached expiry time: 0 means never, negative values mean at once, up to 30 days
    /// counts seconds from now, and larger values are seconds since 1970 (protocol.txt, "Expiration
    /// times").
    pub fn from_memcached(exptime: i64, now: Moment) -> Expiry {
        Self::from_units::<1000>(exptime, now)
    }

    /// Converts an expiry time by the same rules with milliseconds in the place of seconds: up to
    /// 2,592,000,000 they count from now, and more of them count from 1970.
    pub fn from_memcached_ms(exptime: i64, now: Moment) -> Expiry {
        Self::from_units::<1>(exptime, now)
    }

    /// The expiry time of [`from_memcached`](Self::from_memcached) that means this many
    /// milliseconds from now; zero means never. It is a negative number, far below those of 32
    /// bits that clients send.
    pub const fn exptime_of_ms(ms: u32) -> i64 {
        match ms {
            0 => 0,
            ms => i64::MIN + ms as i64,
        }
    }

    #[inline(always)]
    fn from_units<const UNIT_MS: u64>(exptime: i64, now: Moment) -> Expiry {
        const RELATIVE_MAX_MS: u64 = 60 * 60 * 24 * 30 * 1000;
        if exptime <= 0 {
            return match exptime {
                0 => Expiry::NEVER,
                _ if UNIT_MS == 1000 && exptime <= i64::MIN + u32::MAX as i64 => {
                    Expiry::at_ms(now.ms + exptime.wrapping_sub(i64::MIN) as u64)
                }
                _ => Expiry::AT_ONCE,
            };
        }
        if exptime as u64 <= RELATIVE_MAX_MS / UNIT_MS {
            return Expiry::at_ms(now.ms + exptime as u64 * UNIT_MS);
        }
        let unix_ms = (exptime as u64).saturating_mul(UNIT_MS);
        if unix_ms <= now.epoch_unix_ms {
            Expiry::AT_ONCE
        } else {
            Expiry::at_ms(unix_ms - now.epoch_unix_ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment {
        ms: 5_000,
        epoch_unix_ms: 1_700_000_000_000,
    };

    #[test]
    fn memcached_expiry_times() {
        assert_eq!(Expiry::from_memcached(0, NOW), Expiry::NEVER);
        assert_eq!(Expiry::from_memcached(-1, NOW), Expiry::AT_ONCE);
        assert_eq!(Expiry::from_memcached(10, NOW).ms(), 15_000);
        assert_eq!(Expiry::from_memcached(2_592_000, NOW).ms(), 2_592_005_000);
        assert_eq!(Expiry::from_memcached(1_700_000_009, NOW).ms(), 9_000);
        assert_eq!(Expiry::from_memcached(1_600_000_000, NOW), Expiry::AT_ONCE);
        assert_eq!(Expiry::from_memcached(i64::MAX, NOW), Expiry::NEVER);
    }

    #[test]
    fn the_same_in_milliseconds() {
        let of = |exptime| Expiry::from_memcached_ms(exptime, NOW);
        assert_eq!(of(0), Expiry::NEVER);
        assert_eq!(of(-1), Expiry::AT_ONCE);
        assert_eq!(of(10).ms(), 5_010);
        assert_eq!(of(2_592_000_000), Expiry::from_memcached(2_592_000, NOW));
        assert_eq!(of(1_700_000_009_123).ms(), 9_123);
        assert_eq!(of(2_592_000_001), Expiry::AT_ONCE, "a time in 1970");
        assert_eq!(of(i64::MAX), Expiry::NEVER);
        assert_eq!(of(i64::MIN + 7), Expiry::AT_ONCE);
        let of = |ms| Expiry::from_memcached(Expiry::exptime_of_ms(ms), NOW);
        assert_eq!(of(0), Expiry::NEVER);
        assert_eq!(of(7).ms(), 5_007);
        assert_eq!(of(u32::MAX).ms(), 5_000 + u64::from(u32::MAX));
        assert_eq!(
            Expiry::from_memcached(i32::MIN.into(), NOW),
            Expiry::AT_ONCE
        );
    }

    #[test]
    fn an_item_is_visible_until_its_expiry() {
        let expiry = Expiry::at_ms(6_000);
        assert!(!expiry.is_due(Moment { ms: 5_999, ..NOW }));
        assert!(expiry.is_due(Moment { ms: 6_000, ..NOW }));
        assert!(!Expiry::NEVER.is_due(Moment {
            ms: u64::MAX,
            ..NOW
        }));
        assert!(Expiry::AT_ONCE.is_due(NOW));
    }
}
