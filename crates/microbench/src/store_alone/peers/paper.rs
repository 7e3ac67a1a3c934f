//! MICA's table of cache mode, after the paper (NSDI'14 §4.3.1 and §4.3.2): a circular log of items
//! and a lossy index over it, for one thread (EREW, in which the paper ignores versions).
//!
//! It exists to be compared with our tables, so hash, pipeline of prefetches and loop are those of
//! ours. Three things of the paper are left out, as no run here needs them: the scan for offsets
//! that wrap, which is for 2^48 words written; the second mapping of the log, in whose place the
//! memory goes on for one item; and the reinsertion of items that were read, by which the paper
//! approximates LRU.

use anyhow::Result;
use glimmer_base::Keyhash;
use glimmer_base::limits::BATCH_MAX;
use glimmer_base::sync::{AtomicU64, Ordering::Relaxed};
use glimmer_dispatch::PartitionMap;
use glimmer_engine::{Execute, Prefetch, staged};
use glimmer_store::memory::{LINE_WORDS, PagePolicy, ZeroedSlice, prefetch_line};

use super::{Direct, Session};
use crate::store_alone::{
    items::{self, key, value},
    rig::{Loss, Rig, Tally, Task, Team, Worker},
    stream::{Operation, Share},
};

/// Entries of a bucket: with its version they take exactly two cache lines.
pub const ENTRIES: usize = 15;
const BUCKET_WORDS: usize = ENTRIES + 1;
/// An entry is a tag of 16 bits above an offset of 48, in words here; zero is an empty one.
const TAG_SHIFT: u32 = 48;
const OFFSETS: u64 = (1 << TAG_SHIFT) - 1;
/// Words before an item's key: its lengths, when it expires, and its keyhash.
const HEADER_WORDS: usize = 3;
const LENGTHS: usize = 0;
const EXPIRES: usize = 1;
const KEYHASH: usize = 2;
/// Percent of its entries that a table uses unless something else is asked: with more, full buckets
/// drop more than a thousandth of the items.
pub const LOAD_PERCENT: usize = 50;

/// A thread's table.
pub struct Paper<const K: usize, const V: usize> {
    index: ZeroedSlice<AtomicU64>,
    buckets: usize,
    /// A power of two of words, and the rest of an item that begins in the last of them.
    log: ZeroedSlice<AtomicU64>,
    /// Words of the log that items may take.
    room: u64,
    /// Where the oldest item lies, and where the next one will. They only grow.
    head: u64,
    tail: u64,
    /// Items that full buckets have dropped.
    dropped: u64,
}

/// What the stages hand on: the first word of the key's bucket, and its tag.
#[derive(Clone, Copy, Default)]
pub struct Met {
    bucket: usize,
    tag: u16,
}

impl<const K: usize, const V: usize> Paper<K, V> {
    const ITEM_WORDS: usize = HEADER_WORDS + (K + V) / 8;

    /// A table with room for this many items in its log. They use `load_percent` percent of the
    /// entries of its index.
    ///
    /// # Errors
    ///
    /// The kernel gives no memory.
    pub fn new(items: usize, load_percent: usize) -> Result<Self> {
        let buckets = (items * 100).div_ceil(load_percent * ENTRIES).max(1);
        let words = |count| ZeroedSlice::new(count, PagePolicy::Transparent, None);
        let room = items.max(1) * Self::ITEM_WORDS;
        Ok(Paper {
            index: words(buckets * BUCKET_WORDS)?,
            buckets,
            log: words(room.next_power_of_two() + Self::ITEM_WORDS)?,
            room: room as u64,
            head: 0,
            tail: 0,
            dropped: 0,
        })
    }

    /// Items that full buckets have dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    #[inline(always)]
    fn met(&self, keyhash: Keyhash) -> Met {
        Met {
            bucket: keyhash.bucket(self.buckets) * BUCKET_WORDS,
            tag: keyhash.tag(),
        }
    }

    #[inline(always)]
    fn entries(&self, met: Met) -> &[AtomicU64; ENTRIES] {
        let entries = &self.index[met.bucket + 1..][..ENTRIES];
        entries.try_into().expect("that many")
    }

