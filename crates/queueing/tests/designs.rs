//! Slices, bursts, and designs that the paper speaks of and does not build.

use glimmer_dispatch::LargeCores;
use glimmer_queueing::{Costs, Dispatch, Outcome, Server, Service, Trial, Trimodal, calibration};

const CORES: usize = 8;

fn workload() -> Trimodal {
    Trimodal::new(0.125, 500_000, 0.95)
}

fn run(server: Server, dispatch: Dispatch, offered_per_s: f64) -> Outcome {
    let trial = Trial {
        offered_per_s,
        requests: 200_000,
        seed: glimmer_seeds::seed(),
    };
    server.simulate(dispatch, &workload(), trial)
}

fn paper() -> Server {
    Server::new(CORES, calibration::COSTS, calibration::WIRE)
}

#[test]
fn with_slices_a_small_request_waits_for_less_than_a_large_one() {
    // At 30% of what the cores can do, where a few requests wait for a large one.
    let server = Server {
        wire: None,
        ..paper()
    };
    let [whole, sliced] =
        [server, server.slicing()].map(|server| run(server, Dispatch::Keyhash, 2e6));
    let ratio = sliced.p99_ns() / whole.p99_ns();
    assert!(ratio < 0.7, "{ratio}");
    // Everything is answered, and the packets cost what they cost.
    for outcome in [&whole, &sliced] {
        assert!(outcome.is_sustained(2e6));
    }
    let busy_ns = |outcome: &Outcome| -> f64 {
        let busy_ns: f64 = outcome.cores.iter().map(|core| core.busy_ns).sum();
        busy_ns / outcome.executed_per_s() / outcome.measured_ns * 1e9
    };
    let more = busy_ns(&sliced) / busy_ns(&whole);
    assert!((0.9..1.1).contains(&more), "{more}");
}

#[test]
fn requests_that_arrive_together_share_a_look() {
    let service = Service {
        execute_ns: 500.0,
        packet_ns: 0.0,
    };
    let costs = Costs {
        get: service,
        put: service,
        poll_ns: 3200.0,
        ..Costs::default()
    };
    for burst in [1, 16] {
        let server = Server {
            burst,
            ..Server::alone(costs)
        };
        // So low a load that bursts meet each other rarely.
        let outcome = run(server, Dispatch::Keyhash, 1e4);
        let each_ns = outcome.cores[0].busy_ns / outcome.cores[0].requests as f64;
        let wanted_ns = 500.0 + 3200.0 / f64::from(burst);
        let ratio = each_ns / wanted_ns;
        assert!((0.9..1.02).contains(&ratio), "{burst}: {each_ns}");
    }
}

#[test]
fn small_requests_by_size_are_handed_over() {
    let by_size = run(paper(), Dispatch::SmallBySize, 2e6);
    let (_, plan) = by_size.plans.last().unwrap();
    let small = plan.roles().iter().filter(|role| !role.reads.is_empty());
    let mut from = 0;
    for role in small {
        assert_eq!(role.sizes.start, from);
        from = role.sizes.end;
    }
    assert!(from > 1400, "{from}");
    let busy_ns = |outcome: &Outcome| outcome.cores.iter().map(|core| core.busy_ns).sum::<f64>();
    let plain = run(paper(), Dispatch::SizeAware(LargeCores::Paper), 2e6);
    assert!(busy_ns(&by_size) > 1.1 * busy_ns(&plain));
}

#[test]
fn large_cores_take_small_requests_where_the_design_says_so() {
    let taking = run(paper(), Dispatch::LargeTakeSmall(2), 3e6);
    let keeping = run(paper(), Dispatch::SizeAware(LargeCores::Fixed(2)), 3e6);
    assert_eq!(keeping.stolen, 0);
    assert!(taking.stolen > 1000, "{}", taking.stolen);
    for core in [6, 7] {
        assert!(taking.cores[core].requests > 10 * keeping.cores[core].requests);
    }
}
