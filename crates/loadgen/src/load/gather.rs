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
        let second = interval.is_measured().then(|| Second {
            at_s: interval.index,
            seconds: interval.seconds(),
            tally: interval.tally,
            latency: Latency::of(&all),
        });
        let of = self
            .shared
            .plan
            .measured
            .map(|measured| (measured.as_nanos() as u64).div_ceil(INTERVAL_NS));
        (self.progress)(Progress::Measured {
            second: second.as_ref(),
            interval: &interval,
            of,
            begun: self.shared.begun(),
        });
        match (second, self.series.last_mut()) {
            (Some(second), _) => self.series.push(second),
            // Requests of the window that were given up after it.
            (None, Some(last)) => last.tally.lost += interval.tally.lost,
            (None, None) => {}
        }
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{
        load::{Pace, Plan, Requests},
        workload::Workload,
    };

    /// However late an interval is gathered, and however long it was.
    #[test]
    fn the_start_of_the_measured_time_does_not_depend_on_when_it_is_told() {
        let requests = Requests::Drawn(Workload::default());
        let plan = Plan::new(requests, Pace::Closed { in_flight: 1 });
        let hour = Duration::from_secs(3600);
        let earliest = SystemTime::now() - hour / 2;
        let mut shared = Shared::new(&plan, None);
        shared.start -= hour;
        shared.window.open(hour.as_nanos() as u64 / 2, u64::MAX);
        let mut told = None;
        let mut progress = |progress: Progress<'_>| {
            if let Progress::Measured { begun, .. } = progress {
                told = Some(begun);
            }
        };
        Gather::new(&shared, &mut progress).add(Interval::new(0));
        let latest = SystemTime::now() - hour / 2;
        assert!((earliest..=latest).contains(&told.unwrap()));
    }

    #[test]
    fn what_comes_after_the_end_is_no_second_of_the_series() {
        let requests = Requests::Drawn(Workload::default());
        let plan = Plan::new(requests, Pace::Closed { in_flight: 1 });
        let shared = Shared::new(&plan, None);
        let mut told = Vec::new();
        let mut progress = |progress: Progress<'_>| {
            if let Progress::Measured {
                second, interval, ..
            } = progress
            {
                told.push((second.is_some(), interval.reads.len()));
            }
        };
        let mut gather = Gather::new(&shared, &mut progress);
        let (mut last, mut after) = (Interval::new(0), Interval::after_end(500_000_000));
        last.to_ns = 500_000_000;
        last.tally.hits = 50;
        last.reads.record_n(1_000, 50).unwrap();
        after.reads.record_n(1_000_000, 20).unwrap();
        after.tally.lost = 3;
        gather.add(last);
        gather.add(after);
        let (all, series) = gather.all();
        assert_eq!(told, [(true, 50), (false, 20)]);
        assert_eq!((all.reads.len(), series.len()), (70, 1));
        let [second] = series[..] else { panic!() };
        assert_eq!(second.operations_per_s(), 100.0);
        assert_eq!((second.latency.count, second.tally.lost), (50, 3));
    }
}
