//! How long an item stays, in protocols that do not have memcached's expiry times.

use glimmer_base::{Expiry, Moment};

/// How long an item stays. Who executes the request knows the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is removed or evicted.
    Unlimited,
    /// As long as the item that is there was to stay.
    Kept,
    /// For this many milliseconds from now; none of them left means that it goes at once.
    Ms(u64),
    /// Until this moment, in milliseconds since 1970.
    UntilUnixMs(u64),
}

impl Lifetime {
    /// When an item expires that has this lifetime as of now; `kept` is when it expired before.
    pub fn expiry(self, now: Moment, kept: Expiry) -> Expiry {
        let at_ms = match self {
            Lifetime::Unlimited => return Expiry::NEVER,
            Lifetime::Kept => return kept,
            Lifetime::Ms(0) => return Expiry::AT_ONCE,
            Lifetime::Ms(ms) => now.ms.saturating_add(ms),
            Lifetime::UntilUnixMs(ms) => ms.saturating_sub(now.epoch_unix_ms),
        };
        Expiry::at_ms(at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_end() {
        let now = Moment {
            ms: 10_000,
            epoch_unix_ms: 1_700_000_000_000,
        };
        let kept = Expiry::at_ms(77);
        let of = |lifetime: Lifetime| lifetime.expiry(now, kept);
        assert_eq!(of(Lifetime::Unlimited), Expiry::NEVER);
        assert_eq!(of(Lifetime::Kept), kept);
        assert_eq!(of(Lifetime::Ms(5)).ms(), 10_005);
        assert_eq!(
            of(Lifetime::Ms(u64::MAX)),
            Expiry::NEVER,
            "34 years is for ever"
        );
        assert_eq!(of(Lifetime::UntilUnixMs(1_700_000_010_001)).ms(), 10_001);
        for past in [
            Lifetime::Ms(0),
            Lifetime::UntilUnixMs(1),
            Lifetime::UntilUnixMs(0),
        ] {
            assert!(of(past).is_due(now), "{past:?}");
        }
    }
}
