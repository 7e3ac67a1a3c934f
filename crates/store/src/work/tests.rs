//! No request does more than a constant amount of work, and a constant amount for each word that it
//! stores, whatever was asked before and however large the table is. Adversarial sequences, every
//! table and every eviction rule; work is counted, so no clock is read.

use super::{Work, take};
use crate::access::Crew;
use crate::batches::Batches;
use crate::evict::{RULES, Rule};
use crate::heap::{History, NewItem};
use crate::index::cuckoo::point;
use crate::memc3::{self, Memc3Config};
use crate::memory::PagePolicy;
use crate::mica_cache::{self, PartitionConfig};
use crate::mica_store::{self, StoreConfig};
use crate::table::{Counts, Stored};
use crate::table::{Table, TableFigures, TableReader, TableWriter};
use glimmer_base::limits::{
    BUCKETS_ADDED_FOR_ROOM_MAX, MOVED_SLAB_BYTES_MAX, SPARED_BYTES_MAX, SPARED_BYTES_PER_BYTE,
    SPARED_ITEMS_MAX,
};
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SEED: Seed = Seed(3);
const ITEM_BYTES_MAX: usize = 256 << 10;
/// A table of two sizes is held to one bound.
const TABLE_BYTES: [usize; 2] = [2 << 20, 5 << 20];
/// Values of most items, in bytes: 3 to 6 words with their keys.
const SMALL: usize = 8;

/// What one request may do.
#[derive(Clone, Copy)]
struct Bound {
    /// Whatever it stores.
    fixed: Work,
    /// And for every 64 words that it stores.
    per_64_words: Work,
}

impl Bound {
    fn of(&self, words: usize) -> Work {
        let sum = |fixed, per_64_words| fixed + per_64_words * words / 64;
        let (fixed, per_64_words) = (self.fixed, self.per_64_words);
        Work {
            examined: sum(fixed.examined, per_64_words.examined),
            moved: sum(fixed.moved, per_64_words.moved),
            words_copied: sum(fixed.words_copied, per_64_words.words_copied),
            splits: sum(fixed.splits, per_64_words.splits),
            page_steps: sum(fixed.page_steps, per_64_words.page_steps),
        }
    }
}

impl Work {
    /// The larger of each kind.
    fn max(self, other: Work) -> Work {
        Work {
            examined: self.examined.max(other.examined),
            moved: self.moved.max(other.moved),
            words_copied: self.words_copied.max(other.words_copied),
            splits: self.splits.max(other.splits),
            page_steps: self.page_steps.max(other.page_steps),
        }
    }
}

/// A table at work, each request of which is held to a bound.
struct Driver<T: Table> {
    owner: T,
    figures: Box<dyn TableFigures>,
    now: Moment,
    flushes: u64,
    bound: Bound,
    rng: SmallRng,
    next: u32,
    /// The most of each kind that one request has done.
    worst: Work,
    /// The first request that did too much.
    failure: Option<String>,
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn keyhash(number: u32) -> Keyhash {
    SEED.keyhash(&key(number))
}

impl<T: Table> Driver<T> {
    fn new(owner: T, bound: Bound) -> Self {
        Driver {
            figures: owner.figures(),
            owner,
            now: Moment {
                ms: 2_000,
                epoch_unix_ms: 0,
            },
            flushes: 0,
            bound,
            rng: SmallRng::seed_from_u64(glimmer_seeds::seed()),
            next: 0,
            worst: Work::default(),
            failure: None,
        }
    }

