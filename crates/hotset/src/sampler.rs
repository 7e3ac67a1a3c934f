//! Which reads are sampled.

/// Chooses one read of a number, at random distances, so that no rhythm of the clients coincides
/// with it. A read that is not chosen costs one subtraction.
#[derive(Clone, Debug)]
pub struct Sampler {
    every: u32,
    left: u32,
    random: Random,
}

/// Marsaglia's xorshift.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number below this one, each as likely as any other.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let scaled = (self.0 >> 32) * u64::from(bound);
        (scaled >> 32) as u32
    }
}

impl Sampler {
    /// One read of `every`, at least one. Different workers have different seeds.
    pub fn new(every: u32, seed: u64) -> Sampler {
        let mut sampler = Sampler {
            every: every.max(1),
            left: 1,
            random: Random::new(seed),
        };
        sampler.left = sampler.distance();
        sampler
    }

    /// Whether this read is sampled.
    #[inline(always)]
    pub fn takes(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.restart()
    }

    #[cold]
    fn restart(&mut self) -> bool {
        self.left = self.distance();
        true
    }

    /// How many reads further the next sampled one is: from 1 to 2 `every` - 1, each as likely as
    /// any other: `every` on average.
    pub fn distance(&mut self) -> u32 {
        1 + self.random.below(2 * self.every - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_is_taken() {
        for every in [1, 2, 8, 100] {
            let mut sampler = Sampler::new(every, 42);
            let taken = (0..100_000 * every).filter(|_| sampler.takes()).count();
            assert!(taken.abs_diff(100_000) < 1000, "{every}: {taken}");
        }
    }

    #[test]
    fn distances_vary() {
        let mut sampler = Sampler::new(8, 7);
        let mut seen = [false; 16];
        let mut distance = 0;
        for _ in 0..10_000 {
            distance += 1;
            if sampler.takes() {
                seen[distance] = true;
                distance = 0;
            }
        }
        assert!(seen[1..16].iter().all(|&seen| seen) && !seen[0]);
    }
}
