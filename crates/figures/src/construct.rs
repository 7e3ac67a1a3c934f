//! Fills indexes key by key (MemC3 §5.2). Keys and values are not stored: an index holds pointers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use glimmer_base::Seed;
use glimmer_store::{
    index::cuckoo::{
        BUCKET_SLOTS, Breadth, LINE_BUCKETS, Search, Segment, Slot, Walks, buckets_in, line_at,
        spread,
    },
    memory::{LINE_WORDS, PagePolicy, Pool, ZeroedSlice},
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A search for a cuckoo path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// This many random paths at once, as in the paper.
    Random(usize),
    /// Breadth-first search from both buckets, as in our table.
    Breadth,
}

impl Paths {
    /// The paper's three searches, and ours.
    pub const ALL: [Paths; 4] = [
        Paths::Random(1),
        Paths::Random(2),
        Paths::Random(3),
        Paths::Breadth,
    ];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Paths::Random(1) => "cuckoo, 1 path",
            Paths::Random(2) => "cuckoo, 2 paths",
            Paths::Random(_) => "cuckoo, 3 paths",
            Paths::Breadth => "glimmer, breadth first",
        }
    }
}

/// A filled index.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The number of keys in it.
    pub keys: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// The time to insert all keys.
    pub total: Duration,
    /// The time to insert the keys of each hundredth of its slots, as far as it got.
    pub hundredths: Vec<Duration>,
}

impl Built {
    /// Bytes of the index per key.
    pub fn bytes_per_key(&self) -> f64 {
        self.bytes as f64 / self.keys as f64
    }

    /// Keys per second.
    pub fn keys_per_s(&self) -> f64 {
        self.keys as f64 / self.total.as_secs_f64()
    }
}

/// A cuckoo index of `bytes`, a power of two: the paper's one large table, made of our table's
/// lines.
pub fn cuckoo(bytes: usize, paths: Paths, seed: Seed) -> Result<Built> {
    match paths {
        Paths::Random(count) => build(bytes, Walks::new(count), seed),
        Paths::Breadth => build(bytes, Breadth::default(), seed),
    }
}

/// The number of slots of a cuckoo index of `bytes`.
pub fn slots_in(bytes: usize) -> usize {
    buckets_in(bytes / 8) as usize * BUCKET_SLOTS
}

fn build(bytes: usize, mut search: impl Search, seed: Seed) -> Result<Built> {
    let words = bytes / 8;
    let pool = Pool::new(1, words, PagePolicy::Transparent, None)?;
    // Touch the pages now: allocating them is the kernel's work, not the index's.
    (0..words)
        .step_by(LINE_WORDS)
        .for_each(|word| line_at(&pool, word).format());
    let buckets = buckets_in(words);
    let segment = Segment::at(&pool, 0, buckets);
    let hundredth = slots_in(bytes) / 100;
    let mut path = Vec::new();
    let mut built = Built {
        bytes: words / LINE_WORDS * LINE_WORDS * 8,
        ..Built::default()
    };
    let begin = Instant::now();
    let mut last = begin;
    loop {
        let keyhash = seed.keyhash(&(built.keys as u64).to_le_bytes());
        let (homes, tag) = spread(keyhash, buckets);
        let empty = segment
            .empty(homes)
            .or_else(|| segment.make_empty(homes, &mut search, &mut path, false));
        let Some(at) = empty else {
            break;
        };
        line_at(&pool, at.line).set(at.bucket, at.place, tag, Slot::new(built.keys));
        built.keys += 1;
        if built.keys.is_multiple_of(hundredth) {
            let now = Instant::now();
            built.hundredths.push(now - last);
            last = now;
        }
    }
    built.total = begin.elapsed();
    // Check the count: this many slots are in use.
    let taken = segment.lines().map(|line| {
        let line = line_at(&pool, line);
        let tags = (0..LINE_BUCKETS).flat_map(|bucket| line.tags(bucket).to_le_bytes());
        tags.filter(|&tag| tag != 0).count()
    });
    let taken: usize = taken.sum();
    (taken == built.keys)
        .then_some(built)
        .context("the index has lost keys while it moved others")
}

/// memcached's chained index with this many buckets; memcached allows 1.5 keys per bucket. Its size
/// includes the buckets' pointers and the pointer in each item.
pub fn chaining(buckets: usize, seed: Seed) -> Result<Built> {
    let keys = buckets * 3 / 2;
    let heads = ZeroedSlice::<AtomicU64>::new(buckets, PagePolicy::Transparent, None)?;
    let links = ZeroedSlice::<AtomicU64>::new(keys + 1, PagePolicy::Transparent, None)?;
    heads
        .iter()
        .chain(links.iter())
        .for_each(|word| word.store(0, Relaxed));
    let begin = Instant::now();
    for key in 0..keys {
        let keyhash = seed.keyhash(&(key as u64).to_le_bytes());
        let head = &heads[keyhash.bucket(buckets)];
        links[key + 1].store(head.load(Relaxed), Relaxed);
        head.store(key as u64 + 1, Relaxed);
    }
    Ok(Built {
        keys,
        bytes: 8 * (buckets + keys),
        total: begin.elapsed(),
        hundredths: Vec::new(),
    })
}

/// The number of items in each chain of a chained index with this many keys.
pub fn chain_lengths(buckets: usize, keys: usize, seed: Seed) -> Vec<u8> {
    let mut lengths = vec![0; buckets];
    for key in 0..keys {
        let keyhash = seed.keyhash(&(key as u64).to_le_bytes());
        lengths[keyhash.bucket(buckets)] += 1;
    }
    lengths
}

/// The number of items in the longest chain of [`chaining`] with this many buckets.
pub fn longest_chain(buckets: usize, seed: Seed) -> u8 {
    let lengths = chain_lengths(buckets, buckets * 3 / 2, seed);
    lengths.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_search_fills_the_index_as_the_paper_says() {
        for paths in Paths::ALL {
            let built = cuckoo(1 << 20, paths, Seed(3)).unwrap();
            let load = built.keys as f64 / slots_in(1 << 20) as f64;
            assert!(load > 0.93 && load <= 1.0, "{paths:?}: {load}");
            assert_eq!(built.hundredths.len(), (load * 100.0) as usize);
            assert!(built.bytes_per_key() < 6.0);
        }
    }

    #[test]
    fn chaining_costs_two_pointers_for_every_one_and_a_half_keys() {
        let built = chaining(1 << 12, Seed(3)).unwrap();
        assert!((built.bytes_per_key() - 13.33).abs() < 0.01);
        let longest = longest_chain(1 << 12, Seed(3));
        assert!((6..=11).contains(&longest), "{longest}");
    }
}
