//! How fast items are copied.

use std::time::Duration;

/// Rates that are not exceeded over more than a batch; 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub items_per_s: u64,
    pub bytes_per_s: u64,
}

/// When the next batch may begin. A pause does not allow a burst afterwards.
#[derive(Debug)]
pub struct Pace {
    rates: Rates,
    /// Counted from the start of the copy.
    next: Duration,
}

impl Pace {
    /// The first batch may begin at once.
    pub fn new(rates: Rates) -> Pace {
        Pace {
            rates,
            next: Duration::ZERO,
        }
    }

    /// A batch was begun at a time since the start of the copy, and had this many items and bytes.
    pub fn note(&mut self, begun: Duration, items: u64, bytes: u64) {
        let Rates {
            items_per_s,
            bytes_per_s,
        } = self.rates;
        let takes = |count: u64, rate: u64| match rate {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(count as f64 / rate as f64),
        };
        let takes = takes(items, items_per_s).max(takes(bytes, bytes_per_s));
        self.next = self.next.max(begun) + takes;
    }

    /// How long to wait from this time on.
    pub fn wait(&self, now: Duration) -> Duration {
        self.next.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(items_per_s: u64, bytes_per_s: u64) -> Pace {
        Pace::new(Rates {
            items_per_s,
            bytes_per_s,
        })
    }

    #[test]
    fn the_slower_rate_counts() {
        let mut pace = pace(10, 1000);
        pace.note(Duration::ZERO, 10, 100);
        assert_eq!(pace.wait(Duration::ZERO), SECOND);
        pace.note(SECOND, 1, 2000);
        assert_eq!(pace.wait(SECOND), 2 * SECOND);
        assert_eq!(pace.wait(5 * SECOND), Duration::ZERO);
        // The time that was not used is lost.
        pace.note(10 * SECOND, 10, 0);
        assert_eq!(pace.wait(10 * SECOND), SECOND);
    }

    #[test]
    fn without_limits_nothing_waits() {
        let mut pace = pace(0, 0);
        pace.note(Duration::ZERO, u64::MAX, u64::MAX);
        assert_eq!(pace.wait(Duration::ZERO), Duration::ZERO);
    }
}
