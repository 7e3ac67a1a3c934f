//! The fuzz target `tls`, for a bounded number of inputs.

#[path = "support/hostile.rs"]
mod hostile;

use rand::{Rng, SeedableRng, rngs::SmallRng};

const INPUTS: usize = 300;

/// Pieces as the target takes them: mostly data and changes of keys, some of them like records.
fn input(rng: &mut SmallRng) -> Vec<u8> {
    let mut input = vec![rng.random()];
    for _ in 0..rng.random_range(0..12) {
        let kinds = if rng.random_bool(0.7) { 2 } else { 4 };
        let length: u8 = rng.random();
        input.extend([rng.random_range(0..kinds), length]);
        if rng.random() {
            input.extend([rng.random_range(19..25), 3, 3, 0]);
        }
        input.extend((0..length).map(|_| rng.random::<u8>()));
    }
    input
}

#[test]
fn no_input_is_too_strange() {
    let rng = &mut SmallRng::seed_from_u64(glimmer_seeds::seed());
    for _ in 0..INPUTS {
        hostile::talk(&input(rng));
    }
}
