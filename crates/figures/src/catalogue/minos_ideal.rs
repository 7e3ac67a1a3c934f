//! Minos, §6.1: the rivals of Minos with and without what dispatch and the link cost.

use anyhow::Result;
use glimmer_dispatch::Plan;
use glimmer_queueing::{Bounds, Costs, Outcome, Run as Simulation, Server, Steer, Wire};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Plot, Unit},
    simulated::{self, Case, Curve, Place, System, default_workload, late_binding},
};

const SYSTEMS: [System; 3] = [System::Keyhash, System::Handoff, System::Stealing];
const COSTED: &str = "with all costs";
const IDEAL: &str = "ideal";
const WITH_LINK: &str = "ideal, with the link";
const WITHOUT_LINK: &str = "with all costs, without the link";

/// The figure.
pub struct Ideal;

/// What only executing requests costs.
fn executing(costs: Costs) -> Costs {
    Costs {
        receive_ns: costs.receive_ns,
        get: costs.get,
        put: costs.put,
        ..Costs::default()
    }
}

/// The same system at the same load without the link.
fn without_link(place: &Place<'_>, requests: u64) -> Outcome {
    let Case {
        server, workload, ..
    } = place.case;
    let run = server.run(place.dispatch, workload, place.trial(requests));
    Simulation { wire: None, ..run }.simulate()
}

/// The same where nothing but executing requests takes time, and this link. Hand-off becomes late
/// binding: all cores take from one queue.
fn ideal(place: &Place<'_>, requests: u64, wire: Option<Wire>) -> Outcome {
    let Case {
        server,
        workload,
        system,
        ..
    } = place.case;
    let server = Server {
        costs: executing(server.costs),
        ..*server
    };
    let run = server.run(place.dispatch, workload, place.trial(requests));
    let (plan, steer): (Plan, Steer) = match system {
        System::Handoff => (late_binding(*run.plan.layout()), Steer::ToFirst),
        _ => (run.plan.clone(), run.steer),
    };
    let run = Simulation {
        plan,
        steer,
        wire,
        bounds: Bounds::NONE,
        ..run
    };
    run.simulate()
}

impl Figure for Ideal {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-ideal",
            title: "Latency by load: the rivals with and without costs of dispatch",
            source: "Minos (NSDI'19), §6.1",
            claim: "The curves of the rivals follow those of the ideal simulation, where dispatch \
                    costs nothing. So their design is the reason for their latency, and not how \
                    they are built.",
            here: "Simulated in virtual time, 8 cores, the paper's default workload. `with all \
                   costs` is Figure 3. In the ideal simulation, requests take the same time to \
                   receive and execute, and nothing else takes time: no polling, no queue \
                   between cores, no link. Its queues are unbounded, and hand-off becomes late \
                   binding, where all 8 cores take from one queue. Two lines are in between: the \
                   ideal one with the link, and all costs without it. The paper compares with \
                   its Figure 2, which has other service times.",
            kind: Kind::Simulated,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "dispatch",
                series: "simulation",
                x: "throughput, Mops",
                y: "p99, µs",
            },
            plot: Plot::lines("throughput, Mops", "p99")
                .unit(Unit::Microseconds)
                .log_y()
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let cases = simulated::cases(run, &SYSTEMS, &default_workload());
        let is_papers = |case: &Case| case.server.cores == simulated::CORES[0];
        let cases: Vec<Case> = cases.into_iter().filter(is_papers).collect();
        let curve = Curve {
            searched: run.pick(600_000, 20_000),
            requests: run.pick(1_500_000, 20_000),
            latency_ns: Outcome::p99_ns,
        };
        let places = curve.places(run, &cases);
        let name = |place: &Place<'_>| format!("ideal: {}", place.case);
        let found = run.in_parallel(&places, name, |place| {
            let link = place.case.server.wire;
            [
                (WITH_LINK, ideal(place, curve.requests, link)),
                (WITHOUT_LINK, without_link(place, curve.requests)),
                (IDEAL, ideal(place, curve.requests, None)),
            ]
        });
        for (place, others) in places.iter().zip(&found) {
            let panel = place.case.series();
            let all = [(COSTED, &place.outcome)].into_iter();
            for (series, outcome) in all.chain(others.iter().map(|(name, found)| (*name, found))) {
                let load = (place.offered_per_s / 1e4).round() / 100.0;
                let us = outcome.p99_ns() / 1e3;
                run.add(Point::new(panel, series, load, us));
            }
        }
        Ok(())
    }
}
