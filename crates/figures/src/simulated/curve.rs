//! Latencies by load.

use glimmer_queueing::{Outcome, Trial};

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

/// One simulated load.
struct Place {
    /// The load over the peak.
    of_peak: f64,
    /// Requests per second.
    offered_per_s: f64,
    /// What was measured, under the best of the policies; none if no policy sustains the load.
    outcome: Option<Outcome>,
}

impl Curve {
    /// Measures all cases, and adds their points. Loads that a system does not sustain have none,
    /// as in the paper.
    pub fn measure(&self, run: &mut Run<'_>, cases: &[Case]) {
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
        let places = run.in_parallel(&tasks, name, |&(place, of_peak)| {
            let case = &cases[place];
            let offered_per_s = of_peak * peak(case) * 1e6;
            Place {
                of_peak,
                offered_per_s,
                outcome: case.best(offered_per_s, self.requests),
            }
        });
        for ((case, _), at) in tasks.into_iter().zip(places) {
            let Some(outcome) = &at.outcome else {
                continue;
            };
            let us = (self.latency_ns)(outcome) / 1e3;
            let load = (at.offered_per_s / 1e4).round() / 100.0;
            let Limits { peak, within } = found[case];
            let point = Point::new(&cases[case].panel, cases[case].series(), load, us)
                .also(OF_PEAK, at.of_peak)
                .also("link used", outcome.link_utilisation())
                .also(PEAK, peak)
                .also(WITHIN[0], within[0])
                .also(WITHIN[1], within[1]);
            run.add(point);
        }
    }
}

impl Case {
    /// The best outcome at a load: that with the lowest p99 among the policies that sustain it.
    pub fn best(&self, offered_per_s: f64, requests: u64) -> Option<Outcome> {
        let simulate = |dispatch| {
            let trial = Trial {
                offered_per_s,
                requests,
                seed: 1,
            };
            self.server.simulate(dispatch, &self.workload, trial)
        };
        let outcomes = self.dispatches().into_iter().map(simulate);
        outcomes
            .filter(|outcome| outcome.is_sustained(offered_per_s))
            .min_by(|one, other| one.p99_ns().total_cmp(&other.p99_ns()))
    }
}

/// Figures begin with keyhash sharding, whose peak is the unit of loads.
const _: () = assert!(matches!(System::ALL[0], System::Keyhash));
