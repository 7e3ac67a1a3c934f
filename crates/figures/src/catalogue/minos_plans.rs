//! Minos, §2.2 and §6.1: what stealing takes over, and how many cores are large, by load.

use anyhow::Result;
use glimmer_dispatch::LargeCores;
use glimmer_queueing::{Dispatch, Outcome, Server, Trial};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::Plot,
    simulated::{self, System, default_workload, large_cores, limits, panel},
};

/// Loads over the highest load of keyhash sharding.
const LOADS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const STOLEN: &str = "stolen, % of the requests whose core is at work";
const LARGE: &str = "large cores";

/// The figure.
pub struct Plans;

fn place(server: &Server, what: &str) -> String {
    format!("{}: {what}", panel(server.cores))
}

fn simulate(server: &Server, dispatch: Dispatch, offered_per_s: f64, requests: u64) -> Outcome {
    let trial = Trial {
        offered_per_s,
        requests,
        seed: 1,
    };
    server.simulate(dispatch, &default_workload(), trial)
}

impl Figure for Plans {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-plans",
            title: "Stolen requests and large cores by load",
            source: "Minos (NSDI'19), §2.2 and §6.1",
            claim: "Stealing happens only when a core is idle, which becomes less likely as the \
                    load grows. With the default workload, Minos gives one core of eight to large \
                    requests.",
            here: "Simulated in virtual time by the policy code of the server, with costs that \
                   `glimmer bench calibrate` measured at a server of ours. The workload is the \
                   paper's default one, and loads are parts of the highest one of keyhash \
                   sharding. Of the requests that find their core at work, the figure shows how \
                   many an idle core takes. The large cores are those of the last plan of the run.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "server and number",
                series: "dispatch",
                x: "load over the highest of keyhash sharding",
                y: "as the panel says",
            },
            plot: Plot::lines("load over the highest of keyhash sharding", ""),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let requests = run.pick(600_000, 40_000);
        let cases = simulated::cases(run, &[System::Keyhash], &default_workload());
        let found = limits(run, &cases, run.pick(200_000, 20_000));
        let tasks: Vec<(Server, f64, f64)> = cases
            .iter()
            .zip(found)
            .flat_map(|(case, limits)| {
                LOADS.map(|load| (case.server, load, load * limits.peak * 1e6))
            })
            .collect();
        let name = |(server, load, _): &(Server, f64, f64)| {
            format!("{}, {load} of the highest load", panel(server.cores))
        };
        let outcomes = run.in_parallel(&tasks, name, |&(server, _, per_s)| {
            let paper = Dispatch::SizeAware(LargeCores::Paper);
            [Dispatch::Stealing, paper].map(|way| simulate(&server, way, per_s, requests))
        });
        for ((server, load, _), [stealing, paper]) in tasks.iter().zip(outcomes) {
            let stolen = 100.0 * stealing.stolen as f64 / stealing.waited as f64;
            let series = System::Stealing.name();
            run.add(Point::new(place(server, STOLEN), series, *load, stolen));
            let Some((_, plan)) = paper.plans.last() else {
                anyhow::bail!("a run has a plan");
            };
            let (large, _) = large_cores(plan);
            let series = System::Paper.name();
            run.add(Point::new(
                place(server, LARGE),
                series,
                *load,
                large as f64,
            ));
        }
        Ok(())
    }
}
