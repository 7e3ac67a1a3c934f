//! How long the sampled requests of one worker took, by the size of their values.

use glimmer_base::limits::SERVICE_WINDOW_MS;
use glimmer_base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use glimmer_dispatch::SizeClass;

/// Times are counted in units of 2^7 = 128 ns.
const UNIT_BITS: u32 = 7;
/// Each doubling of a time has 2^3 = 8 buckets, so a bucket is at most an eighth wide.
const STEP_BITS: u32 = 3;
const STEPS: usize = 1 << STEP_BITS;
/// Longer times, from 17 s on, count in the last bucket.
const TIME_BITS: u32 = 27;
pub(super) const BUCKETS: usize = STEPS * (TIME_BITS - STEP_BITS + 1) as usize;

/// The sampled requests of one worker in the last one or two windows of [`SERVICE_WINDOW_MS`] in
/// which it had some.
///
/// Only the worker writes, with a load and a store. Others read counts that may be a moment old.
#[derive(Debug)]
pub struct ServiceTimes {
    /// Counts of two windows, by class and bucket.
    windows: [Box<[AtomicU32]>; 2],
    /// A bit for each class that has requests in a window.
    seen: [AtomicU32; 2],
    /// The window that counts, and when it began, in nanoseconds.
    current: AtomicU32,
    began_ns: AtomicU64,
}

impl Default for ServiceTimes {
    fn default() -> ServiceTimes {
        let window = || {
            let counts = SizeClass::COUNT * BUCKETS;
            (0..counts).map(|_| AtomicU32::new(0)).collect()
        };
        ServiceTimes {
            windows: [window(), window()],
            seen: Default::default(),
            current: AtomicU32::new(0),
            began_ns: AtomicU64::new(0),
        }
    }
}

impl ServiceTimes {
    /// Adds requests of one class that have been answered now, after this time.
    pub fn record(&self, class: SizeClass, requests: u32, took_ns: u64, now_ns: u64) {
        let at = self.window_at(now_ns);
        let (window, seen) = (&self.windows[at], &self.seen[at]);
        let classes = seen.load(Relaxed);
        if classes & bit(class) == 0 {
            seen.store(classes | bit(class), Relaxed);
        }
        let count = &window[class.place() * BUCKETS + bucket(took_ns)];
        count.store(count.load(Relaxed).saturating_add(requests), Relaxed);
    }

    /// The window that counts now. If the one so far has lasted long enough, the other one is
    /// emptied and takes its place.
    fn window_at(&self, now_ns: u64) -> usize {
        let current = self.current.load(Relaxed) as usize % 2;
        let lasted_ns = now_ns.saturating_sub(self.began_ns.load(Relaxed));
        if lasted_ns < SERVICE_WINDOW_MS * 1_000_000 {
            return current;
        }
        let next = 1 - current;
        self.windows[next]
            .iter()
            .for_each(|count| count.store(0, Relaxed));
        self.seen[next].store(0, Relaxed);
        self.began_ns.store(now_ns, Relaxed);
        self.current.store(next as u32, Relaxed);
        next
    }

    /// The times of a class: both windows together.
    pub fn of_class(&self, class: SizeClass) -> Times {
        let mut times = Times::default();
        self.add_to(&mut times, class);
        times
    }

    /// Adds the times of a class. Those of a class without requests cost nothing.
    pub fn add_to(&self, times: &mut Times, class: SizeClass) {
        let counts = class.place() * BUCKETS..(class.place() + 1) * BUCKETS;
        for (window, seen) in self.windows.iter().zip(&self.seen) {
            if seen.load(Relaxed) & bit(class) == 0 {
                continue;
            }
            times.0.resize(BUCKETS, 0);
            for (sum, count) in times.0.iter_mut().zip(&window[counts.clone()]) {
                *sum += u64::from(count.load(Relaxed));
            }
        }
    }
}

const _: () = assert!(SizeClass::COUNT <= 32);

/// The bit of a class.
fn bit(class: SizeClass) -> u32 {
    1 << class.place()
}

/// The distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(Vec<u64>);

