//! The DMA engine's rings with a driver beside them: full and empty rings, wrap, odd lengths,
//! runts, frames that are too long, interrupts, and back-pressure everywhere. `planted` has bugs
//! that these tests must find.

mod memory;
mod planted;
mod receive;
mod transmit;

use rand::Rng;
use rand::rngs::SmallRng;
use std::ops::RangeInclusive;

/// How eager everybody is: probabilities per cycle.
#[derive(Clone, Debug)]
struct Pace {
    /// The source offers the next beat.
    offer: f64,
    /// The sink takes a beat.
    take: f64,
    /// The driver posts a descriptor.
    post: f64,
    /// The driver looks whether there is an interrupt.
    look: f64,
    /// Memory takes a request.
    memory: f64,
    /// Cycles until its answer.
    latency: RangeInclusive<u64>,
}

impl Pace {
    const FAST: Pace = Pace {
        offer: 1.0,
        take: 1.0,
        post: 1.0,
        look: 1.0,
        memory: 1.0,
        latency: 30..=50,
    };

    fn random(rng: &mut SmallRng) -> Pace {
        let mut probability = || [1.0, 0.5, 0.1, 0.02][rng.random_range(0..4)];
        Pace {
            offer: probability(),
            take: probability(),
            post: probability(),
            look: probability(),
            memory: probability(),
            latency: [1..=1, 30..=50, 1..=200][rng.random_range(0..3)].clone(),
        }
    }
}

/// Lengths of frames around everything that matters: a beat, a line, the shortest and the longest
/// frame.
fn lengths() -> Vec<usize> {
    let around = |length: usize| length - 9..length + 10;
    let all = (1..=140).chain(around(192)).chain(around(1514));
    all.collect()
}

fn random_lengths(rng: &mut SmallRng, count: usize, max: usize) -> Vec<usize> {
    let one = |_| match rng.random_range(0..4) {
        0 => rng.random_range(1..=16),
        1 => rng.random_range(1..=max),
        _ => rng.random_range(50..=130),
    };
    (0..count).map(one).collect()
}
