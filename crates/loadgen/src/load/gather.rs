//! Combines the measurements of all threads.

use std::collections::BTreeMap;

use super::{
    Latency, Progress, Second,
    record::{INTERVAL_NS, Interval},
    run::Shared,
};

/// Combines the threads' intervals.
pub struct Gather<'a> {
    shared: &'a Shared<'a>,
    progress: &'a mut dyn FnMut(Progress<'_>),
    seconds: BTreeMap<u64, (usize, Interval)>,
    all: Interval,
    series: Vec<Second>,
}

impl<'a> Gather<'a> {
    pub fn new(shared: &'a Shared<'a>, progress: &'a mut dyn FnMut(Progress<'_>)) -> Self {
        Gather {
            shared,
            progress,
            seconds: BTreeMap::new(),
            all: Interval::new(0),
            series: Vec::new(),
        }
    }

    /// The observer of the measurement.
    pub fn progress(&mut self) -> &mut dyn FnMut(Progress<'_>) {
        self.progress
    }

    /// Adds a thread's interval. An interval is complete once every thread has contributed.
    pub fn add(&mut self, interval: Interval) {
        match self.seconds.get_mut(&interval.index) {
            Some((threads, sum)) => {
                *threads += 1;
                sum.add(&interval);
            }
            None => {
                self.seconds.insert(interval.index, (1, interval));
            }
        }
        while let Some(first) = self.seconds.first_entry()
            && first.get().0 == self.shared.plan.all_threads()
        {
            let (_, interval) = first.remove();
            self.end(interval);
        }
    }

    fn end(&mut self, interval: Interval) {
        let mut all = interval.reads.clone();
        all.add(&interval.writes).expect("histograms of one shape");
        let second = Second {
            at_s: interval.index,
            tally: interval.tally,
            latency: Latency::of(&all),
        };
        let of = self
            .shared
            .plan
            .measured
            .map(|measured| (measured.as_nanos() as u64).div_ceil(INTERVAL_NS));
        (self.progress)(Progress::Measured {
            second: &second,
            interval: &interval,
            of,
        });
        self.series.push(second);
        self.all.add(&interval);
    }

    /// The sum of all intervals, and the time series second by second.
    pub fn all(mut self) -> (Interval, Vec<Second>) {
        for (_, (_, interval)) in std::mem::take(&mut self.seconds) {
            self.end(interval);
        }
        (self.all, self.series)
    }
}
