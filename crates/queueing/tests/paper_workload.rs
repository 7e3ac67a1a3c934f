//! The paper's default workload on the paper's server (Minos, §5.3): with costs, the link and a
//! controller that makes the plan.

use glimmer_dispatch::LargeCores;
use glimmer_queueing::{Costs, Dispatch, Outcome, Server, Trial, Trimodal, calibration};

const CORES: usize = 8;
const AUTO: Dispatch = Dispatch::SizeAware(LargeCores::Auto);
const PAPER: Dispatch = Dispatch::SizeAware(LargeCores::Paper);

fn run(costs: Costs, dispatch: Dispatch, offered_per_s: f64, requests: u64, seed: u64) -> Outcome {
    let server = Server::new(CORES, costs, calibration::WIRE);
    let trial = Trial {
        offered_per_s,
        requests,
        seed,
    };
    let outcome = server.simulate(dispatch, &Trimodal::new(0.125, 500_000, 0.95), trial);
    let large = outcome.plans.last().map_or(0, |(_, plan)| {
        let roles = plan.roles().iter();
        roles.filter(|role| !role.sizes.is_empty()).count()
    });
    println!(
        "{dispatch:?}, {large} large cores: {:.1} µs, large {:.1} µs, {} lost",
        us(&outcome),
        outcome.large_p99_ns() / 1e3,
        outcome.lost
    );
    outcome
}

fn us(outcome: &Outcome) -> f64 {
    outcome.p99_ns() / 1e3
}

#[test]
fn size_aware_sharding_keeps_small_requests_from_waiting_for_large_ones() {
    let (offered_per_s, seed) = (3e6, glimmer_seeds::seed());
    let run = |dispatch| run(calibration::COSTS, dispatch, offered_per_s, 600_000, seed);
    let [keyhash, paper, auto] = [Dispatch::Keyhash, PAPER, AUTO].map(run);
    for outcome in [&keyhash, &paper, &auto] {
        assert_eq!(outcome.lost, 0);
        let answered = outcome.answered_per_s() / offered_per_s;
        assert!((answered - 1.0).abs() < 0.02, "{answered}");
    }
    assert!(us(&keyhash) > 20.0 * us(&paper));
    // Its large core helps the small ones, and their replies do not wait for large ones.
    assert!(us(&auto) < us(&paper));
}

/// If a request costs its packets and nothing else, large ones take 1.46 of 8 cores, and the
/// formula gives them one.
#[test]
fn auto_relieves_a_core_that_the_formula_overloads() {
    let (costs, seed) = (Costs::only_packets(1000.0), glimmer_seeds::seed());
    let run = |dispatch| run(costs, dispatch, 5e6, 1_500_000, seed);
    let [paper, auto] = [PAPER, AUTO].map(run);
    // How much of the first epoch, with its one large core, is among the requests depends on the
    // seed.
    assert!(paper.large_p99_ns() > 2.0 * auto.large_p99_ns());
    assert_eq!(auto.lost, 0);
    assert!(us(&auto) < 20.0);
}

/// One request in twenty is for a large value. The percentile is one of them, so the rule of the
/// paper makes none of them large.
#[test]
fn auto_protects_small_requests_also_where_large_ones_are_many() {
    let server = Server::new(CORES, calibration::COSTS, calibration::WIRE);
    let seed = glimmer_seeds::seed();
    let trial = Trial {
        offered_per_s: 2e5,
        requests: 400_000,
        seed,
    };
    let workload = Trimodal::new(5.0, 500_000, 0.95);
    let small_p99_ns = |dispatch| {
        let outcome = server.simulate(dispatch, &workload, trial);
        assert_eq!(outcome.lost, 0, "{dispatch:?}");
        let p99_ns = outcome.small.value_at_quantile(0.99) as f64;
        println!(
            "{dispatch:?}: small {p99_ns:.0} ns, large {:.0} ns",
            outcome.large_p99_ns()
        );
        p99_ns
    };
    let [keyhash, paper, auto] = [Dispatch::Keyhash, PAPER, AUTO].map(small_p99_ns);
    assert!(3.0 * auto < keyhash);
    assert!(3.0 * auto < paper);
}
