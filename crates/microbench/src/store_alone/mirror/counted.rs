//! Counts what lookups in the copies read, and how often optimistic readers repeat a read.

use std::sync::atomic::AtomicU64;

use anyhow::{Result, ensure};
use glimmer_store::memory::PagePolicy;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{
    Index, IndexKind,
    chained::{self, Chained},
    cuckoo::{self, Cuckoo},
    locks::{Keyed, Unlocked},
    replacement::All,
    table::Mirror,
    trace::Trace,
};
use crate::store_alone::items::{PAPER_KEY_BYTES, PAPER_VALUE_BYTES, key, value};

const LINE_BYTES: usize = 64;
const K: usize = PAPER_KEY_BYTES;
const V: usize = PAPER_VALUE_BYTES;

/// What one lookup reads, on average over many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Read {
    /// Buckets.
    pub buckets: f64,
    /// Cache lines of the index.
    pub lines: f64,
    /// Items: references that are followed.
    pub items: f64,
    /// Reads of an item that have to wait for a read before.
    pub waits: f64,
    /// The most items that any one lookup has read.
    pub items_most: u32,
}

/// Remembers what one lookup reads.
#[derive(Default)]
struct Heard {
    buckets: u32,
    lines: Vec<usize>,
    items: u32,
}

impl Trace for Heard {
    fn bucket(&mut self) {
        self.buckets += 1;
    }

    fn index(&mut self, word: &AtomicU64) {
        let line = std::ptr::from_ref(word).addr() / LINE_BYTES;
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    fn item(&mut self) {
        self.items += 1;
    }
}

/// The buckets of an index that `items` fill more than once, and how many items fill it.
fn full(index: IndexKind, items: u32) -> (usize, usize) {
    match index {
        IndexKind::Chaining | IndexKind::ChainingByWords => {
            let buckets = chained::buckets_for(items as usize) / 2;
            (buckets, chained::capacity(buckets))
        }
        IndexKind::Cuckoo | IndexKind::CuckooTags => {
            let buckets = cuckoo::buckets_for(items as usize) / 2;
            (buckets, cuckoo::capacity(buckets))
        }
    }
}

/// How many items make an index as full as it may be: at most `items`, and at least half as many.
pub fn full_items(index: IndexKind, items: u32) -> u32 {
    full(index, items).1 as u32
}

/// What lookups read in a table of [`full_items`]: of keys that are there, and of keys that are
/// not. The last number is that of items per bucket.
pub fn lookups(index: IndexKind, items: u32) -> Result<([Read; 2], f64)> {
    let full = full(index, items);
    match index {
        IndexKind::Chaining => in_full::<Chained<false>>(full),
        IndexKind::ChainingByWords => in_full::<Chained<true>>(full),
        IndexKind::Cuckoo => in_full::<Cuckoo<false>>(full),
        IndexKind::CuckooTags => in_full::<Cuckoo<true>>(full),
    }
}

fn in_full<X: Index>((buckets, items): (usize, usize)) -> Result<([Read; 2], f64)> {
    let table = Mirror::<X, All, Unlocked, K, V>::new(items, PagePolicy::Small)?;
    let items = u32::try_from(items)?;
    (0..items).for_each(|number| table.put(&key(number), &value(number, 0)));
    let over = |numbers: std::ops::Range<u32>, is_there: bool| -> Result<Read> {
        let mut sum = Read::default();
        let count = f64::from(numbers.end - numbers.start);
        for number in numbers {
            let mut heard = Heard::default();
            let found = table.traced(&key(number), &mut heard);
            ensure!(found == is_there, "key {number} is in the wrong place");
            let waits = match X::IN_TURN {
                true => heard.items,
                false => heard.items.min(1),
            };
            sum.buckets += f64::from(heard.buckets);
            sum.lines += heard.lines.len() as f64;
            sum.items += f64::from(heard.items);
            sum.waits += f64::from(waits);
            sum.items_most = sum.items_most.max(heard.items);
        }
        Ok(Read {
            buckets: sum.buckets / count,
            lines: sum.lines / count,
            items: sum.items / count,
            waits: sum.waits / count,
            ..sum
        })
    };
    let reads = [over(0..items, true)?, over(items..2 * items, false)?];
    Ok((reads, f64::from(items) / buckets as f64))
}

/// Changes beside reads, and the reads that they repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Retries {
    /// Reads, each with an insert in its middle.
    pub reads: u64,
    /// Keys that were moved, inserted or removed meanwhile.
    pub changes: u64,
    /// Reads that had to be repeated, although no change was to their key.
    pub repeated: u64,
}

/// Reads keys of a nearly full cuckoo table with the paper's array of counters, and exchanges one
/// item for a new one in the middle of each read, until this many keys have changed.
pub fn retries(items: u32, changes: u64, seed: u64) -> Result<Retries> {
    let items = full_items(IndexKind::CuckooTags, items);
    let table = Mirror::<Cuckoo<true>, All, Keyed, K, V>::new(items as usize, PagePolicy::Small)?;
    (0..items).for_each(|number| table.put(&key(number), &value(number, 0)));
    let mut rng = SmallRng::seed_from_u64(seed);
    let before = table.locks().changes();
    let mut counted = Retries::default();
    // Keys leave in the order in which they came, so those between the two ends are there.
    let (mut oldest, mut newest) = (0, items);
    while counted.changes < changes {
        for _ in 0..1_000 {
            let read = rng.random_range(oldest + 1..newest);
            let looks = table.looks_around(&key(read), || {
                table.remove(&key(oldest));
                table.put(&key(newest), &value(newest, 0));
            });
            (oldest, newest) = (oldest + 1, newest + 1);
            counted.reads += 1;
            counted.repeated += u64::from(looks > 1);
        }
        // A new key's version changes twice: when the table looks for an item to overwrite, and
        // when it inserts the key.
        counted.changes = table.locks().changes() - before - counted.reads;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_reads_what_its_table_makes_it_read() {
        let of = |index| lookups(index, 10_000).unwrap();
        let ([hits, misses], per_bucket) = of(IndexKind::Chaining);
        assert_eq!(per_bucket, 1.5);
        assert_eq!((hits.lines, misses.lines), (1.0, 1.0));
        // A miss reads the whole chain.
        assert!((misses.items - per_bucket).abs() < 0.1, "{misses:?}");
        let ([hits, misses], per_bucket) = of(IndexKind::CuckooTags);
        assert!((3.6..=4.0).contains(&per_bucket), "{per_bucket}");
        assert!((1.9..2.1).contains(&misses.lines), "{misses:?}");
        assert!((1.0..1.1).contains(&hits.items), "{hits:?}");
        assert!((0.01..0.06).contains(&misses.items), "{misses:?}");
        let ([_, misses], _) = of(IndexKind::Cuckoo);
        assert!(misses.items > 7.0 && misses.items_most == 8, "{misses:?}");
    }

    #[test]
    fn reads_are_repeated_for_changes_to_keys_that_share_their_counter() {
        let seed = glimmer_seeds::seed();
        let Retries {
            reads,
            changes,
            repeated,
        } = retries(4_000, 60_000, seed).unwrap();
        assert!(changes >= 2 * reads, "{changes} of {reads}");
        // A key's counter is that of the smaller one of its 2 of 1,024 buckets, so two keys share
        // one with a probability of 4/3 over 1,024. The standard deviation is 9.
        assert!((40..130).contains(&repeated), "{repeated} of {changes}");
    }
}
