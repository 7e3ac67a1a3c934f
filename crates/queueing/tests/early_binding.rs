//! Early binding is one M/G/1 queue for each core, for which the exact latencies are known.

use glimmer_dispatch::{AccessMode, Layout, PartitionMap, Policy, Settings, named};
use glimmer_queueing::{Bimodal, Bounds, Costs, Run, Steer};

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

fn p99(policy: &dyn Policy, load: f64, large_packets: u32, requests: u64) -> f64 {
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
        reply_share: 1.0,
        window_ns: None,
        bounds: Bounds::NONE,
        offered_per_s: load * CORES as f64 / (workload.packets_mean() * UNIT_NS) * 1e9,
        warm_up: requests / 10,
        requests,
        seed: 1,
    };
    run.simulate().p99_ns() / UNIT_NS
}

#[test]
fn early_binding_has_the_latencies_of_exact_arithmetic() {
    let mut wrong = Vec::new();
    for (load, exact) in EXACT {
        for (large, exact) in LARGE.into_iter().zip(exact) {
            let (requests, allowed) = match large {
                // The higher the load, the longer the busy periods, and the more of them tell.
                1000 if load > 0.75 => (30_000_000, 0.10),
                1000 if load > 0.6 => (15_000_000, 0.10),
                1000 => (6_000_000, 0.10),
                // Where hardly more than 1% wait for a large request, the percentile is sensitive.
                100 if load < 0.2 => (6_000_000, 0.05),
                10 | 100 => (2_500_000, 0.05),
                _ => (500_000, 0.05),
            };
            let found = p99(
                &*named("keyhash", &Settings::DEFAULT).unwrap(),
                load,
                large,
                requests,
            );
            println!("load {load}, K = {large}: {found:.1}, exactly {exact}");
            if (found / exact - 1.0).abs() > allowed {
                wrong.push(format!(
                    "load {load}, K = {large}: {found:.1} and not {exact}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
