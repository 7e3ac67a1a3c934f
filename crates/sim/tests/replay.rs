//! A seed decides everything that happens.

use glimmer_sim::{Scenario, run};

/// Seeds that are run twice.
const SEEDS: std::ops::Range<u64> = 0..12;

#[test]
fn the_same_seed_is_the_same_run() {
    let mut traces = Vec::new();
    for seed in SEEDS {
        let scenario = Scenario::from_seed(seed);
        let (one, other) = (run(&scenario), run(&scenario));
        let told = |report: &glimmer_sim::Report| (report.trace, report.steps, report.calls.len());
        assert_eq!(told(&one), told(&other), "seed {seed}");
        assert!(one.failure.is_none(), "seed {seed}: {:?}", one.failure);
        traces.push(one.trace);
    }
    traces.dedup();
    assert_eq!(traces.len(), SEEDS.count(), "another seed is another run");
}