impl Times {
    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Times) {
        self.0.resize(BUCKETS, 0);
        for (to, from) in self.0.iter_mut().zip(&other.0) {
            *to += from;
        }
    }

    /// Adds counts of all buckets.
    pub(super) fn add(&mut self, counts: impl Iterator<Item = u64>) {
        self.0.resize(BUCKETS, 0);
        self.0
            .iter_mut()
            .zip(counts)
            .for_each(|(to, from)| *to += from);
    }

    /// The counts of all buckets.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// The time that this share of the requests did not exceed, in microseconds, to within a
    /// sixteenth. None: there are no requests.
    pub fn percentile_us(&self, share: f64) -> Option<f64> {
        let wanted = (self.requests() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |&count: &u64| {
            seen += count;
            seen >= wanted
        };
        let found = self.0.iter().position(reaches)?;
        Some(middle_ns(found) / 1000.0)
    }
}

/// The bucket of a time.
pub(super) fn bucket(ns: u64) -> usize {
    let units = (ns >> UNIT_BITS).min((1 << TIME_BITS) - 1);
    match units.checked_ilog2() {
        Some(bits) if bits >= STEP_BITS => {
            let doublings = bits - STEP_BITS;
            STEPS * doublings as usize + (units >> doublings) as usize
        }
        _ => units as usize,
    }
}

/// Times in a bucket are shorter than this.
pub(super) fn end_ns(bucket: usize) -> u64 {
    let doublings = (bucket / STEPS).saturating_sub(1);
    let low = bucket - STEPS * doublings;
    (low as u64 + 1) << UNIT_BITS << doublings
}

/// The middle of a bucket.
fn middle_ns(bucket: usize) -> f64 {
    let doublings = (bucket / STEPS).saturating_sub(1);
    let low = bucket - STEPS * doublings;
    let width = (1u64 << UNIT_BITS << doublings) as f64;
    (low as f64 + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_an_eighth_wide_and_its_middle_is_within_a_sixteenth() {
        let mut before = 0;
        for ns in (1_024..2_000_000_000u64).step_by(99_991) {
            let place = bucket(ns);
            assert!(place >= before && place < BUCKETS);
            before = place;
            let off = (middle_ns(place) - ns as f64).abs() / ns as f64;
            assert!(off <= 1.0 / 16.0, "{ns} ns is {off} off");
        }
        for ns in [0, 127, 128, 1_023, 1_024, 5_000_000] {
            assert!(ns < end_ns(bucket(ns)) && bucket(end_ns(bucket(ns))) == bucket(ns) + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket(0), 0);
    }

    #[test]
    fn percentiles_are_of_the_latest_two_windows() {
        let class = SizeClass::of(100);
        let times = ServiceTimes::default();
        let at_ms = |ms: u64| ms * 1_000_000;
        let begin = SERVICE_WINDOW_MS;
        times.record(class, 99, 10_000, at_ms(begin));
        times.record(class, 1, 5_000_000, at_ms(begin));
        let percentile = |share| times.of_class(class).percentile_us(share).unwrap();
        assert!((percentile(0.5) / 10.0 - 1.0).abs() < 0.07);
        assert!((percentile(0.99) / 10.0 - 1.0).abs() < 0.07);
        assert!((percentile(0.999) / 5_000.0 - 1.0).abs() < 0.07);
        assert_eq!(
            times.of_class(SizeClass::of(1_000)).percentile_us(0.5),
            None
        );

        times.record(class, 300, 80_000, at_ms(begin + SERVICE_WINDOW_MS));
        assert_eq!(times.of_class(class).requests(), 400);
        times.record(class, 1, 80_000, at_ms(begin + 2 * SERVICE_WINDOW_MS));
        assert_eq!(times.of_class(class).requests(), 301);
    }

    #[test]
    fn times_of_workers_add_up() {
        let class = SizeClass::of(1);
        let workers = [ServiceTimes::default(), ServiceTimes::default()];
        workers[0].record(class, 2, 1_000, 1);
        workers[1].record(class, 3, 1_000, 1);
        let mut all = Times::default();
        for times in &workers {
            times.add_to(&mut all, class);
        }
        assert_eq!(all.requests(), 5);
    }
}
