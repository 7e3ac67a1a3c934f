//! Zipf's law, exact and fast, for any exponent and any number of keys.

use rand::Rng;
use rand_distr::{Distribution, weighted::WeightedAliasIndex};

/// A stratum is at most this fraction (1 / n) of its first rank wide.
const STRATUM_DIVISOR: u64 = 64;
/// Strata of at most this many ranks are summed rank by rank. Wider ones begin so far out that the
/// Euler-Maclaurin formula is exact up to rounding.
const SUMMED_RANKS_MAX: u64 = 64;
/// Largest exponent. With a larger one, only the first rank would be drawn.
pub const EXPONENT_MAX: f64 = 64.0;

/// Draws ranks `1..=ranks`, rank `r` with a probability proportional to `r^-exponent`.
///
/// The ranks are divided into strata: single ranks at first, then ever wider runs in which the
/// probability falls by a few percent at most. The alias method (Walker 1977, Vose 1991) picks a
/// stratum in constant time with its exact probability. Within the stratum, a rank is drawn
/// uniformly and accepted in proportion to its own probability. In nearly all cases the acceptance
/// is known without computing a power (the squeeze of rejection-inversion: Hörmann & Derflinger
/// 1996). There are about a thousand strata for 10^8 ranks, so the tables stay in a core's
/// first-level cache. The law is exact up to the rounding of `f64`.
#[derive(Clone, Debug)]
pub struct Zipf {
    pick: WeightedAliasIndex<f64>,
    strata: Box<[Stratum]>,
    exponent: f64,
}

#[derive(Clone, Copy, Debug)]
struct Stratum {
    first: u64,
    ranks: u64,
    /// The probability of the stratum's last rank relative to its first. Below it, every rank of
    /// the stratum is accepted.
    squeeze: f64,
}

impl Stratum {
    /// The probability of the rank at `place`, relative to the first rank.
    fn acceptance(&self, place: u64, exponent: f64) -> f64 {
        (place as f64 / self.first as f64 + 1.0).powf(-exponent)
    }

    /// The sum of `r^-exponent` over the stratum.
    fn weight(&self, exponent: f64) -> f64 {
        let law = |rank: f64| rank.powf(-exponent);
        let (first, end) = (self.first as f64, (self.first + self.ranks) as f64);
        if self.ranks <= SUMMED_RANKS_MAX {
            return (self.first..self.first + self.ranks)
                .map(|rank| law(rank as f64))
                .sum();
        }
        let log_ratio = (self.ranks as f64 / first).ln_1p();
        let power = 1.0 - exponent;
        // The integral of x^-exponent from first to end, without loss of precision where the
        // exponent is near one.
        let integral = match power * log_ratio {
            small if small.abs() < 1e-12 => first.powf(power) * log_ratio,
            other => first.powf(power) * other.exp_m1() / power,
        };
        let slope = |rank: f64| -exponent * law(rank) / rank;
        integral + (law(first) - law(end)) / 2.0 + (slope(end) - slope(first)) / 12.0
    }
}

impl Zipf {
    /// The law over `ranks` ranks. The exponent is positive and at most [`EXPONENT_MAX`].
    pub fn new(ranks: u64, exponent: f64) -> Zipf {
        assert!(ranks > 0, "there is at least one rank");
        assert!(
            exponent > 0.0 && exponent <= EXPONENT_MAX,
            "an exponent above 0 and at most {EXPONENT_MAX}"
        );
        let mut strata = Vec::new();
        let mut first = 1;
        while first <= ranks {
            let width = (first / STRATUM_DIVISOR).max(1).min(ranks - first + 1);
            let mut stratum = Stratum {
                first,
                ranks: width,
                squeeze: 1.0,
            };
            stratum.squeeze = stratum.acceptance(width - 1, exponent);
            strata.push(stratum);
            first += width;
        }
        let weights = strata
            .iter()
            .map(|stratum| stratum.weight(exponent))
            .collect();
        Zipf {
            pick: WeightedAliasIndex::new(weights).expect("the first rank has a weight"),
            strata: strata.into(),
            exponent,
        }
    }

