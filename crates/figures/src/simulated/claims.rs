//! Claims about simulated servers.

use std::ops::RangeInclusive;

use super::{CORES, OF_PEAK, PEAK, System, WITHIN, panel};
use crate::{Data, Row, Shape};

/// The server's rule may have a latency that is higher than the paper's by this factor.
const WORSE_MAX: f64 = 1.05;
/// It may have a throughput that is lower by this factor.
pub const LESS_MIN: f64 = 0.95;

/// A limit of a system: the value of a column that all its rows have.
pub fn limit(data: &Data, panel: &str, system: System, column: &str) -> Option<f64> {
    data.line(panel, system.name()).next()?.also(column)
}

/// The largest, or none if there is none.
pub fn most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().reduce(f64::max)
}

/// The latencies of one system over those of another, at loads of this range, as parts of keyhash
/// sharding's peak. A load that only the other one sustains counts as infinite.
pub fn ratios(
    data: &Data,
    panel: &str,
    above: System,
    below: System,
    loads: &RangeInclusive<f64>,
) -> Vec<f64> {
    let is_in = |row: &&Row| row.also(OF_PEAK).is_some_and(|load| loads.contains(&load));
    let rows = data.line(panel, below.name()).filter(is_in);
    let ratio = |row: &Row| {
        let above = data.median(panel, above.name(), row.x.clone());
        above.map_or(f64::INFINITY, |above| above / row.spread().median)
    };
    rows.map(ratio).collect()
}

/// Compares the server's rule for the number of large cores with the paper's formula, on servers of
/// each size.
pub fn auto_over_paper(data: &Data, shape: &mut Shape, latency: &str, loads: RangeInclusive<f64>) {
    for cores in CORES {
        let panel = panel(cores);
        let ratios = ratios(data, &panel, System::Auto, System::Paper, &loads);
        shape.at_most(
            &format!("{panel}, auto over the paper's formula: {latency}, most"),
            "",
            most(ratios),
            WORSE_MAX,
        );
        let of = |column| {
            let auto = limit(data, &panel, System::Auto, column)?;
            let paper = limit(data, &panel, System::Paper, column)?;
            // If the paper's formula reaches no load, no other can be lower.
            (paper > 0.0).then(|| auto / paper)
        };
        let limits: Vec<f64> = [PEAK].into_iter().chain(WITHIN).filter_map(of).collect();
        shape.at_least(
            &format!("{panel}, auto over the paper's formula: highest loads, least"),
            "",
            limits.into_iter().reduce(f64::min),
            LESS_MIN,
        );
    }
}
