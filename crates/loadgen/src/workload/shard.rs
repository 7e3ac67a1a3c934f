//! The keys that one of several servers has, where clients divide keys that follow Zipf's law.

use rand::Rng;
use rand_distr::{Distribution, weighted::WeightedAliasIndex};

use super::value::mix;

/// The most popular keys of all shards, which a hash places. The others are dealt to the shards in
/// turn, as a hash does up to a thousandth of the average load.
const HEAD_RANKS: u64 = 1 << 16;

/// Draws keys of one shard. The key numbers are ranks among the keys of the shard.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Picks one of the popular keys, or behind them all others.
    pick: WeightedAliasIndex<f64>,
    popular: u64,
    others: Others,
    share: f64,
}

/// Keys that are no longer popular. Their ranks among the keys of all shards have equal distances,
/// and each stands for the ranks around it.
#[derive(Clone, Copy, Debug)]
struct Others {
    count: u64,
    /// Half a distance below the first rank.
    begin: f64,
    distance: f64,
    /// 1 minus the exponent.
    power: f64,
    /// The integral of `x^-exponent` over all of them, over `begin^power`, times `power` unless
    /// that is zero.
    span: f64,
}

impl Others {
    fn new(count: u64, begin: f64, distance: f64, exponent: f64) -> Others {
        let power = 1.0 - exponent;
        let log_ratio = (count as f64 * distance / begin).ln_1p();
        Others {
            count,
            begin,
            distance,
            power,
            span: match power {
                0.0 => log_ratio,
                power => (power * log_ratio).exp_m1(),
            },
        }
    }

    /// The sum of their `r^-exponent`.
    fn weight(&self) -> f64 {
        let divisor = if self.power == 0.0 { 1.0 } else { self.power };
        self.begin.powf(self.power) * self.span / divisor / self.distance
    }

    fn draw(&self, rng: &mut impl Rng) -> u64 {
        let part = rng.random::<f64>() * self.span;
        let log_ratio = match self.power {
            0.0 => part,
            power => part.ln_1p() / power,
        };
        let behind = self.begin * log_ratio.exp_m1();
        ((behind / self.distance) as u64).min(self.count - 1)
    }
}

impl Shard {
    /// Shard number `shard` of `shards`, which has `keys` keys. All keys together follow Zipf's law
    /// with this exponent.
    pub fn new(keys: u64, exponent: f64, shard: u32, shards: u32) -> Shard {
        assert!(shard < shards, "shards are numbered from 0");
        let weight = |rank: u64| (rank as f64).powf(-exponent);
        let head = HEAD_RANKS.min(keys.saturating_mul(shards.into()));
        let place = |rank: &u64| (u128::from(mix(*rank)) * u128::from(shards)) >> 64;
        let ours = (1..=head).filter(|rank| place(rank) == u128::from(shard));
        let mut weights: Vec<f64> = ours.map(weight).take(keys as usize).collect();
        let popular = weights.len() as u64;
        let begin = head as f64 + 0.5;
        let others = Others::new(keys - popular, begin, shards.into(), exponent);
        weights.push(others.weight());
        // All shards have as many others.
        let total = (1..=head).map(weight).sum::<f64>() + f64::from(shards) * others.weight();
        Shard {
            share: weights.iter().sum::<f64>() / total,
            pick: WeightedAliasIndex::new(weights).expect("the most popular keys have weights"),
            popular,
            others,
        }
    }

    /// The share of all requests that ask for keys of this shard.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Draws a key number.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u64 {
        let picked = self.pick.sample(rng) as u64;
        match picked < self.popular {
            true => picked,
            false => self.popular + self.others.draw(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    const SHARDS: u32 = 4;
    const KEYS: u64 = 50_000;

    /// The shares of Zipf's law over as many keys as four shards have, summed by rank.
    fn zipf(exponent: f64, ranks: impl Iterator<Item = u64>) -> f64 {
        let weight = |rank: u64| (rank as f64).powf(-exponent);
        let all: f64 = (1..=KEYS * u64::from(SHARDS)).map(weight).sum();
        ranks.map(weight).sum::<f64>() / all
    }

    #[test]
    fn the_shards_together_are_zipfs_law() {
        for exponent in [0.5, 0.99, 1.0, 1.3] {
            let shards = (0..SHARDS).map(|shard| Shard::new(KEYS, exponent, shard, SHARDS));
            let shards: Vec<Shard> = shards.collect();
            let sum: f64 = shards.iter().map(Shard::share).sum();
            // The numbers of popular keys differ from shard to shard, and so do those of others.
            assert!((sum - 1.0).abs() < 1e-3, "{exponent}: {sum}");
            let popular: u64 = shards.iter().map(|shard| shard.popular).sum();
            assert_eq!(popular, HEAD_RANKS);
        }
    }

    #[test]
    fn keys_are_drawn_as_often_as_their_ranks_tell() {
        const DRAWS: usize = 400_000;
        for (exponent, seed) in [(0.99, 1), (1.0, 2), (0.6, 3)] {
            let shard = Shard::new(KEYS, exponent, 1, SHARDS);
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut seen = vec![0u32; KEYS as usize];
            for _ in 0..DRAWS {
                seen[shard.draw(&mut rng) as usize] += 1;
            }
            // Ranges of numbers, and the ranks of those keys among all keys.
            let popular = shard.popular;
            let place = |rank: &u64| (u128::from(mix(*rank)) * u128::from(SHARDS)) >> 64 == 1;
            let ranks: Vec<u64> = (1..=HEAD_RANKS).filter(place).collect();
            let others = |from: u64, to: u64| {
                (from..to).map(|place| HEAD_RANKS + 1 + place * u64::from(SHARDS))
            };
            let ranges = [
                (0..1, zipf(exponent, ranks[..1].iter().copied())),
                (1..popular, zipf(exponent, ranks[1..].iter().copied())),
                (popular..popular + 1000, zipf(exponent, others(0, 1000))),
                (popular..KEYS, zipf(exponent, others(0, KEYS - popular))),
            ];
            for (numbers, expected) in ranges {
                let count: u32 = seen[numbers.start as usize..numbers.end as usize]
                    .iter()
                    .sum();
                let expected = expected / shard.share * DRAWS as f64;
                // Six standard deviations, and a thousandth for the ranks between.
                let bound = 6.0 * expected.sqrt() + expected / 1000.0;
                let error = (f64::from(count) - expected).abs();
                assert!(
                    error < bound,
                    "{exponent}, {numbers:?}: {count} for {expected}"
                );
            }
        }
    }

    #[test]
    fn few_keys_are_all_popular() {
        let shard = Shard::new(3, 0.99, 0, 2);
        let mut rng = SmallRng::seed_from_u64(1);
        assert!((0..1000).all(|_| shard.draw(&mut rng) < 3));
        let whole = Shard::new(100, 0.99, 0, 1);
        assert!((whole.share() - 1.0).abs() < 1e-12);
        assert_eq!(whole.popular, 100);
        // The least weights that there are: the only key of most shards is not among the popular.
        for shard in 0..64 {
            let steep = Shard::new(1, 64.0, shard, 4096);
            assert_eq!(steep.draw(&mut rng), 0);
            assert!(steep.share() > 0.0);
        }
    }
}
