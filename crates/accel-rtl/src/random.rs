//! Random numbers of a test.

pub use glimmer_seeds::each_seed;

use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Random numbers from a seed.
pub fn from_seed(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}
