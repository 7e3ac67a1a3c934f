//! Minos, Figure 8: more bandwidth.

use anyhow::Result;
use glimmer_queueing::{Server, Trimodal};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
    plot::{Plot, Unit},
    simulated::{self, CORES, Case, GETS, LARGE_BYTES, PEAK, System, limits, panel},
};

/// Percentages of replies that are sent.
const SENT: [u32; 4] = [100, 75, 50, 25];
const LARGE_PERCENT: f64 = 0.75;
/// Loads over the highest load of each server.
const LOADS: [f64; 8] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99];
const LOADS_QUICK: [f64; 2] = [0.3, 0.9];
/// Column with the part of the time in which replies keep the link busy.
const LINK: &str = "link used";
/// A link that is used more than this is saturated.
const SATURATED: f64 = 0.9;

/// The figure.
pub struct Bandwidth;

fn series(sent: u32) -> String {
    format!("S = {sent}%")
}

impl Figure for Bandwidth {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig8",
            title: "Latency by load when only some replies are sent",
            source: "Minos (NSDI'19), Figure 8, §6.4",
            claim: "With 0.75% of large requests the link limits Minos. If only S% of the replies \
                    are sent, as if the link was faster, Minos serves more, and saturates the link \
                    again at S = 75 and 50. At S = 25 the cores are the limit.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. Size-aware sharding with \
                   the paper's formula, with 0.75% of large requests. The other replies are \
                   dropped when they are ready.",
            kind: Kind::Simulated,
            needs: Needs {
                cores: 1,
                cores_of_paper: 1,
                memory_mib: 256,
                peers: &[],
            },
            columns: Columns {
                panel: "server",
                series: "replies sent",
                x: "throughput, Mops",
                y: "p99, µs",
            },
            plot: Plot::lines("throughput, Mops", "p99")
                .unit(Unit::Microseconds)
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut cases = Vec::new();
        for server in simulated::servers(run) {
            cases.extend(SENT.map(|sent| Case {
                panel: panel(server.cores),
                system: System::Paper,
                server: Server::sending(server, f64::from(sent) / 100.0),
                workload: Trimodal::new(LARGE_PERCENT, LARGE_BYTES, GETS),
            }));
        }
        let found = limits(run, &cases, run.pick(400_000, 20_000));
        let loads = run.pick(&LOADS[..], &LOADS_QUICK[..]);
        let places = 0..cases.len();
        let tasks: Vec<(usize, f64)> = places
            .flat_map(|place| loads.iter().map(move |&load| (place, load)))
            .collect();
        let name =
            |&(place, load): &(usize, f64)| format!("{}, {load} of the highest load", cases[place]);
        let requests = run.pick(600_000, 20_000);
        let outcomes = run.in_parallel(&tasks, name, |&(place, load)| {
            cases[place].best(load * found[place].peak * 1e6, requests)
        });
        for ((place, load), outcome) in tasks.into_iter().zip(outcomes) {
            let Some(outcome) = outcome else {
                continue;
            };
            let (peak, sent) = (found[place].peak, SENT[place % SENT.len()]);
            let throughput = (load * peak * 100.0).round() / 100.0;
            let us = outcome.p99_ns() / 1e3;
            let point = Point::new(&cases[place].panel, series(sent), throughput, us);
            run.add(
                point
                    .also(PEAK, peak)
                    .also(LINK, outcome.link_utilisation()),
            );
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for cores in CORES {
            let panel = panel(cores);
            let peak = |sent| data.line(&panel, &series(sent)).next()?.also(PEAK);
            let link = |sent| {
                let series = series(sent);
                let rows = data.line(&panel, &series);
                simulated::most(rows.filter_map(|row: &Row| row.also(LINK)))
            };
            let eight = cores == CORES[0];
            let mut at_least = |what: String, paper: &str, ours: Option<f64>, bound| match eight {
                true => shape.at_least(&what, paper, ours, bound),
                false => shape.beside(&what, "", ours.map(|ours| format!("{ours:.2}"))),
            };
            for (sent, bound) in [(75, 1.2), (50, 1.6), (25, 1.6)] {
                let over = peak(sent).zip(peak(SENT[0]));
                at_least(
                    format!("{panel}: peak at S = {sent}% over that at 100%"),
                    "scales",
                    over.map(|(more, all)| more / all),
                    bound,
                );
            }
            for sent in [100, 75, 50] {
                at_least(
                    format!("{panel}: the link used at S = {sent}%, most"),
                    "saturated",
                    link(sent),
                    SATURATED,
                );
            }
            let what = format!("{panel}: the link used at S = 25%, most");
            match eight {
                true => shape.at_most(&what, "not saturated", link(25), SATURATED),
                false => shape.beside(&what, "", link(25).map(|used| format!("{used:.2}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(peaks: [f64; 4], used: [f64; 4]) -> usize {
        let mut data = Data::default();
        for (place, sent) in SENT.into_iter().enumerate() {
            let point = Point::new(panel(8), series(sent), 1.0, 5.0);
            data.add(point.also(PEAK, peaks[place]).also(LINK, used[place]));
        }
        let mut shape = Shape::default();
        Bandwidth.judge(&data, &mut shape);
        shape.failures().count()
    }

    #[test]
    fn judged_by_whether_the_link_or_the_cores_are_the_limit() {
        let used = [0.95, 0.95, 0.95, 0.7];
        assert_eq!(failures([2.0, 2.6, 4.0, 5.5], used), 0);
        assert_eq!(failures([2.0, 2.1, 2.1, 2.1], used), 3);
        assert_eq!(failures([2.0, 2.6, 4.0, 5.5], [0.7; 4]), 3);
    }
}
