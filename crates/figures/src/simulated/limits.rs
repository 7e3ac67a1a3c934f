//! The highest loads of a server.

use glimmer_queueing::{Dispatch, Trial};

use super::Case;
use crate::Run;

/// Bounds for p99 in microseconds (§5.3).
pub const BOUNDS_US: [f64; 2] = [50.0, 100.0];
/// Column with the highest load, in millions of requests per second.
pub const PEAK: &str = "peak, Mops";
/// Columns with the highest loads within each of [`BOUNDS_US`].
pub const WITHIN: [&str; 2] = ["within 50 µs, Mops", "within 100 µs, Mops"];

/// The highest loads of a server, in millions of requests per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Without a bound for the latency: no request is lost.
    pub peak: f64,
    /// With a p99 within each of [`BOUNDS_US`].
    pub within: [f64; 2],
}

impl Limits {
    /// The better of both, by each limit.
    fn or(self, other: Limits) -> Limits {
        Limits {
            peak: self.peak.max(other.peak),
            within: [0, 1].map(|place| self.within[place].max(other.within[place])),
        }
    }
}

/// Searches the highest loads of all cases, with this many requests for each load.
pub fn limits(run: &Run<'_>, cases: &[Case], requests: u64) -> Vec<Limits> {
    let tasks: Vec<(usize, Dispatch)> = cases
        .iter()
        .enumerate()
        .flat_map(|(place, case)| {
            let dispatches = case.dispatches().into_iter();
            dispatches.map(move |dispatch| (place, dispatch))
        })
        .collect();
    let name = |&(place, dispatch): &(usize, Dispatch)| {
        format!("highest loads: {}, {dispatch:?}", cases[place])
    };
    let found = run.in_parallel(&tasks, name, |&(place, dispatch)| {
        of(&cases[place], dispatch, requests)
    });
    let mut best = vec![Limits::default(); cases.len()];
    for ((place, _), limits) in tasks.into_iter().zip(found) {
        best[place] = best[place].or(limits);
    }
    best
}

fn of(case: &Case, dispatch: Dispatch, requests: u64) -> Limits {
    let trial = Trial {
        offered_per_s: case.server.bound_per_s(&case.workload),
        requests,
        seed: 1,
    };
    let [strict, loose] = BOUNDS_US.map(|us| us * 1e3);
    let bounds = [f64::MAX, loose, strict];
    let found = case
        .server
        .within_per_s(dispatch, &case.workload, trial, bounds);
    let [peak, loose, strict] = found.map(|per_s| per_s / 1e6);
    Limits {
        peak,
        within: [strict, loose],
    }
}
