//! Partitions that have their memory in common: what no partition has claimed is free for all, and
//! nothing leaves before it is used up.
#![cfg(not(miri))]

use glimmer_base::{Moment, Seed};
use glimmer_store::access::Crcw;
use glimmer_store::evict::{ADAPTIVE, CLOCK, FIFO, LRU, RULES, Rule, S3_FIFO};
use glimmer_store::heap::NewItem;
use glimmer_store::memory::{Commons, PagePolicy, PageReport};
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Large, Stored, Table, TableFigures, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const MIB: usize = 1 << 20;
const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// What a server with little memory has.
struct Store {
    partitions: Vec<Owner<Crcw>>,
    figures: Vec<Box<dyn TableFigures>>,
    commons: Commons,
    flushes: u64,
}

impl Store {
    fn new(count: usize, rule: Rule) -> Store {
        Store::on(count, rule, PagePolicy::Small)
    }

    fn on(count: usize, rule: Rule, pages: PagePolicy) -> Store {
        Store::with(count, rule, pages, 9_700 << 10)
    }

    fn with(count: usize, rule: Rule, pages: PagePolicy, log_bytes: usize) -> Store {
        let mut config = PartitionConfig {
            log_bytes,
            main_buckets: 700,
            spare_buckets: 350,
            index_follows: true,
            item_bytes_max: MIB,
            pages,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        let commons = config.commons(count).unwrap();
        config.commons = Some(commons.clone());
        let new = |_| Owner::new(&config, rule.with_threshold(0.5)).unwrap();
        let partitions: Vec<Owner<Crcw>> = (0..count).map(new).collect();
        let figures = partitions.iter().map(|it| it.figures()).collect();
        Store {
            partitions,
            figures,
            commons,
            flushes: 0,
        }
    }

    fn partition(&mut self, key: u64) -> &mut Owner<Crcw> {
        // Keys are spread as hashes spread them: unevenly.
        let nth = SEED
            .keyhash(&key.to_be_bytes())
            .partition(self.partitions.len());
        &mut self.partitions[nth]
    }

    fn put(&mut self, key: u64, bytes: usize) {
        let flushes = self.flushes;
        let owner = self.partition(key);
        let (key, value) = (key.to_be_bytes(), vec![key as u8; bytes]);
        let keyhash = SEED.keyhash(&key);
        let large = Large {
            key: &key,
            keyhash,
            value: &value,
            now: NOW,
        };
        let draft = owner.draft(Default::default(), flushes, &large, |_| true);
        let mut writer = owner.enter(flushes);
        writer.bring(draft);
        let stored = writer.put(keyhash, &NewItem::new(&key, &value), NOW);
        assert!(matches!(stored, Stored::Yes(_)));
        writer.bring(None);
    }

    /// Whether an item is there, with its own value.
    fn has(&mut self, key: u64, bytes: usize) -> bool {
        let flushes = self.flushes;
        let owner = self.partition(key);
        let name = key.to_be_bytes();
        let is_whole = |value: &[u8]| value.len() == bytes && value.iter().all(|&b| b == key as u8);
        let writer = owner.enter(flushes);
        let found = writer.find(SEED.keyhash(&name), &name, NOW).map(|item| {
            let mut value = Vec::new();
            item.value().append_to(&mut value);
            assert!(is_whole(&value));
        });
        found.is_some()
    }

    fn remove(&mut self, key: u64) {
        let flushes = self.flushes;
        let name = key.to_be_bytes();
        let owner = self.partition(key);
        owner.enter(flushes).remove(SEED.keyhash(&name), &name, NOW);
    }

    fn evictions(&self) -> u64 {
        let counts = self.figures.iter().map(|it| it.counts(self.flushes));
        counts.map(|it| it.evictions + it.index_evictions).sum()
    }

    /// What the partitions have claimed and what is left is all there is.
    fn audit(&mut self) {
        let each = 8 * self.commons.left_each();
        let figures = self.figures.iter();
        let claimed: u64 = figures
            .map(|it| it.heap_bytes() + it.index_bytes() - each)
            .sum();
        assert_eq!(claimed + 8 * self.commons.left(), 8 * self.commons.words());
        let flushes = self.flushes;
        for owner in &mut self.partitions {
            owner.enter(flushes).audit();
        }
    }

    /// Stores items until one is evicted. Returns their bytes, as a share of all memory.
    fn fill(&mut self, first: u64, mut bytes: impl FnMut() -> usize) -> f64 {
        let (before, mut sizes) = (self.evictions(), Vec::new());
        while self.evictions() == before {
            sizes.push(bytes());
            let key = first + sizes.len() as u64;
            self.put(key, sizes[sizes.len() - 1]);
            if sizes.len().is_power_of_two() {
                self.audit();
            }
        }
        self.audit();
        sizes.pop();
        let lost = (1..)
            .zip(&sizes)
            .filter(|&(n, &bytes)| !self.has(first + n, bytes));
        let lost = lost.count() as u64;
        assert_eq!(lost, self.evictions() - before, "lost, and not evicted");
        let stored: usize = sizes.iter().sum();
        stored as f64 / (8 * self.commons.words()) as f64
    }
}

fn rules() -> impl Iterator<Item = Rule> {
    RULES.iter().copied()
}

/// Under a rule that keeps all items for as long, none leaves early because of how the logs filled.
#[test]
fn what_is_written_while_the_memory_fills_stays_as_long_as_what_comes_later() {
    let (mut store, bytes) = (Store::new(6, ADAPTIVE), 1_000);
    let held = 8 * store.commons.words() / (bytes as u64 + 50);
    let lag = held * 4 / 5;
    for key in 0..2 * held {
        store.put(key, bytes);
        if let Some(before) = key.checked_sub(lag) {
            assert!(store.has(before, bytes), "{before} of {held} has left");
        }
    }
    assert!(store.evictions() > 0);
}

#[test]
fn values_of_a_megabyte_fill_the_memory_before_one_leaves() {
    for rule in rules() {
        for count in [2, 6, 40] {
            let share = Store::new(count, rule).fill(0, || 1_000_000);
            println!("{} partitions under {}: {share:.3}", count, rule.name);
            assert!(share > 0.88, "{} with {count}: {share}", rule.name);
        }
    }
}

#[test]
fn values_of_any_size_fill_the_memory_before_one_leaves() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for rule in rules() {
        let largest = rng.random_range(17..20);
        let mut store = Store::new(8, rule);
        let share = store.fill(0, || {
            let most = rng.random_range(8..=largest);
            rng.random_range(1..=1 << most)
        });
        println!("under {}: {share:.3}", rule.name);
        assert!(share > 0.88, "{}: {share}", rule.name);
    }
}

