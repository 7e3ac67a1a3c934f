//! Coordinated omission: a closed loop does not see a stall.

use anyhow::Result;
use glimmer_loadgen::{
    load::Arrivals,
    stalling::{CONNECTIONS, Loop, SECOND_NS, SERVICE_NS, STALL_NS, observe, predicted_ns},
};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Plot, Unit},
};

/// Requests per second of the open loop, by panel.
const RATES: [(f64, &str); 2] = [
    (
        10_000.0,
        "10,000 requests/s: a tenth of what the server can do",
    ),
    (50_000.0, "50,000 requests/s: half of what it can do"),
];
/// For each quantile shown, one request in this many is slower.
const ONE_IN: [f64; 7] = [2.0, 5.0, 10.0, 20.0, 100.0, 1000.0, 10_000.0];
/// The 99th percentile.
const JUDGED: f64 = 100.0;
const OPEN: &str = "open loop";
const CLOSED: &str = "closed loop";
const TRUTH: &str = "what requests wait, by arithmetic";

/// The figure.
pub struct CoordinatedOmission;

impl Figure for CoordinatedOmission {
    fn spec(&self) -> Spec {
        Spec {
            name: "coordinated-omission",
            title: "A server that stalls for 100 ms once a second, as two load generators see it",
            source: "no paper: why this project measures latency in an open loop",
            claim: "Requests arrive whether the server stalls or not. A closed loop waits for each \
                    reply before it sends the next request, so a stall stops it from sending. It \
                    sees each stall once per connection, and a percentile hides that.",
            here: "A model of a server does nothing in the first tenth of every second and \
                   otherwise takes 10 µs for a request. The loops that measure real servers drive \
                   it in virtual time. There are eight connections; arrivals in the open loop are \
                   Poisson.",
            kind: Kind::Exact,
            needs: Needs::one_core(64),
            columns: Columns {
                panel: "rate",
                series: "loop",
                x: "one request in N is slower",
                y: "latency, ms",
            },
            plot: Plot::lines("one request in N is slower", "latency")
                .unit(Unit::Milliseconds)
                .log_x()
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let seconds = run.pick(20, 5);
        let closed = observe(Loop::Closed, seconds, 1)?;
        for (rate, panel) in RATES {
            run.say(panel);
            let open = observe(Loop::Open(Arrivals::Poisson(rate)), seconds, 1)?;
            for one_in in ONE_IN {
                let quantile = 1.0 - 1.0 / one_in;
                let truth = predicted_ns(rate, quantile, open.stall_ns(seconds));
                for (series, ns) in [
                    (OPEN, open.quantile_ns(quantile)),
                    (CLOSED, closed.quantile_ns(quantile)),
                    (TRUTH, truth),
                ] {
                    run.add(Point::new(panel, series, one_in, ns / 1e6));
                }
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (_, panel) in RATES {
            let at = |series| data.median(panel, series, JUDGED);
            let part = |series| Some(at(series)? / at(TRUTH)?);
            shape.between(
                &format!("{panel}: the open loop's p99 over the computed p99"),
                "1",
                part(OPEN),
                0.95..=1.05,
            );
            shape.at_most(
                &format!("{panel}: the closed loop's p99 over the computed p99"),
                "hidden",
                part(CLOSED),
                0.01,
            );
        }
        let (stall_ms, service_ms) = (STALL_NS as f64 / 1e6, SERVICE_NS as f64 / 1e6);
        let seen = CONNECTIONS as f64 / ((SECOND_NS - STALL_NS) as f64 / SERVICE_NS as f64);
        shape.beside(
            "requests of the closed loop that see a stall",
            "one per connection and stall",
            Some(format!(
                "{:.3}% (stall {stall_ms:.0} ms, service {service_ms:.2} ms)",
                seen * 100.0
            )),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(open: f64, closed: f64) -> usize {
        let mut data = Data::default();
        for (_, panel) in RATES {
            for (series, ms) in [(OPEN, open), (CLOSED, closed), (TRUTH, 91.0)] {
                data.add(Point::new(panel, series, JUDGED, ms));
            }
        }
        CoordinatedOmission.judged(&data).failures().count()
    }

    #[test]
    fn an_open_loop_that_omits_and_a_closed_one_that_does_not_are_noticed() {
        assert_eq!(failures(91.2, 0.08), 0);
        assert_eq!(failures(80.0, 0.08), 2);
        assert_eq!(failures(91.2, 91.0), 2);
    }
}
