//! MICA, §4.3.3: the load factor of the lossless index, and the share of items in main buckets.

use std::ops::Range;

use anyhow::{Result, ensure};
use glimmer_base::{Keyhash, Seed};
use glimmer_microbench::store_alone::mirror::Read;
use glimmer_store::{
    heap::Offset,
    index::{
        BUCKET_ENTRIES, Entry, LogId,
        chained::{BUCKET_WORDS, ChainedIndex, FreeList},
    },
    memory::{LINE_WORDS, PagePolicy, ZeroedSlice},
    table::Index,
};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
};

const SPARES_PERCENT: [usize; 6] = [1, 2, 5, 10, 20, 50];
/// The paper's share of spare buckets.
const JUDGED_PERCENT: f64 = 10.0;
/// That of a server's plan, and of `bench store`.
const PLANNED_SPARES_PERCENT: usize = 50;
const LOAD: &str = "index load when the spare buckets are used up";
const MAIN: &str = "items in main buckets";
const PANEL: &str = "";

/// The figure.
pub struct BulkChaining;

/// The state of an index that was filled until it refused an item.
struct Filled {
    items: usize,
    in_mains: usize,
    mains: usize,
}

fn keyhash(seed: Seed, key: usize) -> Keyhash {
    seed.keyhash(&(key as u64).to_le_bytes())
}

/// An empty index whose number of main buckets is fixed, as in the paper.
fn empty(mains: usize, spare_percent: usize) -> Result<ChainedIndex> {
    let buckets = mains + mains * spare_percent / 100 + 1;
    let memory = ZeroedSlice::new(buckets * BUCKET_WORDS, PagePolicy::Small, None)?;
    // Our spare buckets are half as large as a main one.
    Ok(ChainedIndex::new(memory, mains, (2 * spare_percent, 100)))
}

/// Enters a key with the offset of its item. Says whether a main bucket has it, or that there was
/// no spare bucket for it.
fn insert(
    index: &ChainedIndex,
    spares: &mut FreeList,
    keyhash: Keyhash,
    offset: Offset,
) -> Option<bool> {
    let entry = Entry::new(keyhash.tag(), LogId::Main, offset, 0);
    let main = index.chain_of(index.home(keyhash));
    let slot = index.slots(main).find(|(_, entry)| entry.is_empty());
    if let Some((slot, _)) = slot {
        index.set(slot, entry);
        return Some(slot.bucket == main);
    }
    let spare = spares.take(index, main)?;
    index.bucket(spare).set_entry(0, entry);
    let last = index.chain(main).last().unwrap_or(main);
    index.bucket(last).set_next(Some(spare));
    Some(false)
}

/// Fills an index until it refuses an item.
fn fill(mains: usize, spare_percent: usize, seed: Seed) -> Result<(ChainedIndex, Filled)> {
    let index = empty(mains, spare_percent)?;
    let mut spares = FreeList::default();
    let mut filled = Filled {
        items: 0,
        in_mains: 0,
        mains,
    };
    loop {
        let offset = Offset::from_raw(filled.items as u64);
        match insert(&index, &mut spares, keyhash(seed, filled.items), offset) {
            Some(is_in_main) => filled.in_mains += usize::from(is_in_main),
            None => return Ok((index, filled)),
        }
        filled.items += 1;
    }
}

/// An index as full as a server's plan has it, of the keys with these numbers, and what a lookup of
/// each reads.
pub struct PlannedIndex {
    index: ChainedIndex,
    seed: Seed,
}

impl PlannedIndex {
    /// An index of the keys up to this number.
    pub fn of(items: usize, seed: Seed) -> Result<PlannedIndex> {
        let index = empty(items.div_ceil(BUCKET_ENTRIES), PLANNED_SPARES_PERCENT)?;
        let mut spares = FreeList::default();
        for key in 0..items {
            let offset = Offset::from_raw(key as u64);
            let entered = insert(&index, &mut spares, keyhash(seed, key), offset);
            ensure!(entered.is_some(), "the index has no room for its keys");
        }
        Ok(PlannedIndex { index, seed })
    }

    /// Shows `touch` the cache lines of the index that a lookup of this key reads, in order.
    pub fn lines(&self, key: usize, mut touch: impl FnMut(usize)) {
        let keyhash = keyhash(self.seed, key);
        let home = self.index.chain_of(self.index.home(keyhash));
        for bucket in self.index.chain(home) {
            // The index counts its lines from the end of the memory.
            let line = self.index.numbers() - bucket;
            touch(line);
            if bucket == home {
                touch(line + 1);
            }
            let count = ChainedIndex::entries_of(home, bucket);
            let mut entries = self.index.bucket(bucket).entries(count);
            let offset = Offset::from_raw(key as u64);
            if entries.any(|entry| entry.tag() == keyhash.tag() && entry.offset() == offset) {
                return;
            }
        }
    }
}