    /// How far behind the tail the item of an entry lies. A dangling entry's has left the log.
    #[inline(always)]
    fn age(&self, entry: u64) -> u64 {
        self.tail.wrapping_sub(entry) & OFFSETS
    }

    #[inline(always)]
    fn is_live(&self, entry: u64) -> bool {
        entry != 0 && self.age(entry) <= self.tail - self.head
    }

    #[inline(always)]
    fn item(&self, offset: u64) -> &[AtomicU64] {
        let words = self.log.len() - Self::ITEM_WORDS;
        &self.log[offset as usize & (words - 1)..][..Self::ITEM_WORDS]
    }

    /// The key's entry, by its place in the bucket, and its item.
    #[inline(always)]
    fn find(&self, met: Met, keyhash: Keyhash, key: &[u8; K]) -> Option<(usize, &[AtomicU64])> {
        for (nth, entry) in self.entries(met).iter().enumerate() {
            let entry = entry.load(Relaxed);
            if (entry >> TAG_SHIFT) as u16 != met.tag || !self.is_live(entry) {
                continue;
            }
            let item = self.item(entry);
            if item[KEYHASH].load(Relaxed) == keyhash.0 && bytes::<K>(item, 0) == *key {
                return Some((nth, item));
            }
        }
        None
    }

    /// The value of the key.
    #[inline(always)]
    fn read(&self, met: Met, keyhash: Keyhash, key: &[u8; K]) -> Option<[u8; V]> {
        let (_, item) = self.find(met, keyhash, key)?;
        // No item here expires; the paper asks each.
        (item[EXPIRES].load(Relaxed) == 0).then(|| bytes::<V>(item, K / 8))
    }

    /// Stores a value: where the item lies if it is there, and otherwise at the tail.
    #[inline(always)]
    fn write(&mut self, met: Met, keyhash: Keyhash, key: &[u8; K], value: &[u8; V]) {
        if let Some((_, item)) = self.find(met, keyhash, key) {
            return store(item, K / 8, value);
        }
        self.insert(met, keyhash, key, value);
    }

    fn insert(&mut self, met: Met, keyhash: Keyhash, key: &[u8; K], value: &[u8; V]) {
        let item_words = Self::ITEM_WORDS as u64;
        while self.tail + item_words - self.head > self.room {
            // The item at the head says how long it was when it was first stored.
            self.head += self.item(self.head)[LENGTHS].load(Relaxed) >> 32;
        }
        let offset = self.tail;
        let item = self.item(offset);
        let lengths = item_words << 32 | (K as u64) << 16 | V as u64;
        item[LENGTHS].store(lengths, Relaxed);
        item[EXPIRES].store(0, Relaxed);
        item[KEYHASH].store(keyhash.0, Relaxed);
        store(item, 0, key);
        store(item, K / 8, value);
        self.tail += item_words;
        let entries = self.entries(met);
        let free = entries.iter().position(|entry| entry.load(Relaxed) == 0);
        let place = free.unwrap_or_else(|| {
            // Dangling entries are the oldest of all.
            let ages = entries.iter().map(|entry| self.age(entry.load(Relaxed)));
            let oldest = ages.enumerate().max_by_key(|&(_, age)| age);
            oldest.map_or(0, |(nth, _)| nth)
        });
        let drops = self.is_live(entries[place].load(Relaxed));
        entries[place].store(u64::from(met.tag) << TAG_SHIFT | offset, Relaxed);
        self.dropped += u64::from(drops);
    }
}

/// `N` bytes of an item, from this word behind its header on.
#[inline(always)]
fn bytes<const N: usize>(item: &[AtomicU64], from: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let words = &item[HEADER_WORDS + from..];
    for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
        part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    bytes
}

#[inline(always)]
fn store<const N: usize>(item: &[AtomicU64], from: usize, bytes: &[u8; N]) {
    let words = &item[HEADER_WORDS + from..];
    for (part, word) in bytes.chunks_exact(8).zip(words) {
        let part = part.try_into().expect("eight bytes");
        word.store(u64::from_le_bytes(part), Relaxed);
    }
}

