//! The seed of a test.

use rand::SeedableRng;
use rand::rngs::SmallRng;

/// The seed in `GLIMMER_SEED`, or a random one. It is printed.
///
/// # Panics
///
/// If `GLIMMER_SEED` is no number.
pub fn seed() -> u64 {
    let seed = match std::env::var("GLIMMER_SEED") {
        Ok(seed) => seed.parse().expect("GLIMMER_SEED is a number"),
        Err(_) => rand::random(),
    };
    println!("seed {seed}");
    seed
}

/// Random numbers from a seed.
pub fn from_seed(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}
