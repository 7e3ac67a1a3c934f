//! Minos, Figure 8: more bandwidth.

use anyhow::Result;
use glimmer_queueing::{Server, Trimodal};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    simulated::{self, Case, GETS, LARGE_BYTES, PEAK, System, latency_by_load, limits, panel},
};

/// Percentages of replies that are sent.
const SENT: [u32; 4] = [100, 75, 50, 25];
const LARGE_PERCENT: f64 = 0.75;
/// Loads over the highest load of each server.
const LOADS: [f64; 8] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99];
const LOADS_QUICK: [f64; 2] = [0.3, 0.9];
/// Column with the part of the time in which replies keep the link busy.
const LINK: &str = "link used";

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
            needs: Needs::one_core(256),
            columns: Columns {
                series: "replies sent",
                ..simulated::COLUMNS
            },
            plot: latency_by_load("p99"),
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
            let best = cases[place].best(load * found[place].peak * 1e6, requests);
            best.map(|(_, outcome)| outcome)
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
}
