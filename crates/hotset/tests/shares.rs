//! The share of reads that the accelerator answers, with the default policy and 1,024 slots, for
//! the popularity laws of the literature. Everything is in virtual time, and every run prints its
//! seed.
//!
//! The paper names its distributions without their parameters (§VII-A). Here ETC has a million keys
//! under Zipf's law of exponent 0.99, with one request in 800 for a value that no slot holds, as
//! Minos (§5.2) models Facebook's pool. Pareto is so flat that the 1,024 most popular keys together
//! get 15% of the requests, which leaves little above the 11% that the paper reports.
#![cfg(not(loom))]

use glimmer_hotset::policies::POLICIES;
use glimmer_hotset::virtual_time::{Drawn, Trial};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

const SLOTS: usize = 1024;

/// A workload: draws key numbers. A key with the highest bit set has a value that is too long.
struct Workload<'a> {
    name: &'a str,
    policy: &'a str,
    writes: f64,
    draw: Box<dyn FnMut(&mut SmallRng) -> u64>,
}

fn zipf(keys: u64) -> Box<dyn FnMut(&mut SmallRng) -> u64> {
    let law = Zipf::new(keys as f64, 0.99).unwrap();
    Box::new(move |rng| law.sample(rng) as u64)
}

const TOO_LONG: u64 = 1 << 63;

/// The share of the reads that were answered.
fn share(workload: Workload<'_>) -> f64 {
    let Workload {
        name,
        policy,
        writes,
        mut draw,
    } = workload;
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let (_, make) = POLICIES.iter().find(|(known, _)| *known == policy).unwrap();
    let trial = Trial {
        slots: SLOTS,
        policy: make(SLOTS, 0),
        seeds: rng.random(),
        warm_up: 3_000_000,
        counted: 1_000_000,
    };
    let found = trial.run(|| {
        let number = draw(&mut rng);
        Drawn {
            number,
            value_bytes: if number & TOO_LONG == 0 { 8 } else { 100_000 },
            is_change: rng.random_bool(writes),
        }
    });
    let offered = found.offers as f64 / found.reads as f64;
    println!(
        "{name}, {policy}: {:.4}, offers per read {offered:.4}, quarantined {}",
        found.share(),
        found.quarantined
    );
    found.share()
}

fn counting(name: &str, writes: f64, draw: Box<dyn FnMut(&mut SmallRng) -> u64>) -> f64 {
    share(Workload {
        name,
        policy: "counting",
        writes,
        draw,
    })
}

#[test]
fn zipf_with_and_without_changes() {
    let alone = counting("zipf 0.99", 0.0, zipf(1_000_000));
    assert!(alone >= 0.45, "{alone}");
    let changed = counting("zipf 0.99, 5% changes", 0.05, zipf(1_000_000));
    assert!(changed >= 0.9 * alone, "{changed} of {alone}");
}

#[test]
fn etc() {
    let mut others = zipf(1_000_000);
    let draw = move |rng: &mut SmallRng| {
        if rng.random_bool(0.00125) {
            return TOO_LONG | rng.random_range(0..625);
        }
        others(rng)
    };
    let share = counting("etc", 0.05, Box::new(draw));
    assert!(share >= 0.40, "{share}");
}

#[test]
fn pareto() {
    // A key for every unit of the law 1 - (1 + x / scale)^-shape.
    const SHAPE: f64 = 1.16;
    let scale = SLOTS as f64 / (0.85f64.powf(-1.0 / SHAPE) - 1.0);
    let draw = move |rng: &mut SmallRng| {
        let rest = 1.0 - rng.random::<f64>();
        (scale * (rest.powf(-1.0 / SHAPE) - 1.0)) as u64
    };
    let share = counting("pareto", 0.0, Box::new(draw));
    assert!(share >= 0.11, "{share}");
}

#[test]
fn uniform_keys_gain_nothing() {
    let draw = |rng: &mut SmallRng| rng.random_range(0..1_000_000);
    let share = counting("uniform", 0.0, Box::new(draw));
    assert!(share < 0.002, "{share}");
}

#[test]
fn the_papers_policy_gains_less() {
    let zipf = |policy| {
        share(Workload {
            name: "zipf 0.99",
            policy,
            writes: 0.0,
            draw: zipf(1_000_000),
        })
    };
    let (paper, counting) = (zipf("paper"), zipf("counting"));
    assert!(paper > 0.2 && paper < counting, "{paper} {counting}");
}
