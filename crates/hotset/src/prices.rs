//! What a change costs whose item is in the accelerator, and what a hit saves: both as they are
//! measured in the running server, as means over many measurements.
//!
//! A change costs the retract and the refill of a slot, and a fill costs about the same. A hit
//! saves a request that a worker would have executed. With a packet program, a change costs a tenth
//! of what a hit saves. On a circuit behind a link it costs many operations there and back.

use glimmer_base::limits::{HOT_CHANGES_PER_HIT_MAX, HOT_HITS_PER_CHANGE_MAX};

/// What was assumed before anything was measured: a packet program beside one worker.
const CHANGE_NS: u64 = 600;
const HIT_NS: u64 = 4000;

/// A measurement counts for one part of this many of the mean.
const PARTS: f64 = 8.0;
/// A measurement counts for at most this many times the mean: the machine may have done something
/// else meanwhile.
const OUTLIER: f64 = 4.0;

/// See the module's text. Neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    change_ns: u64,
    hit_ns: u64,
}

impl Default for Prices {
    fn default() -> Prices {
        Prices::new(CHANGE_NS, HIT_NS)
    }
}

impl Prices {
    /// Prices in nanoseconds of a worker's time. A change is never held to be worth more than
    /// [`HOT_HITS_PER_CHANGE_MAX`] hits, and a hit no more than [`HOT_CHANGES_PER_HIT_MAX`]
    /// changes: one that would be was measured while the machine did something else.
    pub fn new(change_ns: u64, hit_ns: u64) -> Prices {
        let hit_ns = hit_ns.clamp(HOT_CHANGES_PER_HIT_MAX, u64::MAX >> 8);
        let [least, most] = [
            hit_ns / HOT_CHANGES_PER_HIT_MAX,
            hit_ns * HOT_HITS_PER_CHANGE_MAX,
        ];
        Prices {
            change_ns: change_ns.clamp(least, most),
            hit_ns,
        }
    }

    /// What a change costs, and what a fill costs.
    pub fn change_ns(self) -> u64 {
        self.change_ns
    }

    /// What a hit saves.
    pub fn hit_ns(self) -> u64 {
        self.hit_ns
    }
}

/// The means of what was measured.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    change_ns: f64,
    hit_ns: f64,
}

impl Default for Meter {
    fn default() -> Meter {
        let prices = Prices::default();
        Meter {
            change_ns: prices.change_ns as f64,
            hit_ns: prices.hit_ns as f64,
        }
    }
}

impl Meter {
    /// A change took this long.
    pub fn change(&mut self, ns: u64) {
        self.change_ns = mean(self.change_ns, ns as f64);
    }

    /// A worker used this much CPU time for requests that it executed.
    pub fn requests(&mut self, cpu_ns: u64, requests: u64) {
        if requests > 0 {
            self.hit_ns = mean(self.hit_ns, cpu_ns as f64 / requests as f64);
        }
    }

    /// The prices as far as they are known.
    pub fn prices(&self) -> Prices {
        Prices::new(self.change_ns as u64, self.hit_ns as u64)
    }
}

/// A clock that stands still measures nothing.
fn mean(mean: f64, measured: f64) -> f64 {
    match measured > 0.0 {
        true => mean + (measured.min(mean * OUTLIER) - mean) / PARTS,
        false => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_follow_what_is_measured() {
        let mut meter = Meter::default();
        for _ in 0..100 {
            meter.change(2000);
            meter.requests(30_000_000, 10_000);
        }
        let prices = meter.prices();
        assert!((1990..=2000).contains(&prices.change_ns()), "{prices:?}");
        assert!((3000..=3010).contains(&prices.hit_ns()), "{prices:?}");
    }

    #[test]
    fn a_pause_of_the_machine_says_little_and_no_time_says_nothing() {
        let mut meter = Meter::default();
        meter.change(1_000_000_000);
        assert!(meter.prices().change_ns() <= CHANGE_NS * 2);
        let before = meter.prices();
        meter.change(0);
        meter.requests(0, 1000);
        meter.requests(1000, 0);
        assert_eq!(meter.prices(), before);
    }

    #[test]
    fn a_ratio_that_cannot_be_is_bounded() {
        let prices = Prices::new(u64::MAX, 1000);
        assert_eq!(prices.change_ns(), 1000 * HOT_HITS_PER_CHANGE_MAX);
        let prices = Prices::new(0, 0);
        assert!(prices.change_ns() > 0 && prices.hit_ns() > 0);
    }
}