/// What lookups read in an index that was filled until it refused an item: of keys that are there,
/// and of keys that are not.
pub fn lookups(mains: usize, spare_percent: usize, seed: Seed) -> Result<[Read; 2]> {
    let (index, filled) = fill(mains, spare_percent, seed)?;
    let over = |keys: Range<usize>| {
        let mut sum = Read::default();
        let count = keys.len() as f64;
        for key in keys {
            let one = lookup(&index, keyhash(seed, key), key as u64);
            sum.buckets += one.buckets;
            sum.lines += one.lines;
            sum.items += one.items;
            sum.waits += one.waits;
            sum.items_most = sum.items_most.max(one.items as u32);
        }
        Read {
            buckets: sum.buckets / count,
            lines: sum.lines / count,
            items: sum.items / count,
            waits: sum.waits / count,
            ..sum
        }
    };
    let items = filled.items;
    Ok([over(0..items), over(items..2 * items)])
}

/// What one lookup reads: the buckets of the chain in turn, each as a whole, and the items of all
/// entries with the key's tag, until one is that of the key.
fn lookup(index: &ChainedIndex, keyhash: Keyhash, key: u64) -> Read {
    let home = index.chain_of(index.home(keyhash));
    let mut read = Read::default();
    for bucket in index.chain(home) {
        read.buckets += 1.0;
        let words = match bucket == home {
            true => BUCKET_WORDS,
            false => BUCKET_WORDS / 2,
        };
        read.lines += (words / LINE_WORDS) as f64;
        let entries = ChainedIndex::entries_of(home, bucket);
        for entry in index.bucket(bucket).entries(entries) {
            if !entry.is_empty() && entry.tag() == keyhash.tag() {
                read.items += 1.0;
                if entry.offset() == Offset::from_raw(key) {
                    read.waits = read.buckets;
                    return read;
                }
            }
        }
    }
    // The other buckets of the chain wait for the first, and items for a bucket.
    read.waits = read.buckets - 1.0 + read.items.min(1.0);
    read
}

impl Figure for BulkChaining {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-index",
            title: "Bulk chaining: how full the lossless index gets",
            source: "MICA (NSDI'14), §4.3.3; no figure",
            claim: "The main buckets store most of the items (about 95%), so a lookup reads one \
                    place in memory. With spare buckets for 10% of the main buckets, the system \
                    can store its entire dataset.",
            here: "The index of store mode has a fixed number of main buckets here. Keys are \
                   inserted until an item finds neither an entry in its chain nor a spare bucket. \
                   Index load is the number of items over the number of entries in main buckets. \
                   The result depends on the parameters alone. The index of a server does not stop \
                   there: it adds main buckets.",
            kind: Kind::Exact,
            needs: Needs::one_core(256),
            columns: Columns {
                panel: "panel",
                series: "what",
                x: "spare buckets, % of the main buckets",
                y: "percent",
            },
            plot: Plot::lines("spare buckets, % of the main buckets", "%")
                .log_x()
                .paper(
                    "MICA §4.3.3: main buckets store about 95% of the items",
                    vec![Mark::point(PANEL, MAIN, JUDGED_PERCENT, 95.0)],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mains = run.pick(100_000, 20_000);
        for percent in SPARES_PERCENT {
            for seed in 1..=run.pick(3, 1) {
                let (_, filled) = fill(mains, percent, Seed(seed))?;
                let load = filled.items as f64 / (filled.mains * BUCKET_ENTRIES) as f64;
                let in_mains = filled.in_mains as f64 / filled.items as f64;
                run.add(Point::new(PANEL, LOAD, percent as f64, load * 100.0));
                run.add(Point::new(PANEL, MAIN, percent as f64, in_mains * 100.0));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let loads: Vec<f64> = data
            .line(PANEL, LOAD)
            .map(|row| row.spread().median)
            .collect();
        shape.claim(
            "more spare buckets allow a fuller index",
            "",
            format!("{loads:.1?}"),
            !loads.is_empty() && loads.windows(2).all(|pair| pair[0] < pair[1]),
            "the load does not rise everywhere",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(loads: [f64; 3]) -> usize {
        let mut data = Data::default();
        for (percent, load) in [5.0, 10.0, 20.0].into_iter().zip(loads) {
            data.add(Point::new(PANEL, LOAD, percent, load));
        }
        BulkChaining.judged(&data).failures().count()
    }

    #[test]
    fn a_load_that_rises_holds_and_another_does_not() {
        assert_eq!(failures([60.0, 75.0, 80.0]), 0);
        assert_eq!(failures([60.0, 75.0, 74.0]), 1);
    }

    #[test]
    fn every_item_that_was_counted_is_in_a_chain() {
        let (_, filled) = fill(500, 10, Seed(9)).unwrap();
        assert!(filled.in_mains <= filled.items && filled.in_mains <= 500 * BUCKET_ENTRIES);
        let spare_entries = 50 * BUCKET_ENTRIES;
        assert!(filled.items - filled.in_mains <= spare_entries);
        assert!(filled.items > 500 * BUCKET_ENTRIES / 2);
    }
}
