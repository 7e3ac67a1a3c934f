//! Minos, Figure 10: a workload that changes.

use anyhow::Result;
use glimmer_dispatch::LargeCores;
use glimmer_queueing::{Dispatch, Phases, Run as Simulation, Trial, Trimodal};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
    plot::Plot,
    simulated::{self, CORES, GETS, LARGE_BYTES, System, large_cores, panel},
};

/// Percentages of large requests, one after the other.
const SHARES: [f64; 7] = [0.125, 0.25, 0.5, 0.75, 0.5, 0.25, 0.125];
/// The phase with the most large requests.
const HEAVIEST: usize = 3;
/// Epochs of a phase.
const EPOCHS: usize = 8;
/// After this many epochs of a phase, the number of large cores is right.
const ADAPTED: usize = 2;
/// Requests per second for 8 cores.
const OFFERED_PER_S: f64 = 1.75e6;
const SYSTEMS: [(System, Dispatch); 3] = [
    (System::Stealing, Dispatch::Stealing),
    (System::Paper, Dispatch::SizeAware(LargeCores::Paper)),
    (System::Auto, Dispatch::SizeAware(LargeCores::Auto)),
];
const LATENCY: &str = "p99, µs";
const COUNT: &str = "large cores";

/// The figure.
pub struct Changing;

fn place(cores: usize, what: &str) -> String {
    format!("{}: {what}", panel(cores))
}

impl Figure for Changing {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig10",
            title: "Large cores and latency while the workload changes",
            source: "Minos (NSDI'19), Figure 10, §6.6",
            claim: "The share of large requests grows from 0.125% to 0.75% in steps, and falls \
                    again. Minos gives large requests more cores and fewer. At 0.75% its p99 is 70 \
                    µs, twenty times below that of stealing with 1.5 ms.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. 1.75 Mops for 8 cores and \
                   twice that for 16. An epoch has 200,000 requests and a step 8 epochs, where the \
                   paper has a second and 20 of them. The latency is that of requests that arrived \
                   in the epoch.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "server and number",
                series: "dispatch",
                x: "epoch",
                y: "p99 in µs, or large cores",
            },
            plot: Plot::lines("epoch", "").log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut cases = Vec::new();
        for server in simulated::servers(run) {
            cases.extend(SYSTEMS.map(|(system, dispatch)| (server, system, dispatch)));
        }
        let outcomes = run.in_parallel(
            &cases,
            |(server, system, _)| format!("{}, {}", panel(server.cores), system.name()),
            |&(server, _, dispatch)| {
                let offered_per_s = OFFERED_PER_S * server.cores as f64 / CORES[0] as f64;
                let epoch_ns = server.epoch_requests as f64 / offered_per_s * 1e9;
                let phases = Phases {
                    length_ns: epoch_ns * EPOCHS as f64,
                    workloads: SHARES
                        .map(|share| Trimodal::new(share, LARGE_BYTES, GETS))
                        .to_vec(),
                };
                let trial = Trial {
                    offered_per_s,
                    requests: server.epoch_requests * (EPOCHS * SHARES.len()) as u64,
                    seed: 1,
                };
                let simulation = Simulation {
                    warm_up: 0,
                    window_ns: Some(epoch_ns),
                    ..server.run(dispatch, &phases, trial)
                };
                (epoch_ns, simulation.simulate())
            },
        );
        for ((server, system, _), (_, outcome)) in cases.iter().zip(&outcomes) {
            let windows = outcome.windows.iter().take(EPOCHS * SHARES.len());
            for (epoch, window) in windows.enumerate() {
                let us = window.value_at_quantile(0.99) as f64 / 1e3;
                let panel = place(server.cores, LATENCY);
                run.add(Point::new(panel, system.name(), epoch as f64, us));
            }
        }
        for ((server, system, _), (epoch_ns, outcome)) in cases.iter().zip(&outcomes) {
            if *system == System::Stealing {
                continue;
            }
            for epoch in 0..EPOCHS * SHARES.len() {
                let middle_ns = (epoch as f64 + 0.5) * epoch_ns;
                let plans = outcome.plans.iter();
                let in_force = plans
                    .take_while(|(from_ns, _)| *from_ns <= middle_ns)
                    .last();
                let (large, _) = large_cores(&in_force.expect("the first is from 0").1);
                let panel = place(server.cores, COUNT);
                run.add(Point::new(panel, system.name(), epoch as f64, large as f64));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for cores in CORES {
            let p99 = |system, phase| median(phase_of(data, cores, LATENCY, system, phase));
            let over = |above, below, phase| Some(p99(above, phase)? / p99(below, phase)?);
            if cores != CORES[0] {
                // The ledger has the paper's eight cores.
                let counts = counts(data, cores, System::Paper);
                let measured = (!counts.iter().all(Vec::is_empty)).then(|| listed(&counts));
                let what = format!(
                    "{}: large cores after two epochs of each step",
                    panel(cores)
                );
                shape.beside(&what, "", measured);
                let ratio = over(System::Stealing, System::Paper, HEAVIEST);
                shape.beside(
                    &format!("{}: p99 at 0.75%, stealing over size-aware", panel(cores)),
                    "",
                    ratio.map(|ratio| format!("{ratio:.1}")),
                );
            }
            let autos = (0..SHARES.len()).map(|phase| over(System::Auto, System::Paper, phase));
            let autos: Option<Vec<f64>> = autos.collect();
            shape.at_most(
                &format!(
                    "{}, auto over the paper's formula: p99 of each step, most",
                    panel(cores)
                ),
                "",
                autos.and_then(simulated::most),
                1.05,
            );
        }
    }
}

/// The values of a step after it has adapted.
fn phase_of(data: &Data, cores: usize, what: &str, system: System, phase: usize) -> Vec<f64> {
    let first = phase * EPOCHS + ADAPTED;
    let panel = place(cores, what);
    let is_in = |row: &&Row| {
        let epoch = row.across().map_or(usize::MAX, |epoch| epoch as usize);
        (first..(phase + 1) * EPOCHS).contains(&epoch)
    };
    let rows = data.line(&panel, system.name()).filter(is_in);
    rows.map(|row| row.spread().median).collect()
}

fn counts(data: &Data, cores: usize, system: System) -> Vec<Vec<f64>> {
    let phases = 0..SHARES.len();
    phases
        .map(|phase| phase_of(data, cores, COUNT, system, phase))
        .collect()
}

fn listed(counts: &[Vec<f64>]) -> String {
    let each = counts.iter().map(|counts| match counts[..] {
        [first, .., last] if first != last => format!("{first} to {last}"),
        [first, ..] => first.to_string(),
        [] => "-".to_owned(),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn median(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| glimmer_measure::stats::Spread::of(&values).median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(auto: f64) -> usize {
        let mut data = Data::default();
        for epoch in 0..EPOCHS * SHARES.len() {
            for (system, us) in [(System::Paper, 70.0), (System::Auto, 70.0 * auto)] {
                let panel = place(8, LATENCY);
                data.add(Point::new(panel, system.name(), epoch as f64, us));
            }
        }
        Changing.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_formula() {
        assert_eq!(failures(1.0), 0);
        assert_eq!(failures(1.1), 1);
    }
}
