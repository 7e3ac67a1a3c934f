//! Early binding is one M/G/1 queue for each core, for which the exact latencies are known.

use glimmer_dispatch::{AccessMode, Layout, PartitionMap, Policy, Settings, named};
use glimmer_queueing::{Bimodal, Bounds, Costs, Outcome, Run, Steer};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const UNIT_NS: f64 = 1000.0;
const CORES: usize = 8;
const LARGE_SHARE: f64 = 0.00125;

/// p99 in units of a small request's service time: by load, for K = 1, 10, 100 and 1000. Computed
/// by inverting the Pollaczek-Khinchine transform.
const EXACT: [(f64, [f64; 4]); 5] = [
    (0.1, [2.0, 2.0, 29.6, 880.0]),
    (0.3, [2.9, 3.3, 84.4, 1402.0]),
    (0.5, [4.3, 5.9, 98.4, 2248.0]),
    (0.7, [7.5, 10.4, 151.0, 4053.0]),
    (0.8, [11.4, 14.2, 200.0, 6235.0]),
];
const LARGE: [u32; 4] = [1, 10, 100, 1000];

/// Independent runs, whose spread says how far their percentile may be from the exact one.
const RUNS: u64 = 20;
/// Standard errors that are allowed. With so few runs they follow Student's distribution, in which
/// more than this many have a probability of 5e-7.
const ERRORS_MAX: f64 = 7.4;
/// What the exact values and those of the histograms are rounded by: an absolute and a relative
/// part.
const ROUNDING: [f64; 2] = [0.05, 0.002];

fn simulate(
    policy: &dyn Policy,
    load: f64,
    large_packets: u32,
    requests: u64,
    seed: u64,
) -> Outcome {
    let layout = Layout {
        map: PartitionMap::new(CORES, CORES),
        access: AccessMode::Crcw,
    };
    let workload = Bimodal {
        large_share: LARGE_SHARE,
        large_packets,
    };
    let run = Run {
        plan: policy.plan(layout),
        adaptive: None,
        workload: &workload,
        steer: Steer::ByKey,
        costs: Costs::only_packets(UNIT_NS),
        wire: None,
        slice_bytes: u32::MAX,
        burst: 1,
        held: None,
        reply_share: 1.0,
        window_ns: None,
        bounds: Bounds::NONE,
        offered_per_s: load * CORES as f64 / (workload.packets_mean() * UNIT_NS) * 1e9,
        warm_up: requests / 5,
        requests,
        seed,
    };
    run.simulate()
}

/// The p99 of all runs together, and its standard error. The error is taken from how far each run
/// is from all of them and not from their mean, as the percentile of a short run tends to one side.
fn p99(runs: &[Outcome]) -> [f64; 2] {
    let mut all = runs[0].clone();
    for run in &runs[1..] {
        all.small.add(&run.small).expect("equal bounds");
        all.large.add(&run.large).expect("equal bounds");
    }
    let together = all.p99_ns() / UNIT_NS;
    let apart = runs.iter().map(|run| run.p99_ns() / UNIT_NS - together);
    let squares: f64 = apart.map(|difference| difference * difference).sum();
    let count = runs.len() as f64;
    [together, (squares / (count * (count - 1.0))).sqrt()]
}

#[test]
fn early_binding_has_the_latencies_of_exact_arithmetic() {
    let mut seeds = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let policy = named("keyhash", &Settings::DEFAULT).unwrap();
    let mut wrong = Vec::new();
    for (load, exact) in EXACT {
        for (large, exact) in LARGE.into_iter().zip(exact) {
            let requests = match large {
                // The higher the load, the longer the busy periods, and the more of them tell.
                1000 if load > 0.75 => 20_000_000,
                1000 if load > 0.6 => 10_000_000,
                1000 => 6_000_000,
                // Where hardly more than 1% wait for a large request, the percentile is sensitive.
                100 if load < 0.2 => 6_000_000,
                10 | 100 => 2_500_000,
                // The percentile of a short run is seldom far too high and often a little too low,
                // and where all come out low, their spread does, too.
                1 if load > 0.6 => 2_500_000,
                _ => 500_000,
            };
            let run = |_| simulate(&*policy, load, large, requests / RUNS, seeds.random());
            let runs: Vec<Outcome> = (0..RUNS).map(run).collect();
            let [found, error] = p99(&runs);
            let allowed = ERRORS_MAX * error + ROUNDING[0] + ROUNDING[1] * exact;
            let line = format!(
                "load {load}, K = {large}: {found:.1}, exactly {exact}, give or take {allowed:.1}"
            );
            println!("{line}");
            if (found - exact).abs() > allowed {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
