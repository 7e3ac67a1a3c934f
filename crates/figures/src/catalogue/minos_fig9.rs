//! Minos, Figure 9: the work of each core.

use anyhow::Result;
use glimmer_queueing::{CoreLoad, Dispatch, Outcome, Trial, Trimodal};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Row, Run, Shape, Spec,
    plot::Plot,
    simulated::{self, CORES, Case, GETS, LARGE_BYTES, System, large_cores, limits, panel},
};

/// Percentages of large requests.
const SHARES: [f64; 3] = [0.0625, 0.25, 0.75];
/// The load over the highest one.
const LOAD: f64 = 0.8;
/// Columns with the number of large cores, and whether the only one is standby.
const LARGE_CORES: &str = "large cores";
const STANDBY: &str = "standby";
/// A column with the part of the time during which the core was busy.
const BUSY: &str = "busy";

/// The figure.
pub struct Balance;

fn series(share: f64) -> String {
    format!("{share}% large")
}

fn place(cores: usize, system: System, what: &str) -> String {
    let rule = if system == System::Auto {
        "auto"
    } else {
        "paper"
    };
    format!("{}, {rule}: {what}", panel(cores))
}

impl Figure for Balance {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-fig9",
            title: "The requests and packets of each core",
            source: "Minos (NSDI'19), Figure 9, §6.5",
            claim: "Every core processes about the same number of packets. Small cores process \
                    more requests, and large cores different numbers of them. The number of large \
                    cores follows the workload.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The link is the \
                   paper's: 40 Gb/s for 8 cores, and twice that for 16. 0.8 of the highest load. \
                   The cores on the right serve large requests.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "server and number",
                series: "workload",
                x: "core",
                y: "% of all",
            },
            plot: Plot::lines("core", "% of all cores'").log_y().whole_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut cases = Vec::new();
        for server in simulated::servers(run) {
            for system in [System::Paper, System::Auto] {
                cases.extend(SHARES.map(|share| Case {
                    panel: panel(server.cores),
                    system,
                    server,
                    workload: Trimodal::new(share, LARGE_BYTES, GETS),
                }));
            }
        }
        let found = limits(run, &cases, run.pick(300_000, 20_000));
        let requests = run.pick(3_000_000, 40_000);
        let places: Vec<usize> = (0..cases.len()).collect();
        // Both rules have the load of the first.
        let first = |place: usize| place - place % (2 * SHARES.len()) + place % SHARES.len();
        let outcomes = run.in_parallel(
            &places,
            |&place| cases[place].to_string(),
            |&place| {
                let case = &cases[place];
                let trial = Trial {
                    offered_per_s: LOAD * found[first(place)].peak * 1e6,
                    requests,
                    seed: 1,
                };
                let dispatch = match case.system {
                    System::Auto => Dispatch::SizeAware(glimmer_dispatch::LargeCores::Auto),
                    _ => Dispatch::SizeAware(glimmer_dispatch::LargeCores::Paper),
                };
                case.server.simulate(dispatch, &case.workload, trial)
            },
        );
        for what in ["requests", "packets"] {
            for (place, outcome) in outcomes.iter().enumerate() {
                let share = SHARES[place % SHARES.len()];
                points(&cases[place], share, what, outcome)
                    .into_iter()
                    .for_each(|point| run.add(point));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for cores in CORES {
            for share in SHARES {
                let line = |system| line(data, cores, system, share, "packets");
                let what = format!("{}, {share}% large", panel(cores));
                let systems = [System::Paper, System::Auto];
                let [paper, auto] = systems.map(|system| imbalance(&line(system), packets_of));
                if cores != CORES[0] {
                    // The ledger has the paper's eight cores.
                    let rows = line(System::Paper);
                    let found = rows.first().map(|row| counted(row));
                    shape.beside(&format!("{what}: large cores"), "", found);
                    shape.beside(
                        &format!("{what}: packets of a core, most over least"),
                        "",
                        paper.map(|ratio| format!("{ratio:.2}")),
                    );
                }
                shape.at_most(
                    &format!(
                        "{what}: packets of a core, most over least: auto over the paper's formula"
                    ),
                    "",
                    auto.zip(paper).map(|(auto, paper)| auto / paper),
                    1.05,
                );
                // `auto` has large cores take small requests while they have time for them: it
                // balances time, and a packet of a large value takes less of it.
                let [paper, auto] = systems.map(|system| imbalance(&line(system), busy_of));
                shape.at_most(
                    &format!(
                        "{what}: CPU time of a core, most over least: auto over the paper's formula"
                    ),
                    "",
                    auto.zip(paper).map(|(auto, paper)| auto / paper),
                    1.05,
                );
            }
        }
    }
}

fn points(case: &Case, share: f64, what: &str, outcome: &Outcome) -> Vec<Point> {
    let number = |core: &CoreLoad| match what {
        "requests" => core.requests as f64,
        _ => core.packets as f64,
    };
    let all: f64 = outcome.cores.iter().map(number).sum();
    let (_, plan) = outcome.plans.last().expect("there is a plan");
    let (large, is_standby) = large_cores(plan);
    let panel = place(case.server.cores, case.system, what);
    let point = |(core, load): (usize, &CoreLoad)| {
        // A core without a request has no place on a logarithmic scale.
        let percent = (100.0 * number(load) / all).max(1e-3);
        Point::new(&panel, series(share), core as f64, percent)
            .also(LARGE_CORES, large as f64)
            .also(STANDBY, f64::from(u8::from(is_standby)))
            .also(BUSY, load.busy_ns / outcome.measured_ns)
    };
    outcome.cores.iter().enumerate().map(point).collect()
}

fn line<'a>(data: &'a Data, cores: usize, system: System, share: f64, what: &str) -> Vec<&'a Row> {
    let panel = place(cores, system, what);
    let rows = data.rows.iter();
    rows.filter(|row| row.panel == panel && row.series == series(share))
        .collect()
}

fn counted(row: &Row) -> String {
    match row.also(STANDBY) {
        Some(1.0) => "standby".to_owned(),
        _ => row.also(LARGE_CORES).unwrap_or(f64::NAN).to_string(),
    }
}

fn packets_of(row: &Row) -> Option<f64> {
    Some(row.spread().median)
}

fn busy_of(row: &Row) -> Option<f64> {
    row.also(BUSY)
}

/// The most of something that a core has over the least.
fn imbalance(rows: &[&Row], of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = rows.iter().map(|row| of(row)).collect();
    let values = || values.iter().flatten().copied();
    let (most, least) = (values().reduce(f64::max)?, values().reduce(f64::min)?);
    Some(most / least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `auto` and `busy`: what `auto` has of the formula's imbalance of packets and of time.
    fn failures(auto: f64, busy: f64) -> usize {
        let mut data = Data::default();
        for share in SHARES {
            let systems = [
                (System::Paper, 15.0, 0.5),
                (System::Auto, 15.0 * auto, 0.5 * busy),
            ];
            for (system, most, busy) in systems {
                for core in 0..8 {
                    let percent = if core == 7 { most } else { 10.0 };
                    let panel = place(8, system, "packets");
                    let point = Point::new(panel, series(share), f64::from(core), percent);
                    data.add(point.also(BUSY, if core == 7 { busy } else { 0.4 }));
                }
            }
        }
        Balance.judged(&data).failures().count()
    }

    #[test]
    fn auto_is_held_to_the_papers_balance() {
        assert_eq!(failures(1.0, 1.0), 0);
        assert_eq!(failures(1.1, 1.0), 3);
        assert_eq!(failures(1.0, 1.1), 3);
    }
}
