//! Which key is asked for next.

use rand::Rng;
use rand_distr::{Distribution, Zipf};

/// The law that key numbers `0..keys` are drawn from. Number 0 is the most popular one; the servers hash keys, so neighbours in
/// popularity are no neighbours in memory.
#[derive(Clone, Copy, Debug)]
pub enum Popularity {
    /// Every key alike.
    Uniform {
        /// How many keys there are.
        keys: u32,
    },
    /// The key of rank `r`, counted from one, is drawn in proportion to `r^-exponent`, exactly: rejection sampling, no table.
    Zipf {
        /// The law, prepared.
        law: Zipf<f64>,
    },
}

impl Popularity {
    /// All keys alike.
    pub fn uniform(keys: u32) -> Self {
        assert!(keys > 0, "a workload has at least one key");
        Self::Uniform { keys }
    }

    /// Zipf's law; YCSB and MICA (§5.1) use the exponent 0.99.
    pub fn zipf(keys: u32, exponent: f64) -> Self {
        assert!(keys > 0, "a workload has at least one key");
        Self::Zipf {
            law: Zipf::new(f64::from(keys), exponent).expect("a positive number of keys"),
        }
    }

    /// Draws a key number.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        match self {
            Self::Uniform { keys } => rng.random_range(0..*keys),
            Self::Zipf { law } => law.sample(rng) as u32 - 1,
        }
    }

    /// Draws many key numbers beforehand, for loops that must not spend time on drawing.
    pub fn draws(&self, rng: &mut impl Rng, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.draw(rng)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    #[test]
    fn the_first_ranks_follow_zipfs_law() {
        const DRAWS: usize = 1 << 20;
        for (keys, exponent) in [
            (10_000u32, 0.5),
            (10_000, 0.99),
            (1_000_000, 0.99),
            (10_000, 1.2),
        ] {
            let normalisation: f64 = (1..=keys).map(|rank| f64::from(rank).powf(-exponent)).sum();
            let mut seen = vec![0u64; keys as usize];
            let law = Popularity::zipf(keys, exponent);
            for key in law.draws(&mut SmallRng::seed_from_u64(11), DRAWS) {
                seen[key as usize] += 1;
            }
            for rank in 1..=50u32 {
                let share = f64::from(rank).powf(-exponent) / normalisation;
                let expected = share * DRAWS as f64;
                let deviation = (expected * (1.0 - share)).sqrt();
                let off = (seen[rank as usize - 1] as f64 - expected).abs();
                assert!(
                    off < 5.0 * deviation,
                    "{keys} keys, exponent {exponent}, rank {rank}: seen {}, expected {expected:.0}",
                    seen[rank as usize - 1]
                );
            }
        }
    }

    #[test]
    fn uniform_draws_cover_all_keys_alike() {
        let mut seen = [0u32; 64];
        let draws = Popularity::uniform(64).draws(&mut SmallRng::seed_from_u64(5), 64 * 4096);
        draws.iter().for_each(|&key| seen[key as usize] += 1);
        // Five standard deviations of a count with mean 4096.
        assert!(
            seen.iter().all(|&count| count.abs_diff(4096) < 5 * 64),
            "{seen:?}"
        );
    }
}
