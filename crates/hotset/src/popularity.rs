//! The popularity of keys: a sketch of how often each is read, and the hottest ones by name. The
//! server has it with and without an accelerator.

use crate::hot_keys::{HotKey, HotKeys};
use crate::sketch::Sketch;
use glimmer_base::Keyhash;
use glimmer_base::limits::{SKETCH_CELLS_PER_SLOT, SKETCH_READS_PER_SLOT};

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
        let every = u64::from(self.sample_every);
        // What is less than one sample counts as one now and then, by the key's hash and the total.
        let odd = reads % every > (keyhash.0 ^ self.total) % every;
        let samples = reads / every + u64::from(odd);
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
