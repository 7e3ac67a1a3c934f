//! Latency by throughput in an open loop, as in MICA's Figure 13: for each system a line of medians
//! by offered rate, with bars from the 5th to the 95th percentile.

use glimmer_loadgen::load::{Arrivals, Idle, Outcome, Pace};

use crate::{Columns, Data, Point, Row, Shape};

/// The only panel.
pub const PANEL: &str = "";
const P99: &str = "p99, µs";
/// A latency is similar to another up to this factor.
const SIMILAR: f64 = 2.0;

/// The columns of the data.
pub const COLUMNS: Columns = Columns {
    panel: "panel",
    series: "system",
    x: "offered requests per s",
    y: "median latency, µs",
};

/// Requests arrive one by one, independently of earlier ones. The client spins until the next is
/// due.
pub fn pace(requests_per_s: f64) -> Pace {
    Pace::Open {
        arrivals: Arrivals::Poisson(requests_per_s),
        burst: 1,
        idle: Idle::Spin,
    }
}

/// A system's point at an offered rate.
pub fn point(system: &str, requests_per_s: f64, found: &Outcome) -> Point {
    let latency_ns = found.latency_ns();
    let us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    Point::new(PANEL, system, requests_per_s, us(0.5))
        .also(Row::LOW, us(0.05))
        .also(Row::HIGH, us(0.95))
        .also(P99, us(0.99))
        .also(Row::ACROSS, found.operations_per_s())
}

/// Shows our latency at the lowest rate next to the paper's.
pub fn judge_lowest(data: &Data, ours: &str, shape: &mut Shape) {
    let lowest = data.line(PANEL, ours).next().map(|row| row.spread().median);
    shape.beside(
        "MICA's median latency at the lowest rate, µs",
        "24 (mean)",
        lowest.map(|latency| format!("{latency:.0}")),
    );
}

/// Judges the throughput of `ours`, called `name` in the figure, relative to that of `theirs`, at a
/// latency similar to theirs at its highest rate.
pub fn judge_similar(
    data: &Data,
    (ours, name): (&str, &str),
    theirs: &str,
    bound: f64,
    shape: &mut Shape,
) {
    shape.at_least(
        &format!(
            "throughput of {name} over {theirs}, at a latency of at most twice that of {theirs} \
             at its highest rate"
        ),
        "more than 100 (memcached through the kernel, MICA not)",
        similar_latency(data, ours, theirs),
        bound,
    );
}

/// The highest throughput of `ours` at a median latency similar to that of `theirs` at its highest
/// rate, divided by the throughput of `theirs`.
fn similar_latency(data: &Data, ours: &str, theirs: &str) -> Option<f64> {
    let theirs = data.line(PANEL, theirs).last()?;
    let allowed = theirs.spread().median * SIMILAR;
    let ours = data.line(PANEL, ours);
    let ours = ours.filter(|row| row.spread().median <= allowed);
    let most = ours.filter_map(Row::across).reduce(f64::max).unwrap_or(0.0);
    Some(most / theirs.across()?)
}

/// A system's line for tests: latency by rate.
#[cfg(test)]
pub fn draw(data: &mut Data, system: &str, points: &[(f64, f64)]) {
    for &(rate, latency) in points {
        data.add(Point::new(PANEL, system, rate, latency).also(Row::ACROSS, rate * 0.99));
    }
}
