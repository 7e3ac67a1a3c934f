//! How much more size-aware sharding serves within a bound for the latency, by workload.

use glimmer_queueing::Trimodal;

use super::{BOUNDS_US, Case, Limits, System, limits, panel, servers};
use crate::{Data, Point, Row, Run, Shape};

/// Column with the gain over the best of the others.
const OVER_BEST: &str = "over the best other";
/// Column with the throughput of size-aware sharding.
const MOPS: &str = "size-aware, Mops";
/// Column with the throughput of the server's rule over that of the paper's formula.
const AUTO: &str = "auto over the paper's formula";
const OTHERS: [System; 3] = [System::Keyhash, System::Handoff, System::Stealing];

/// Workloads that differ in one parameter.
pub struct Workloads {
    /// Its values.
    pub values: &'static [f64],
    /// The workload of a value.
    pub of: fn(f64) -> Trimodal,
}

fn place(cores: usize, bound_us: f64) -> String {
    format!("{}, p99 ≤ {bound_us} µs", panel(cores))
}

impl Workloads {
    /// Measures the gains under all of them, with this many requests for each load, and adds their
    /// points. Without a load at which another system is within the bound, there is no gain over
    /// it.
    pub fn measure_gains(&self, run: &mut Run<'_>, requests: u64) {
        let values = run.pick(self.values, &self.values[..1]);
        let mut cases = Vec::new();
        for server in servers(run) {
            for &value in values {
                cases.extend(System::ALL.map(|system| Case {
                    panel: format!("{}, {value}", panel(server.cores)),
                    system,
                    server,
                    workload: (self.of)(value),
                }));
            }
        }
        let found = limits(run, &cases, requests);
        for (at, bound_us) in BOUNDS_US.into_iter().enumerate() {
            let groups = cases.chunks(System::ALL.len());
            let values = values.iter().cycle();
            for ((cases, limits), &value) in groups.zip(found.chunks(System::ALL.len())).zip(values)
            {
                let panel = place(cases[0].server.cores, bound_us);
                points(&panel, value, at, cases, limits)
                    .into_iter()
                    .for_each(|point| run.add(point));
            }
        }
    }

    /// Judges what both figures claim of the server's own rule.
    pub fn judge_gains(&self, data: &Data, shape: &mut Shape) {
        let is_whole = |column: &Vec<f64>| column.len() == self.values.len();
        for cores in super::CORES {
            let columns = BOUNDS_US.map(|bound_us| column(data, cores, bound_us, AUTO));
            let least = columns.iter().flatten().copied().reduce(f64::min);
            shape.at_least(
                &format!("{cores} cores, {AUTO}: throughput within both bounds, least"),
                "",
                least.filter(|_| columns.iter().all(is_whole)),
                super::claims::LESS_MIN,
            );
        }
        let sixteen = BOUNDS_US.map(|bound_us| over_best(data, super::CORES[1], bound_us));
        for (bound_us, gains) in BOUNDS_US.into_iter().zip(sixteen) {
            shape.beside(
                &format!("16 cores, p99 ≤ {bound_us} µs: gain over the best other"),
                "",
                (!gains.is_empty()).then(|| listed(&gains)),
            );
        }
    }
}

fn points(panel: &str, value: f64, at: usize, cases: &[Case], limits: &[Limits]) -> Vec<Point> {
    let within = |system| {
        let place = cases.iter().position(|case| case.system == system);
        limits[place.expect("all systems")].within[at]
    };
    let (ours, auto) = (within(System::Paper), within(System::Auto));
    let best = OTHERS.map(within).into_iter().fold(0.0, f64::max);
    let point = |other: System| {
        let theirs = within(other);
        (theirs > 0.0 && ours > 0.0).then(|| {
            Point::new(
                panel,
                format!("over {}", other.name()),
                value,
                ours / theirs,
            )
            .also(OVER_BEST, ours / best)
            .also(MOPS, ours)
            .also(AUTO, auto / ours)
        })
    };
    OTHERS.into_iter().filter_map(point).collect()
}

/// A column of the rows of servers with this many cores, by workload.
fn column(data: &Data, cores: usize, bound_us: f64, column: &str) -> Vec<f64> {
    let panel = place(cores, bound_us);
    let mut values: Vec<(f64, f64)> = Vec::new();
    let rows = data.rows.iter().filter(|row| row.panel == panel);
    let found = rows.filter_map(|row: &Row| Some((row.across()?, row.also(column)?)));
    for (x, value) in found {
        if values.iter().all(|&(other, _)| other != x) {
            values.push((x, value));
        }
    }
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    values.into_iter().map(|(_, value)| value).collect()
}

/// The gains over the best other system, by workload.
fn over_best(data: &Data, cores: usize, bound_us: f64) -> Vec<f64> {
    column(data, cores, bound_us, OVER_BEST)
}

fn listed(values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
    values.join(", ")
}
