//! A token bucket: how much of something a user or an address may have per second.

use glimmer_base::limits::THROTTLE_BURST_MS;
use glimmer_base::sync::{AtomicU64, Ordering};

const NS_PER_S: u128 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// A bucket that all workers take from. It holds what flows in within [`THROTTLE_BURST_MS`].
///
/// Who takes pays afterwards: the bucket may be overdrawn by one turn of the connections that were
/// served together, and is empty until that has flowed in again. It is kept as one number, the
/// moment at which it holds nothing and owes nothing, so that one exchange takes from it.
///
/// Everything is relaxed: each operation is about one of the numbers, and a worker that sees an
/// earlier one serves a connection a turn too early.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// How much flows in per second; 0: the bucket is bottomless.
    per_s: AtomicU64,
    /// When it is empty and owes nothing, in nanoseconds since the epoch.
    even_ns: AtomicU64,
}

impl Bucket {
    /// Another amount per second. What is owed at the old rate is forgiven.
    pub fn set(&self, per_s: u64) {
        if self.per_s.swap(per_s, Ordering::Relaxed) != per_s {
            self.even_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it is limited at all.
    pub fn is_limited(&self) -> bool {
        self.per_s.load(Ordering::Relaxed) > 0
    }

    /// Takes an amount, whether it is there or not.
    pub fn take(&self, amount: u64, now_ms: u64) {
        let per_s = self.per_s.load(Ordering::Relaxed);
        if per_s == 0 || amount == 0 {
            return;
        }
        let cost_ns = u128::from(amount) * NS_PER_S / u128::from(per_s);
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
        let full_ns = (now_ms.saturating_sub(THROTTLE_BURST_MS)).saturating_mul(NS_PER_MS);
        let paid = |even_ns: u64| Some(even_ns.max(full_ns).saturating_add(cost_ns));
        let _ = (self.even_ns).fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid);
    }

    /// From when on something may be taken, in milliseconds since the epoch.
    pub fn ready_ms(&self) -> u64 {
        match self.is_limited() {
            true => self.even_ns.load(Ordering::Relaxed).div_ceil(NS_PER_MS),
            false => 0,
        }
    }

    /// How much is in it; nothing if it is bottomless.
    pub fn left(&self, now_ms: u64) -> Option<u64> {
        let per_s = self.per_s.load(Ordering::Relaxed);
        if per_s == 0 {
            return None;
        }
        let even_ns = self.even_ns.load(Ordering::Relaxed);
        let for_ns = now_ms.saturating_mul(NS_PER_MS).saturating_sub(even_ns);
        let for_ns = for_ns.min(THROTTLE_BURST_MS * NS_PER_MS);
        let left = u128::from(for_ns) * u128::from(per_s) / NS_PER_S;
        Some(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_over_a_long_time_is_the_rate_and_one_burst() {
        for (per_s, each) in [
            (1, 1),
            (7, 3),
            (1_000, 1),
            (1_000, 20),
            (5_000_000_000, 123_456),
        ] {
            let bucket = Bucket::default();
            bucket.set(per_s);
            let (mut taken, seconds) = (0, 40);
            for now_ms in 1_000..1_000 + seconds * 1_000 {
                while now_ms >= bucket.ready_ms() {
                    bucket.take(each, now_ms);
                    taken += each;
                }
            }
            let most = per_s * seconds + per_s / 10 + 1 + each;
            assert!(taken <= most, "{taken} of {per_s} per second");
            assert!(taken + 2 * each >= per_s * seconds, "{taken} of {per_s}");
        }
    }

    #[test]
    fn a_bottomless_one_is_always_ready() {
        let bucket = Bucket::default();
        bucket.take(u64::MAX, 5);
        assert_eq!((bucket.ready_ms(), bucket.left(5)), (0, None));
        bucket.set(10);
        bucket.take(2, 1_000);
        assert_eq!(bucket.ready_ms(), 1_100, "a tenth of a second was there");
        assert_eq!(bucket.left(1_150), Some(0));
        assert_eq!(bucket.left(1_200), Some(1));
        assert_eq!(bucket.left(9_000), Some(1), "it holds no more");
        bucket.take(u64::MAX, 2_000);
        bucket.set(20);
        assert_eq!(bucket.ready_ms(), 0, "what was owed is forgiven");
    }
}