    /// Draws a rank, counted from one.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u64 {
        let stratum = self.strata[self.pick.sample(rng)];
        if stratum.ranks == 1 {
            return stratum.first;
        }
        // After a rejection, the next rank is drawn from the same stratum: its weight has been
        // accounted for.
        loop {
            // The high word of the product is a position in the stratum; the low word is the
            // remaining randomness.
            let product = u128::from(rng.next_u64()) * u128::from(stratum.ranks);
            let (place, rest) = ((product >> 64) as u64, product as u64);
            let chance = rest as f64 * (1.0 / 18_446_744_073_709_551_616.0);
            if chance < stratum.squeeze || chance < stratum.acceptance(place, self.exponent) {
                return stratum.first + place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::SmallRng};

    /// Ranks that are checked individually.
    const RANKS_SHOWN: usize = 100;
    /// Enough draws to notice that ranks of wide strata are drawn too rarely by three in a
    /// thousand.
    const DRAWS: u64 = 1_000_000;

    /// The normalisation of the exact law: a million terms one by one, and for the rest the
    /// integral with its first corrections, the next of which is below 10^-20.
    fn normalisation(ranks: u64, exponent: f64) -> f64 {
        let law = |rank: f64| rank.powf(-exponent);
        let (summed, last) = (ranks.min(1_000_000), ranks as f64);
        let head: f64 = (1..=summed).rev().map(|rank| law(rank as f64)).sum();
        if summed == ranks {
            return head;
        }
        let first = summed as f64;
        let integral = match exponent {
            1.0 => (last / first).ln(),
            _ => (last.powf(1.0 - exponent) - first.powf(1.0 - exponent)) / (1.0 - exponent),
        };
        head + integral + (law(last) - law(first)) / 2.0
            - exponent * (law(last) / last - law(first) / first) / 12.0
    }

    #[test]
    fn the_weights_of_the_strata_are_sums_of_the_law() {
        for exponent in [0.01, 0.5, 0.99, 1.0, 1.0 + 1e-13, 1.2, 3.0] {
            for (first, ranks) in [(1, 1), (7, 3), (6400, 100), (1_000_000, 15_625)] {
                let stratum = Stratum {
                    first,
                    ranks,
                    squeeze: 1.0,
                };
                let exact: f64 = (first..first + ranks)
                    .rev()
                    .map(|rank| (rank as f64).powf(-exponent))
                    .sum();
                let off = (stratum.weight(exponent) / exact - 1.0).abs();
                assert!(
                    off < 1e-12,
                    "exponent {exponent}, {ranks} from {first}: off by {off:e}"
                );
            }
        }
    }

    #[test]
    fn strata_cover_every_rank_once() {
        for ranks in [1, 2, 127, 128, 129, 10_000, 100_000_000, 1 << 40] {
            let law = Zipf::new(ranks, 0.99);
            let mut next = 1;
            for stratum in &law.strata {
                assert_eq!(stratum.first, next);
                next += stratum.ranks;
            }
            assert_eq!(next, ranks + 1);
            assert!(law.strata.len() < 2500, "{} strata", law.strata.len());
        }
    }

    #[test]
    fn observed_frequencies_follow_the_exact_law() {
        let seed = std::env::var("SEED")
            .ok()
            .map_or(20_261_121, |seed| seed.parse().expect("a number"));
        println!("SEED={seed}");
        for ranks in [10_000u64, 100_000_000] {
            for exponent in [0.5, 0.99, 1.0, 1.2] {
                let law = Zipf::new(ranks, exponent);
                let mut rng = SmallRng::seed_from_u64(seed);
                // The first ranks individually, then decades of ranks, so that the tail of the law
                // is checked too.
                let mut edges: Vec<u64> = (1..=RANKS_SHOWN as u64).collect();
                edges.extend(
                    [200, 500, 1000, 3000, 10_000, 100_000, 1_000_000, 10_000_000]
                        .into_iter()
                        .filter(|&edge| edge < ranks),
                );
                edges.push(ranks);
                let mut seen = vec![0u64; edges.len()];
                for _ in 0..DRAWS {
                    let rank = law.draw(&mut rng);
                    seen[edges.partition_point(|&edge| edge < rank)] += 1;
                }
                let total = normalisation(ranks, exponent);
                let mut chi_square = 0.0;
                let mut from = 1;
                for (&edge, &count) in edges.iter().zip(&seen) {
                    let weight = match edge - from {
                        0 => (edge as f64).powf(-exponent),
                        _ => normalisation(edge, exponent) - normalisation(from - 1, exponent),
                    };
                    let share = weight / total;
                    let expected = share * DRAWS as f64;
                    let deviation = (expected * (1.0 - share)).sqrt();
                    let off = (count as f64 - expected).abs();
                    assert!(
                        off < 5.0 * deviation + 1.0,
                        "{ranks} ranks, exponent {exponent}, up to rank {edge}: {count} instead of \
                         {expected:.1}"
                    );
                    chi_square += (count as f64 - expected).powi(2) / expected.max(1.0);
                    from = edge + 1;
                }
                // Wilson and Hilferty: the cube root of chi-square divided by its degrees of
                // freedom is nearly normal.
                let freedom = (edges.len() - 1) as f64;
                let spread = (2.0 / (9.0 * freedom)).sqrt();
                let deviations = ((chi_square / freedom).cbrt() - (1.0 - spread * spread)) / spread;
                println!(
                    "{ranks} ranks, exponent {exponent}: chi-square {chi_square:.0} with {freedom} \
                     degrees of freedom"
                );
                assert!(
                    deviations < 4.5,
                    "chi-square {chi_square} with {freedom} degrees of freedom"
                );
            }
        }
    }

    #[test]
    fn steep_laws_and_few_ranks_work() {
        let mut rng = SmallRng::seed_from_u64(1);
        assert!((0..1000).all(|_| Zipf::new(1, 0.5).draw(&mut rng) == 1));
        let steep = Zipf::new(1 << 40, EXPONENT_MAX);
        assert!((0..1000).all(|_| steep.draw(&mut rng) == 1));
        let two = Zipf::new(2, 1.0);
        let firsts = (0..30_000).filter(|_| two.draw(&mut rng) == 1).count();
        assert!(firsts.abs_diff(20_000) < 5 * 82, "{firsts}");
    }
}
