//! Latency by throughput in an open loop, as in MICA's Figure 13: for each system a line of medians
//! by offered rate, with bars from the 5th to the 95th percentile.

use glimmer_loadgen::load::{Arrivals, Idle, Latency, Outcome, Pace};

use crate::{
    Columns, Point, Row, Run,
    plot::{Mark, Plot, Unit},
};

/// The only panel.
const PANEL: &str = "";
const P99: &str = "p99, µs";

/// The columns of the data.
pub const COLUMNS: Columns = Columns {
    panel: "panel",
    series: "system",
    x: "offered requests per s",
    y: "median latency, µs",
};

/// How to draw it, with the paper's point beside this system of ours.
pub fn plot(ours: &'static str) -> Plot {
    Plot::lines("requests per second", "latency")
        .unit(Unit::Microseconds)
        .log_x()
        .log_y()
        .columns(1)
        .paper(
            "MICA §5.3, for one of its 16 cores: 69 Mops at 40 µs; 24 to 52 µs over all rates",
            vec![Mark::point(PANEL, ours, 69e6 / 16.0, 40.0)],
        )
}

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
pub fn point(run: &Run<'_>, system: &str, requests_per_s: f64, found: &Outcome) -> Point {
    let latency_ns = found.latency_ns();
    let us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    Point::new(PANEL, system, requests_per_s, us(0.5))
        .also(Row::LOW, us(0.05))
        .also(Row::HIGH, us(0.95))
        .also_if(P99, run.p99_us(&Latency::of(&latency_ns)))
        .also(Row::ACROSS, found.operations_per_s())
}
