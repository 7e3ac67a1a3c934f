//! Latencies by load.

use glimmer_queueing::{Dispatch, Outcome, Trial};

use super::{Case, Limits, PEAK, System, WITHIN, limits};
use crate::{
    Columns, Point, Run,
    plot::{Plot, Unit},
};

/// Column with the load over the highest load of keyhash sharding.
pub const OF_PEAK: &str = "of keyhash's peak";
/// These loads are measured, over the highest load of keyhash sharding.
const LOADS: [f64; 12] = [
    0.05, 0.1, 0.17, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95,
];
/// Column with the number of cores that dispatch, for hand-off.
const DISPATCHING: &str = "dispatching cores";
const LOADS_QUICK: [f64; 2] = [0.17, 0.6];

/// The columns of the data.
pub const COLUMNS: Columns = Columns {
    panel: "server",
    series: "dispatch",
    x: "throughput, Mops",
    y: "p99, µs",
};

/// How to draw this latency by load.
pub fn latency_by_load(latency: &str) -> Plot {
    Plot::lines(COLUMNS.x, latency)
        .unit(Unit::Microseconds)
        .log_y()
}

/// Measures the latencies of cases at several loads.
pub struct Curve {
    /// Requests for each load of a search.
    pub searched: u64,
    /// Requests for each load of a line.
    pub requests: u64,
    /// The latency to draw, in nanoseconds.
    pub latency_ns: fn(&Outcome) -> f64,
}

/// A load that a server sustains.
pub struct Place<'a> {
    /// The server.
    pub case: &'a Case,
    /// The load over the highest load of keyhash sharding.
    of_peak: f64,
    /// Requests per second.
    pub offered_per_s: f64,
    /// The best of the policies.
    pub dispatch: Dispatch,
    /// What was measured under it.
    pub outcome: Outcome,
    limits: Limits,
}

impl Place<'_> {
    /// The same load with this many requests.
    pub fn trial(&self, requests: u64) -> Trial {
        Trial {
            offered_per_s: self.offered_per_s,
            requests,
            seed: 1,
        }
    }

    /// A point with this latency in nanoseconds.
    pub fn point(&self, panel: &str, latency_ns: f64) -> Point {
        let load = (self.offered_per_s / 1e4).round() / 100.0;
        let Limits { peak, within } = self.limits;
        let point = Point::new(panel, self.case.series(), load, latency_ns / 1e3)
            .also(OF_PEAK, self.of_peak)
            .also("link used", self.outcome.link_utilisation())
            .also(PEAK, peak)
            .also(WITHIN[0], within[0])
            .also(WITHIN[1], within[1]);
        match self.dispatch {
            Dispatch::Handoff(cores) => point.also(DISPATCHING, cores as f64),
            _ => point,
        }
    }
}

impl Curve {
    /// Measures all cases, and adds their points.
    pub fn measure(&self, run: &mut Run<'_>, cases: &[Case]) {
        for place in self.places(run, cases) {
            let latency_ns = (self.latency_ns)(&place.outcome);
            run.add(place.point(&place.case.panel, latency_ns));
        }
    }

    /// Measures all cases. Loads that a system does not sustain are left out, as in the paper.
    pub fn places<'a>(&self, run: &Run<'_>, cases: &'a [Case]) -> Vec<Place<'a>> {
        let found = limits(run, cases, self.searched);
        let peak = |case: &Case| {
            let same = |(other, _): &(&Case, &Limits)| {
                other.panel == case.panel && other.system == cases[0].system
            };
            let first = cases.iter().zip(&found).find(same);
            first.expect("every panel has the first system").1.peak
        };
        let loads = run.pick(&LOADS[..], &LOADS_QUICK[..]);
        let tasks: Vec<(usize, f64)> = (0..cases.len())
            .flat_map(|place| loads.iter().map(move |&of_peak| (place, of_peak)))
            .collect();
        let name = |&(place, of_peak): &(usize, f64)| {
            format!("{}, {of_peak} of the highest load", cases[place])
        };
        let places = run.in_parallel(&tasks, name, |&(at, of_peak)| {
            let case = &cases[at];
            let offered_per_s = of_peak * peak(case) * 1e6;
            let (dispatch, outcome) = case.best(offered_per_s, self.requests)?;
            Some(Place {
                case,
                of_peak,
                offered_per_s,
                dispatch,
                outcome,
                limits: found[at],
            })
        });
        places.into_iter().flatten().collect()
    }
}

impl Case {
    /// The best policy at a load, and its outcome: that with the lowest p99 among those that
    /// sustain it.
    pub fn best(&self, offered_per_s: f64, requests: u64) -> Option<(Dispatch, Outcome)> {
        let simulate = |dispatch| {
            let trial = Trial {
                offered_per_s,
                requests,
                seed: 1,
            };
            let outcome = self.server.simulate(dispatch, &self.workload, trial);
            (dispatch, outcome)
        };
        let outcomes = self.dispatches().into_iter().map(simulate);
        outcomes
            .filter(|(_, outcome)| outcome.is_sustained(offered_per_s))
            .min_by(|(_, one), (_, other)| one.p99_ns().total_cmp(&other.p99_ns()))
    }
}

/// Figures begin with keyhash sharding, whose peak is the unit of loads.
const _: () = assert!(matches!(System::ALL[0], System::Keyhash));