/// A partition alone has as many addresses as there is memory, up to the end of a huge page. So it
/// may come to their end before a claim fails.
#[test]
fn a_partition_alone_is_full_at_the_end_of_its_addresses() {
    const HUGE_PAGE: u64 = 2 << 20;
    let new = |rule, log_bytes| Store::with(1, rule, PagePolicy::Small, log_bytes);
    let excess = 8 * new(FIFO, 9_700 << 10).commons.words() % HUGE_PAGE;
    let log_bytes = (9_700 << 10) - excess as usize;
    // The other rules keep what came first in the main log, while nothing is read.
    for rule in [ADAPTIVE, FIFO, LRU, CLOCK] {
        let (mut store, bytes) = (new(rule, log_bytes), 40_000);
        let memory = 8 * store.commons.words();
        assert!(memory.next_multiple_of(HUGE_PAGE) - memory < bytes as u64);
        let held = memory / bytes as u64;
        for key in 0..3 * held {
            store.put(key, bytes);
        }
        store.audit();
        let counts = store.figures[0].counts(store.flushes);
        assert!(counts.evictions > held, "{}: {counts:?}", rule.name);
        let old = (0..held).find(|&key| store.has(key, bytes));
        assert_eq!(old, None, "{} keeps what was never read", rule.name);
        assert!(counts.reinsertions < held / 10, "{}: {counts:?}", rule.name);
    }
}

#[test]
fn tiny_items_fill_the_memory_too() {
    let mut store = Store::new(3, S3_FIFO);
    let mut stored = 0;
    while store.evictions() == 0 {
        stored += 1;
        store.put(stored, 32);
    }
    store.audit();
    // An item takes 48 bytes of the log and 12 of the index.
    let share = (60 * stored) as f64 / (8 * store.commons.words()) as f64;
    assert!(share > 0.95, "{share}");
}

/// The memory of a partition that was flushed is there for those that need it.
#[test]
fn what_was_flushed_is_filled_again_by_other_keys() {
    for rule in [FIFO, S3_FIFO] {
        let mut store = Store::new(20, rule);
        for round in 1..4 {
            let share = store.fill(round << 32, || 1_000_000);
            println!("{} {round}: {share:.3}", rule.name);
            assert!(share > 0.85, "{}: {share} in round {round}", rule.name);
            store.flushes += 1;
        }
    }
}

/// One key that is stored again and again leaves the others what they need.
#[test]
fn dead_values_of_one_key_take_no_memory_from_others() {
    for rule in rules() {
        let mut store = Store::new(6, rule);
        for n in 0..2_000 {
            store.put(0, 400_000 + n % 7 * 20_000);
        }
        store.audit();
        let dead = store.commons.words() - store.commons.left();
        assert!(
            dead * 2 < store.commons.words(),
            "{}: a key has taken {dead} words",
            rule.name
        );
        let before = store.evictions();
        for n in 1..24 {
            store.put(n, 1_000_000);
        }
        assert_eq!(store.evictions(), before, "{}", rule.name);
    }
}

/// Stores, deletes, reads and flushes at random: what is found is what was stored, and the books
/// balance.
#[test]
fn the_memory_in_common_is_never_more_than_there_is() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for rule in rules() {
        let mut store = Store::on(5, rule, PagePolicy::Transparent);
        let mut sizes = [0usize; 400];
        for step in 0..6_000u64 {
            let key = rng.random_range(0..400u64);
            match rng.random_range(0..100) {
                0..60 => {
                    let most = rng.random_range(5..=19);
                    sizes[key as usize] = rng.random_range(1..=1 << most);
                    store.put(key, sizes[key as usize]);
                }
                60..70 => {
                    store.remove(key);
                    assert!(!store.has(key, 0));
                }
                // Many tiny ones, so that the indexes grow.
                70..71 => (0..3_000).for_each(|n| store.put(((step + 1) << 20) + n, 16)),
                71 if rng.random_bool(0.1) => store.flushes += 1,
                _ => drop(store.has(key, sizes[key as usize])),
            }
            if step % 500 == 0 {
                store.audit();
            }
        }
        store.audit();
        let addresses: Vec<_> = (store.figures.iter())
            .flat_map(|it| it.addresses())
            .collect();
        let pages = PageReport::of(&addresses);
        let resident = pages.small_bytes + pages.transparent_huge_bytes;
        // A page at each end of a log.
        let bytes = 8 * store.commons.words() + 5 * 4 * 4096;
        assert!(resident <= bytes, "{}: {resident} of {bytes}", rule.name);
    }
}