    /// One request that stores `words` words.
    fn request<R>(&mut self, words: usize, act: impl FnOnce(&mut T::Writer<'_>, Moment) -> R) -> R {
        take();
        let result = act(&mut self.owner.enter(self.flushes), self.now);
        let (done, most) = (take(), self.bound.of(words));
        let is_within = done.examined <= most.examined
            && done.moved <= most.moved
            && done.words_copied <= most.words_copied
            && done.splits <= most.splits
            && done.page_steps <= most.page_steps;
        self.worst = self.worst.max(done);
        if !is_within && self.failure.is_none() {
            let failure = format!("{words} words are stored: {done:?}, but at most {most:?}");
            self.failure = Some(failure);
        }
        result
    }

    fn put(&mut self, number: u32, value_bytes: usize, expiry: Expiry) -> bool {
        let (key, value) = (key(number), vec![number as u8; value_bytes]);
        let item = NewItem {
            expiry,
            ..NewItem::new(&key, &value)
        };
        let stored = self.request(item.layout().words(), |writer, now| {
            writer.put(keyhash(number), &item, now)
        });
        matches!(stored, Stored::Yes(_))
    }

    /// Stores an item under a key that was never used.
    fn put_new(&mut self, value_bytes: usize) -> bool {
        self.next += 1;
        self.put(self.next - 1, value_bytes, Expiry::NEVER)
    }

    fn get(&mut self, number: u32) -> Option<usize> {
        self.request(ITEM_BYTES_MAX / 8, |writer, now| {
            writer.read(keyhash(number), &key(number), now, |item| {
                item.value().len()
            })
        })
    }

    fn remove(&mut self, number: u32) -> bool {
        self.request(0, |writer, now| {
            writer.remove(keyhash(number), &key(number), now)
        })
    }

    fn touch(&mut self, number: u32, value_bytes: usize, expiry: Expiry) -> bool {
        self.request(value_bytes / 8 + 8, |writer, now| {
            writer.touch(keyhash(number), &key(number), expiry, now)
        })
    }

    /// Appends bytes to the value of an item that has `value_bytes`.
    fn append(&mut self, number: u32, value_bytes: usize, more: usize) -> bool {
        let (key, more) = (key(number), vec![number as u8; more]);
        let item = NewItem {
            key: &key,
            value: [&[], &more],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let words = (value_bytes + more.len()) / 8 + 8;
        let stored = self.request(words, |writer, now| {
            writer.extend(keyhash(number), &item, now)
        });
        matches!(stored, Some(Stored::Yes(_)))
    }

    /// Every item is read by another core, which leaves marks and moves nothing; says how many
    /// there are.
    fn read_all(&mut self) -> u32 {
        let (batches, mut participants) = Batches::new(1);
        self.owner.join(&batches, 1);
        let reader = self.owner.reader().expect("readers beside the writer");
        let batch = participants[0].begin();
        let is_there = |number: u32| {
            let read = reader.read(
                &batch,
                keyhash(number),
                &key(number),
                self.now,
                self.flushes,
                |_| (),
            );
            matches!(read, Ok(Some(())))
        };
        (0..self.next).filter(|&number| is_there(number)).count() as u32
    }

    fn counts(&self) -> Counts {
        self.figures.counts(self.flushes)
    }

    /// Stores new items until the memory is full.
    fn fill(&mut self, value_bytes: usize) {
        while self.put_new(value_bytes) && self.counts().evictions == 0 {}
    }

    fn flush(&mut self) {
        self.flushes += 1;
        // A flush clears what it keeps about pages, once for all of them.
        drop(self.owner.enter(self.flushes));
        self.next = 0;
    }
}

/// The memory is full, everything has been read three times, and new items come.
fn filled_and_read<T: Table>(it: &mut Driver<T>) {
    it.fill(SMALL);
    for _ in 0..3 {
        it.read_all();
    }
    (0..3_000).for_each(|_| {
        it.put_new(SMALL);
    });
    // Marks of all kinds come and go while sizes change.
    for value_bytes in [40, 8, 900, 8, 60_000, 8, 200_000, 200_000, 8, 5_000] {
        it.read_all();
        (0..40).for_each(|_| {
            it.put_new(value_bytes);
        });
    }
}

/// Large items come into a memory full of small ones that were all read.
fn large_after_small<T: Table>(it: &mut Driver<T>) {
    it.fill(SMALL);
    it.read_all();
    (0..20).for_each(|_| {
        it.put_new(200_000);
        it.read_all();
    });
}

/// Small items come into a memory full of large ones that were all read.
fn small_after_large<T: Table>(it: &mut Driver<T>) {
    it.fill(100_000);
    for _ in 0..3 {
        it.read_all();
    }
    for number in 0..60_000 {
        if number % 5_000 == 0 {
            it.read_all();
        }
        it.put_new(SMALL);
    }
}

/// Large items shrink a few bytes at a time, and leave as many pieces.
fn shrinking_in_place<T: Table>(it: &mut Driver<T>) {
    it.fill(ITEM_BYTES_MAX / 4);
    let newest = it.next - 2;
    for number in [newest, newest - 1] {
        for value_bytes in (0..ITEM_BYTES_MAX / 4).rev().step_by(8) {
            it.put(number, value_bytes, Expiry::NEVER);
        }
    }
    it.put(newest, 100, Expiry::NEVER);
    it.put(newest, 500, Expiry::NEVER);
    (0..60).for_each(|_| {
        it.put_new(60_000);
    });
    (0..30_000).for_each(|_| {
        it.put_new(SMALL);
    });
}

/// Keys that have everything in common that the index goes by, as far as it can be.
fn colliding<T: Table>(it: &mut Driver<T>, collide: impl Fn(Keyhash) -> bool, count: usize) {
    it.next = u32::MAX;
    let numbers: Vec<u32> = (0..)
        .filter(|&number| collide(keyhash(number)))
        .take(count)
        .collect();
    for &number in &numbers {
        it.put(number, SMALL, Expiry::NEVER);
    }
    for &number in &numbers {
        it.remove(number);
    }
    for &number in numbers.iter().rev() {
        it.put(number, SMALL, Expiry::NEVER);
    }
}

/// Most items are deleted, the memory is used again for others, in several sizes.
fn recycled<T: Table>(it: &mut Driver<T>) {
    it.fill(SMALL);
    for (value_bytes, kept) in [
        (300, 7),
        (SMALL, 3),
        (20_000, 50),
        (SMALL, 97),
        (100_000, 3),
    ] {
        let (first, last) = (it.next.saturating_sub(200_000), it.next);
        for number in (first..last).filter(|number| number % kept != 0) {
            it.remove(number);
        }
        it.fill(value_bytes);
        (0..500).for_each(|_| {
            it.put_new(value_bytes);
        });
    }
}

/// Everything expires at once; then items come that do not.
fn expired_at_once<T: Table>(it: &mut Driver<T>) {
    for value_bytes in [SMALL, 3_000] {
        let expiry = Expiry::at_ms(it.now.ms + 10_000);
        it.next += 1;
        while it.put(it.next, value_bytes, expiry) && it.counts().evictions == 0 {
            it.next += 1;
        }
        it.now.ms += 20_000;
        it.put_new(100_000);
        (0..20_000).for_each(|_| {
            it.put_new(SMALL);
        });
        it.fill(SMALL);
    }
}

/// Items get an expiry and lose it again, and then grow, so that they are written again.
fn touched<T: Table>(it: &mut Driver<T>) {
    for value_bytes in [SMALL, 30_000] {
        let first = it.next;
        it.fill(value_bytes);
        let expiry = Expiry::at_ms(it.now.ms + 1_000_000);
        for round in 0..4 {
            let expiry = if round % 2 == 0 {
                expiry
            } else {
                Expiry::NEVER
            };
            for number in first..it.next.min(first + 20_000) {
                it.touch(number, value_bytes, expiry);
            }
        }
        for number in first..it.next.min(first + 20_000) {
            it.append(number, value_bytes, 8);
        }
    }
}

/// The memory is flushed while it is full, and filled again.
fn flushed<T: Table>(it: &mut Driver<T>) {
    for value_bytes in [SMALL, 2_000, SMALL] {
        it.fill(value_bytes);
        it.flush();
    }
    it.fill(SMALL);
    it.now.ms += 10_000;
    (0..1_000).for_each(|_| {
        it.put_new(10_000);
    });
}

/// Everything at random.
fn mixed<T: Table>(it: &mut Driver<T>) {
    for step in 0..60_000 {
        let number = it.rng.random_range(0..20_000);
        let value_bytes = match it.rng.random_range(0..1_000) {
            0 => it.rng.random_range(0..200_000),
            1..20 => it.rng.random_range(0..20_000),
            _ => it.rng.random_range(0..200),
        };
        let expiry = match it.rng.random_bool(0.3) {
            true => Expiry::at_ms(it.now.ms + it.rng.random_range(1..20_000)),
            false => Expiry::NEVER,
        };
        match it.rng.random_range(0..10) {
            0..6 => {
                it.put(number, value_bytes, expiry);
            }
            6 | 7 => {
                it.get(number);
            }
            8 => {
                it.remove(number);
            }
            _ => {
                it.touch(number, 200_000, expiry);
            }
        }
        it.now.ms += 1;
        if step % 20_000 == 0 {
            it.flush();
        }
    }
}

/// Keys whose first prefix bits are the same, so that segments split in vain.
fn same_segment(keyhash: Keyhash) -> bool {
    point(keyhash) >> 26 == 0
}

/// Keys whose bucket and first tag bits are the same, so that chains split in vain.
fn same_chain(keyhash: Keyhash) -> bool {
    keyhash.bucket(64) == 0 && keyhash.tag() & 0xFF == 0
}

/// A sequence of requests, and what it is called.
type Sequence<T> = (&'static str, fn(&mut Driver<T>));

fn holds_for<T: Table>(table: impl Fn(usize) -> T, bound: Bound) {
    let sequences: [Sequence<T>; 11] = [
        ("filled and read", filled_and_read),
        ("large after small", large_after_small),
        ("small after large", small_after_large),
        ("shrinking in place", shrinking_in_place),
        ("colliding in a segment", |it| {
            colliding(it, same_segment, 40_000)
        }),
        ("colliding in a chain", |it| colliding(it, same_chain, 400)),
        ("recycled", recycled),
        ("expired at once", expired_at_once),
        ("touched", touched),
        ("flushed", flushed),
        ("mixed", mixed),
    ];
    let mut failures = Vec::new();
    for bytes in TABLE_BYTES {
        for (what, sequence) in sequences {
            let mut driver = Driver::new(table(bytes), bound);
            sequence(&mut driver);
            let what = format!("{what}, {} MiB", bytes >> 20);
            println!("{what}: {:?}", driver.worst);
            failures.extend(driver.failure.map(|failure| format!("{what}: {failure}")));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn memc3(bytes: usize) -> memc3::Owner<Crew> {
    let config = Memc3Config {
        memory_bytes: bytes,
        page_bytes: Memc3Config::PAGE_BYTES,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    memc3::Owner::new(&config).unwrap()
}

fn cache_mode(bytes: usize, rule: Rule) -> mica_cache::Owner<Crew> {
    let config = PartitionConfig {
        log_bytes: bytes,
        main_buckets: bytes >> 13,
        spare_buckets: bytes >> 15,
        index_follows: true,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    mica_cache::Owner::new(&config, rule).unwrap()
}

fn store_mode(bytes: usize) -> mica_store::Owner<Crew> {
    let config = StoreConfig {
        bytes,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    mica_store::Owner::new(&config).unwrap()
}

/// Buckets that a store merges in store mode before it is refused: half of what it may do for room.
const MERGES_MAX: usize = 1_000;

/// A store under S3-FIFO passes as many words of the small log as it takes, and at the end of a lap
/// as many again. Items of three words may all go on to the main log: 43 for 64 words. The main log
/// spares one item for 16 words besides. Among what is passed may be one large item that goes on,
/// for which the main log makes room: as many items of three words leave it.
const CACHE_MODE: Bound = Bound {
    fixed: Work {
        examined: 1_500 + ITEM_BYTES_MAX / 8 / 3,
        moved: SPARED_ITEMS_MAX + 20,
        words_copied: SPARED_BYTES_MAX / 8 + 100,
        splits: 40,
        page_steps: 0,
    },
    per_64_words: Work {
        examined: 128,
        moved: 48,
        words_copied: 64 * (SPARED_BYTES_PER_BYTE + 2),
        splits: 4,
        page_steps: 0,
    },
};

#[test]
fn every_request_of_the_memc3_table_is_bounded() {
    let bound = Bound {
        fixed: Work {
            // Two slabs that are spared and one that is emptied or moved, a segment that is split,
            // and two searches of it.
            examined: 40_000,
            moved: 4_200,
            words_copied: MOVED_SLAB_BYTES_MAX / 8,
            splits: 1,
            page_steps: 20,
        },
        per_64_words: Work {
            examined: 64,
            moved: 0,
            words_copied: 64,
            splits: 0,
            page_steps: 2,
        },
    };
    holds_for(memc3, bound);
}

#[test]
fn every_request_under_any_eviction_rule_is_bounded() {
    for &rule in glimmer_seeds::a_third(RULES) {
        println!("{rule:?}");
        holds_for(|bytes| cache_mode(bytes, rule), CACHE_MODE);
    }
}

#[test]
fn every_request_of_store_mode_is_bounded() {
    let bound = Bound {
        fixed: Work {
            examined: 40_000,
            moved: 4_000,
            words_copied: (240 << 10) + ITEM_BYTES_MAX / 8,
            splits: BUCKETS_ADDED_FOR_ROOM_MAX + MERGES_MAX,
            page_steps: 0,
        },
        per_64_words: Work {
            words_copied: 64,
            ..Work::NONE
        },
    };
    holds_for(store_mode, bound);
}
