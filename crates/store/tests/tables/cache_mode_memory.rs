//! What cache mode makes of its memory while the index follows the items, beside an index whose
//! size was right from the start.

use glimmer_base::{Moment, Seed};
use glimmer_store::access::Crew;
use glimmer_store::evict::{FIFO, Rule, S3_FIFO};
use glimmer_store::heap::NewItem;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::TableWriter;
use glimmer_store::table::{Counts, Table};

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
/// Items of 16 and 32 bytes that the memory is meant for.
const ITEMS: u32 = 16 * 12_000;
/// Bytes of a main bucket and of a spare one.
const BUCKET_BYTES: [usize; 2] = [128, 64];
/// Main buckets at full load, and spare ones.
const MAINS: usize = ITEMS as usize / 15;
const SPARES: usize = MAINS / 2;

/// A table for those items whose index begins with this part of its buckets.
fn table(part: usize, rule: Rule) -> Owner<Crew> {
    let (main_buckets, spare_buckets) = (MAINS / part, SPARES / part);
    let saved =
        (MAINS - main_buckets) * BUCKET_BYTES[0] + (SPARES - spare_buckets) * BUCKET_BYTES[1];
    let config = PartitionConfig {
        log_bytes: ITEMS as usize * 56 + saved,
        main_buckets,
        spare_buckets,
        index_follows: part > 1,
        item_bytes_max: 200 << 10,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    Owner::new(&config, rule).unwrap()
}

fn put(owner: &mut Owner<Crew>, number: u32, value_bytes: usize) {
    put_after(0, owner, number, value_bytes);
}

/// Stores an item after this many flushes.
fn put_after(flushes: u64, owner: &mut Owner<Crew>, number: u32, value_bytes: usize) {
    let (key, value) = (format!("{number:016}"), vec![7; value_bytes]);
    let item = NewItem::new(key.as_bytes(), &value);
    let keyhash = SEED.keyhash(key.as_bytes());
    owner.enter(flushes).put(keyhash, &item, NOW);
}

fn counts(owner: &Owner<Crew>) -> Counts {
    owner.figures().counts(0)
}

fn keeps_as_many_items_as_an_index_of_the_right_size(rule: Rule) {
    let (mut right, mut follows) = (table(1, rule), table(16, rule));
    for number in 0..3 * ITEMS {
        put(&mut right, number, 32);
        put(&mut follows, number, 32);
        if number == ITEMS * 9 / 10 {
            let counts = counts(&follows);
            assert!(counts.index_evictions * 1_000 < u64::from(number));
        }
    }
    let (right, follows) = (counts(&right), counts(&follows));
    println!("{right:?}\n{follows:?}");
    assert!(
        follows.items * 100 >= right.items * 98,
        "{} of {}",
        follows.items,
        right.items
    );
    assert!(follows.index_evictions <= 2 * right.index_evictions);
}

/// A cache that is full goes on with the spare buckets of the items that leave. No entry has to
/// make room for another one while its item is in the log.
fn keeps_its_entries_when_it_is_full(rule: Rule) {
    let mut owner = table(1, rule);
    for number in 0..4 * ITEMS {
        put(&mut owner, number, 32);
    }
    let counts = counts(&owner);
    println!("{}: {counts:?}", rule.name);
    assert!(counts.evictions > u64::from(2 * ITEMS));
    assert!(counts.index_evictions * 2_000 < u64::from(4 * ITEMS));
}

#[test]
fn fifo_keeps_its_entries() {
    keeps_its_entries_when_it_is_full(FIFO);
}

#[test]
fn s3fifo_keeps_its_entries() {
    keeps_its_entries_when_it_is_full(S3_FIFO);
}

#[test]
fn fifo_keeps_as_many_items() {
    keeps_as_many_items_as_an_index_of_the_right_size(FIFO);
}

#[test]
fn s3fifo_keeps_as_many_items() {
    keeps_as_many_items_as_an_index_of_the_right_size(S3_FIFO);
}

/// A flush far from the log's beginning leaves free memory on both sides of the items that come
/// next; the index grows with these as it did with the first.
#[test]
fn an_index_grows_after_a_flush_as_from_the_start() {
    let mut owner = table(16, FIFO);
    for number in 0..ITEMS * 56 * 6 / 10 / 1_032 {
        put(&mut owner, number, 1_000);
    }
    let stored = ITEMS * 9 / 10;
    for number in 0..stored {
        put_after(1, &mut owner, number, 32);
    }
    let counts = owner.figures().counts(1);
    assert!(counts.items * 1_000 > u64::from(stored) * 999, "{counts:?}");
}

/// The same memory serves items a tenth and two thousand times as large, one after the other, and
/// the bytes of items say so.
#[test]
fn one_setting_serves_tiny_and_huge_items_in_turn() {
    let mut owner = table(16, FIFO);
    let all = owner.figures().heap_bytes() + owner.figures().index_bytes();
    let mut number = 0;
    for (value_bytes, laps, share) in [(4, 3, 0.6), (100 << 10, 4, 0.9), (4, 4, 0.6)] {
        let words = all * laps / (24 + value_bytes as u64);
        for _ in 0..words {
            put(&mut owner, number, value_bytes);
            number += 1;
        }
        let counts = counts(&owner);
        println!(
            "{value_bytes}: {counts:?}, index {}",
            owner.figures().index_bytes()
        );
        assert!(
            counts.bytes as f64 >= share * all as f64,
            "{} of {all} bytes are items' of {value_bytes}",
            counts.bytes
        );
    }
}
