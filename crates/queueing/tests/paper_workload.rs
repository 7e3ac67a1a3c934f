//! The paper's default workload on the paper's server (Minos, §5.3): with costs, the link and a
//! controller that makes the plan.

use glimmer_dispatch::{
    AccessMode, Controller, LargeCores, Layout, PartitionMap, Settings, SizeAware, named,
};
use glimmer_queueing::{Adaptive, Bounds, Outcome, Run, Steer, Trimodal, calibration};

const CORES: usize = 8;
const OFFERED_PER_S: f64 = 3e6;
const REQUESTS: u64 = 600_000;

fn run(large_cores: Option<LargeCores>) -> Outcome {
    let layout = Layout {
        map: PartitionMap::new(16 * CORES, CORES),
        access: AccessMode::Crcw,
    };
    let controller = large_cores.map(|large_cores| {
        let policy = SizeAware::with(Settings {
            large_cores,
            ..Settings::DEFAULT
        });
        Controller::new(policy, layout)
    });
    let workload = Trimodal::new(0.125, 500_000, 0.95);
    let run = Run {
        plan: match &controller {
            Some(controller) => controller.plan().clone(),
            None => named("keyhash", &Settings::DEFAULT).unwrap().plan(layout),
        },
        adaptive: controller.map(|controller| Adaptive {
            controller,
            // The first epoch ends during the warm-up.
            epoch_ns: REQUESTS as f64 / 20.0 / OFFERED_PER_S * 1e9,
            epochs_max: usize::MAX,
        }),
        workload: &workload,
        steer: Steer::ByKey,
        costs: calibration::COSTS,
        wire: Some(calibration::WIRE),
        bounds: Bounds::SERVER,
        offered_per_s: OFFERED_PER_S,
        warm_up: REQUESTS / 10,
        requests: REQUESTS,
        seed: 1,
    };
    run.simulate()
}

#[test]
fn size_aware_sharding_keeps_small_requests_from_waiting_for_large_ones() {
    let keyhash = run(None);
    let size_aware = [LargeCores::Paper, LargeCores::Auto].map(|rule| run(Some(rule)));
    let us = |outcome: &Outcome| outcome.p99_ns() / 1e3;
    println!("keyhash {:.1} µs", us(&keyhash));
    assert_eq!(keyhash.lost, 0);
    // Where large cores take small requests as well, the gain is smaller.
    for (outcome, gain) in size_aware.iter().zip([5.0, 2.0]) {
        let (_, plan) = outcome.plans.last().unwrap();
        let large = plan.roles().iter().filter(|role| !role.sizes.is_empty());
        let large = large.count();
        println!(
            "{large} large cores: {:.1} µs, large {:.1} µs (keyhash {:.1}), {:.2} of the link",
            us(outcome),
            outcome.large_p99_ns() / 1e3,
            keyhash.large_p99_ns() / 1e3,
            outcome.link_utilisation()
        );
        assert!(us(&keyhash) > gain * us(outcome));
        assert_eq!(outcome.lost, 0);
        let answered = outcome.answered_per_s() / OFFERED_PER_S;
        assert!((answered - 1.0).abs() < 0.02, "{answered}");
    }
}