impl<const K: usize, const V: usize> Prefetch for Paper<K, V> {
    type Place = Met;

    #[inline(always)]
    fn bucket(&self, keyhash: Keyhash, fetch: bool) -> Met {
        let met = self.met(keyhash);
        if fetch {
            prefetch_line(&self.index[met.bucket]);
            prefetch_line(&self.index[met.bucket + LINE_WORDS]);
        }
        met
    }

    #[inline(always)]
    fn item(&self, met: &mut Met) -> bool {
        let is_it = |entry: &&AtomicU64| (entry.load(Relaxed) >> TAG_SHIFT) as u16 == met.tag;
        if let Some(entry) = self.entries(*met).iter().find(is_it) {
            let item = self.item(entry.load(Relaxed));
            prefetch_line(&item[0]);
            prefetch_line(&item[Self::ITEM_WORDS - 1]);
        }
        false
    }

    fn item_behind(&self, _: &mut Met) {}
}

impl<const K: usize, const V: usize> Session<K, V> for Paper<K, V> {
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        let keyhash = items::SEED.keyhash(key);
        self.read(self.met(keyhash), keyhash, key)
    }

    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        let keyhash = items::SEED.keyhash(&key);
        self.write(self.met(keyhash), keyhash, &key, &value);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        let keyhash = items::SEED.keyhash(key);
        let met = self.met(keyhash);
        let found = self.find(met, keyhash, key).map(|(nth, _)| nth);
        if let Some(nth) = found {
            // The item stays in the log until the head comes to it.
            self.entries(met)[nth].store(0, Relaxed);
        }
        found.is_some()
    }
}

impl<const K: usize, const V: usize> Direct<K, V> for Paper<K, V> {
    const SHARED: bool = false;

    fn items(&self) -> Option<u64> {
        let buckets = self.index.chunks_exact(BUCKET_WORDS);
        let entries = buckets.flat_map(|bucket| &bucket[1..]);
        let live = entries.filter(|entry| self.is_live(entry.load(Relaxed)));
        Some(live.count() as u64)
    }
}

/// A worker with its table.
struct Driven<const K: usize, const V: usize> {
    table: Paper<K, V>,
    /// The operations of a batch with their keyhashes.
    hashed: [(Keyhash, Operation); BATCH_MAX],
}

/// What becomes of a batch's operations.
struct Operations<'t> {
    version: u32,
    fills: bool,
    tally: &'t mut Tally,
}

impl<const K: usize, const V: usize> Execute<Paper<K, V>, (Keyhash, Operation)> for Operations<'_> {
    #[inline(always)]
    fn execute(
        &mut self,
        table: &mut Paper<K, V>,
        _: usize,
        met: Met,
        &(keyhash, operation): &(Keyhash, Operation),
    ) {
        let number = operation.number();
        let key = key::<K>(number);
        if operation.writes() {
            return table.write(met, keyhash, &key, &value(number, self.version));
        }
        self.tally.reads += 1;
        match table.read(met, keyhash, &key) {
            Some(read) => {
                self.tally.found += 1;
                self.tally.wrong += u64::from(!items::is_value(&read, number));
            }
            None if self.fills => table.write(met, keyhash, &key, &value(number, self.version)),
            None => {}
        }
    }
}

impl<const K: usize, const V: usize> Worker for Driven<K, V> {
    #[inline(never)]
    fn batch(&mut self, batch: &[Operation], task: &Task, version: u32, tally: &mut Tally) {
        for (place, &operation) in self.hashed.iter_mut().zip(batch) {
            *place = (items::keyhash::<K>(operation.number()), operation);
        }
        let mut operations = Operations {
            version,
            fills: task.fill,
            tally,
        };
        let hashed = &self.hashed[..batch.len()];
        let keyhash = |job: &(Keyhash, Operation)| job.0;
        staged(
            &mut self.table,
            hashed,
            task.stages,
            keyhash,
            &mut operations,
        );
    }

    fn items(&mut self) -> Option<u64> {
        self.table.items()
    }
}

