//! The popularity of keys: a sketch of how often each is read, and the hottest ones by name. The
//! server has it with and without an accelerator.

use crate::hot_keys::{HotKey, HotKeys};
use crate::sampler::Random;
use crate::sketch::Sketch;
use glimmer_base::Keyhash;
use glimmer_base::limits::{SKETCH_CELLS_PER_SLOT, SKETCH_READS_PER_SLOT};

/// Any number with many bits.
const RANDOM_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A read that was sampled.
#[derive(Clone, Copy, Debug)]
pub struct SampledRead<'a> {
    /// Hash of the key.
    pub keyhash: Keyhash,
    /// The key.
    pub key: &'a [u8],
    /// Length of the value that was found.
    pub value_bytes: usize,
}

/// See the module's text. Counts are in sampled reads.
#[derive(Debug)]
pub struct Popularity {
    sketch: Sketch,
    hot_keys: HotKeys,
    /// One read of this many is sampled.
    sample_every: u32,
    /// Draws samples of reads that are credited.
    random: Random,
    /// All counts together, and the bound at which they are halved.
    total: u64,
    total_max: u64,
}

impl Popularity {
    /// Nothing is known yet at `now_ms`. `slots`: how many keys are worth knowing.
    pub fn new(slots: usize, sample_every: u32, now_ms: u64) -> Popularity {
        Popularity {
            sketch: Sketch::new(slots * SKETCH_CELLS_PER_SLOT),
            hot_keys: HotKeys::new(now_ms),
            sample_every,
            random: Random::new(RANDOM_SEED),
            total: 0,
            total_max: slots as u64 * SKETCH_READS_PER_SLOT,
        }
    }

    /// Counts a sampled read, and returns the key's count.
    pub fn read(&mut self, read: &SampledRead<'_>, now_ms: u64) -> u32 {
        let count = self.sketch.add(read.keyhash, 1);
        self.hot_keys.advance(now_ms);
        self.hot_keys
            .read(read.keyhash, read.key, read.value_bytes, count.into());
        self.grow(1);
        count.into()
    }

    /// Counts reads of a key that the accelerator answered: all of them, not samples.
    pub fn credit(&mut self, keyhash: Keyhash, reads: u64, now_ms: u64) {
        let samples = self.draw(reads);
        self.count_samples(keyhash, samples, now_ms);
    }

    /// The same of a key whose name is known.
    pub fn credit_named(&mut self, key: &SampledRead<'_>, reads: u64, now_ms: u64) {
        let samples = self.draw(reads);
        if samples > 0 {
            self.read(key, now_ms);
            self.count_samples(key.keyhash, samples - 1, now_ms);
        }
    }

    /// The number of samples among some reads of one key. What is less than the reads of one sample
    /// is one sample with the probability of its share.
    fn draw(&mut self, reads: u64) -> u64 {
        let every = self.sample_every;
        let rest = reads % u64::from(every);
        reads / u64::from(every) + u64::from(rest > u64::from(self.random.below(every)))
    }

    fn count_samples(&mut self, keyhash: Keyhash, samples: u64, now_ms: u64) {
        if samples > 0 {
            self.sketch
                .add(keyhash, u16::try_from(samples).unwrap_or(u16::MAX));
            self.hot_keys.advance(now_ms);
            self.hot_keys.credit(keyhash, samples);
            self.grow(samples);
        }
    }

    /// A key's count.
    pub fn count(&self, keyhash: Keyhash) -> u32 {
        self.sketch.count(keyhash).into()
    }

    /// The hottest keys, at most `most`.
    pub fn hot_keys(&self, most: usize, now_ms: u64) -> Vec<HotKey> {
        self.hot_keys
            .top(most, f64::from(self.sample_every), now_ms)
    }

    fn grow(&mut self, samples: u64) {
        self.total += samples;
        while self.total >= self.total_max {
            self.total /= 2;
            self.sketch.halve();
            self.hot_keys.halve();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most of these keys have fewer hits at a time than one sample stands for.
    #[test]
    fn credits_of_any_size_count_in_proportion() {
        let mut popularity = Popularity::new(1024, 8, 0);
        let hits = [1, 3, 7, 8, 12];
        let credits = 2000;
        for _ in 0..credits {
            for hits in hits {
                popularity.credit(Keyhash(hits << 32), hits, 0);
            }
        }
        for hits in hits {
            let expected = credits * hits / 8;
            let count = u64::from(popularity.count(Keyhash(hits << 32)));
            let off = count.abs_diff(expected);
            assert!(off <= expected / 4, "{hits}: {count}, not {expected}");
        }
    }
}
