//! How many requests there were by size class, and for how many bytes.

use crate::SizeClass;

/// The requests of one core, or of several, in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    requests: [u64; SizeClass::COUNT],
    bytes: [u64; SizeClass::COUNT],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            requests: [0; SizeClass::COUNT],
            bytes: [0; SizeClass::COUNT],
        }
    }
}

impl Histogram {
    /// A histogram of these requests and bytes by class, in the order of [`SizeClass::all`].
    pub fn of(requests: [u64; SizeClass::COUNT], bytes: [u64; SizeClass::COUNT]) -> Histogram {
        Histogram { requests, bytes }
    }

    /// What was counted since there was an earlier histogram of the same counters.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let difference = |now: &[u64; SizeClass::COUNT], then: &[u64; SizeClass::COUNT]| {
            std::array::from_fn(|place| now[place].saturating_sub(then[place]))
        };
        Histogram {
            requests: difference(&self.requests, &earlier.requests),
            bytes: difference(&self.bytes, &earlier.bytes),
        }
    }

    /// Number of requests of a class.
    pub fn of_class(&self, class: SizeClass) -> u64 {
        self.requests[class.place()]
    }

    /// Bytes of the values of a class.
    pub fn bytes_of_class(&self, class: SizeClass) -> u64 {
        self.bytes[class.place()]
    }

    /// Counts a request for a value of this many bytes. Misses, deletes and counters have none.
    #[inline(always)]
    pub fn record(&mut self, bytes: u32) {
        let place = SizeClass::of(bytes).place();
        self.requests[place] += 1;
        self.bytes[place] += u64::from(bytes);
    }

    /// Adds the requests of another core.
    pub fn merge(&mut self, other: &Histogram) {
        for place in 0..SizeClass::COUNT {
            self.requests[place] += other.requests[place];
            self.bytes[place] += other.bytes[place];
        }
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum()
    }
}

/// A moving average over epochs (Minos, §3.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Smoothed {
    requests: [f64; SizeClass::COUNT],
    bytes: [f64; SizeClass::COUNT],
    is_empty: bool,
}

impl Default for Smoothed {
    fn default() -> Smoothed {
        Smoothed {
            requests: [0.0; SizeClass::COUNT],
            bytes: [0.0; SizeClass::COUNT],
            is_empty: true,
        }
    }
}

impl Smoothed {
    /// Adds an epoch: `H_curr = (1 - alpha) H_curr + alpha H`. The first epoch counts alone.
    pub fn add(&mut self, epoch: &Histogram, alpha: f64) {
        let alpha = if self.is_empty { 1.0 } else { alpha };
        self.is_empty = false;
        let add = |to: &mut f64, from: u64| *to = (1.0 - alpha) * *to + alpha * from as f64;
        for place in 0..SizeClass::COUNT {
            add(&mut self.requests[place], epoch.requests[place]);
            add(&mut self.bytes[place], epoch.bytes[place]);
        }
    }

    /// Whether no epoch has been added.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Requests of a class.
    pub fn requests(&self, class: SizeClass) -> f64 {
        self.requests[class.place()]
    }

    /// Mean bytes of the values of a class, or `None` if it had no request.
    pub fn bytes_mean(&self, class: SizeClass) -> Option<f64> {
        let requests = self.requests(class);
        (requests > 0.0).then(|| self.bytes[class.place()] / requests)
    }
}