/// Tables for this many threads, filled with `items` items. These use `load_percent` percent of the
/// entries of the indexes.
///
/// # Errors
///
/// The kernel gives no memory.
pub fn build<const K: usize, const V: usize>(
    items: u32,
    workers: usize,
    load_percent: usize,
) -> Result<Box<dyn Rig>> {
    // Hashing does not divide the items evenly.
    let part = match workers {
        1 => items as usize,
        _ => items as usize / workers + items as usize / 20 + 64,
    };
    let driven = |_| {
        Ok(Driven {
            table: Paper::<K, V>::new(part, load_percent)?,
            hashed: [(Keyhash(0), Operation::new(0, false)); BATCH_MAX],
        })
    };
    let share = Share {
        map: PartitionMap::new(workers, workers),
        worker: 0,
        reads_all: false,
        writes_all: false,
        keyhash: items::keyhash::<K>,
    };
    let driven: Vec<_> = (0..workers).map(driven).collect::<Result<_>>()?;
    let team = Team::new(driven, share, Loss::AtMost(LOSS_MAX));
    Ok(Box::new(team.fill(items)?))
}

/// The share of the items that may be missing: an index that is full drops a tenth of them.
const LOSS_MAX: f64 = 0.12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_drops_its_oldest_item() {
        // One bucket for all.
        let mut more = Paper::<8, 8>::new(100, 700).unwrap();
        assert_eq!(more.buckets, 1);
        for number in 0..ENTRIES as u32 + 3 {
            more.put(key(number), value(number, 0));
        }
        let is_there = |table: &mut Paper<8, 8>, number| table.get(&key(number)).is_some();
        let gone: Vec<u32> = (0..18)
            .filter(|&number| !is_there(&mut more, number))
            .collect();
        assert_eq!((gone, more.dropped()), (vec![0, 1, 2], 3));
        assert!(more.remove(&key(7)) && !more.remove(&key(7)));
        more.put(key(100), value(100, 0));
        assert_eq!(
            (more.dropped(), more.items()),
            (3, Some(15)),
            "a place was free"
        );
        // What has left the log is not found, and its entries are taken first.
        let mut table = Paper::<8, 8>::new(4, 100).unwrap();
        for number in 0..9 {
            table.put(key(number), value(number, 0));
        }
        let there: Vec<u32> = (0..9)
            .filter(|&number| is_there(&mut table, number))
            .collect();
        assert_eq!(there, [5, 6, 7, 8]);
        table.put(key(8), value(8, 1));
        assert_eq!(table.get(&key(8)), Some(value(8, 1)));
        assert_eq!((table.items(), table.dropped()), (Some(4), 0));
    }

    /// Whether reads of a list are judged does not depend on whether its keys were dropped.
    #[test]
    fn a_table_is_judged_by_the_items_that_it_has() {
        let task = Task {
            fill: false,
            ..Task::filling()
        };
        let list = |number| [vec![Operation::new(number, false)]];
        let mut table = build::<8, 8>(10_000, 1, 90).unwrap();
        let mut found = (0..10_000).map(|number| table.run(&list(number), &task).unwrap().found);
        assert!(found.any(|found| found == 0), "nothing was dropped");
        let mut too_full = build::<8, 8>(10_000, 1, 200).unwrap();
        let why = too_full.run(&list(9_999), &task).unwrap_err();
        assert!(
            why.to_string().contains("of the items are missing"),
            "{why}"
        );
    }

    /// The number of items that a bucket gets is nearly that of a Poisson distribution.
    #[test]
    fn how_much_is_dropped_follows_from_the_load() {
        const ITEMS: usize = 60_000;
        for (load_percent, range) in [(50, 0.0005..0.002), (75, 0.02..0.026), (100, 0.08..0.12)] {
            let mut table = Paper::<8, 8>::new(ITEMS, load_percent).unwrap();
            for number in 0..ITEMS as u32 {
                table.put(key(number), value(number, 0));
            }
            let share = table.dropped() as f64 / ITEMS as f64;
            assert!(range.contains(&share), "{load_percent}%: {share}");
            assert_eq!(table.items(), Some(ITEMS as u64 - table.dropped()));
        }
    }
}
