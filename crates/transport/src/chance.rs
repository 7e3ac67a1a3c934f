//! Random decisions determined by a seed.

use std::ops::RangeInclusive;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). It is
/// implemented here so that the server, which needs no random numbers, is not built with a library
/// for them.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Whether an event of this probability happens. Always draws a number.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 bits are the precision of a float of this magnitude.
        let drawn = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        drawn < probability
    }

    /// A number in a range, uniform up to a bias of the range's length in 2^64. For an empty range,
    /// its start.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        let count = u128::from(last.saturating_sub(first)) + 1;
        let place = (u128::from(self.next()) * count) >> 64;
        first + place as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_happens_and_what_is_impossible_does_not() {
        let mut chance = Chance::new(1);
        assert!((0..1000).all(|_| chance.happens(1.0) && !chance.happens(0.0)));
        let halves = (0..10_000).filter(|_| chance.happens(0.5)).count();
        assert!((4_800..5_200).contains(&halves), "{halves}");
    }

    #[test]
    fn numbers_cover_their_range() {
        let mut chance = Chance::new(1);
        let mut counts = [0; 5];
        for _ in 0..10_000 {
            counts[chance.within(10..=14) as usize - 10] += 1;
        }
        assert!(
            counts.iter().all(|count| (1_800..2_200).contains(count)),
            "{counts:?}"
        );
        assert_eq!(chance.within(7..=7), 7);
        assert_eq!(chance.within(RangeInclusive::new(7, 3)), 7);
        chance.within(0..=u64::MAX);
    }

    /// The values of the paper's reference implementation.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut chance = Chance::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([chance.next(), chance.next()], expected);
    }
}
