//! Loom explores the shipped bucket, log and partition: every interleaving (up to a bound on
//! preemptions) and every value that a relaxed load may return. `RUSTFLAGS="--cfg loom" cargo test
//! -p glimmer-store --release --test loom_mica_cache`.
//!
//! That these tests would notice a missing fence is itself checked: `cargo xtask loom --weakened`
//! runs them once for each line of `weakenings.txt`, with one ordering weakened or one recheck
//! taken out, and wants a failure each time. Readers have threads of their own: with the writer
//! there and the reader in the main thread loom tries a fraction of the orders.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::evict::{FIFO, Rule, S3_FIFO};
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::index::BUCKET_ENTRIES;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
const ITEM_WORDS: usize = 3;

/// A partition of two buckets whose log holds `items` items of three words.
fn partition<A: Access>(items: usize, rule: Rule) -> Owner<A> {
    partition_for(8 * 6, items, rule)
}

/// The same for items of up to `item_bytes_max` bytes, all optional fields included.
fn partition_for<A: Access>(item_bytes_max: usize, items: usize, rule: Rule) -> Owner<A> {
    Owner::new(&config(item_bytes_max, items), rule).unwrap()
}

/// The same with an index that follows the number of items.
fn growing<A: Access>(spare_buckets: usize, item_bytes_max: usize, items: usize) -> Owner<A> {
    let config = PartitionConfig {
        index_follows: true,
        spare_buckets,
        ..config(item_bytes_max, items)
    };
    Owner::new(&config, FIFO).unwrap()
}

fn config(item_bytes_max: usize, items: usize) -> PartitionConfig {
    PartitionConfig {
        log_bytes: items * ITEM_WORDS * 8,
        main_buckets: 2,
        spare_buckets: 0,
        index_follows: false,
        item_bytes_max,
        offset_bits: 40,
        pages: PagePolicy::Small,
        numa_node: None,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    }
}

/// The n-th one-byte key that belongs to a bucket.
fn key(bucket: usize, n: usize) -> ([u8; 1], Keyhash) {
    (b'a'..=b'z')
        .map(|byte| ([byte], SEED.keyhash(&[byte])))
        .filter(|(_, hash)| hash.bucket(2) == bucket)
        .nth(n)
        .unwrap()
}

fn put<A: Access>(owner: &mut Owner<A>, key: ([u8; 1], Keyhash), fill: u8) {
    put_value(owner, 0, key, &[fill; 8]);
}

/// Stores a value under a flush number.
fn put_value<A: Access>(
    owner: &mut Owner<A>,
    flushes: u64,
    (key, keyhash): ([u8; 1], Keyhash),
    value: &[u8],
) {
    let item = NewItem {
        key: &key,
        value: [value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let stored = owner.enter(flushes).put(keyhash, &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// Appends to a value, which is there.
fn append<A: Access>(owner: &mut Owner<A>, (key, keyhash): ([u8; 1], Keyhash), more: &[u8]) {
    let item = NewItem {
        value: [&[], more],
        ..NewItem::new(&key, &[])
    };
    let stored = owner.enter(0).extend(keyhash, &item, NOW);
    assert!(matches!(stored, Some(Stored::Yes(_))));
}

/// A reader, with what it begins its batches by.
struct Looker {
    reader: <Owner<Crew> as Table>::Reader,
    participant: Participant,
}

/// A reader on worker 0. Worker 1 has the table.
fn looker<A: Access>(owner: &mut Owner<A>) -> Looker {
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    Looker {
        reader: owner.reader().unwrap(),
        participant: participants.remove(0),
    }
}

/// What a read sees: the CAS unique and the value's bytes.
fn seen(item: &Item<'_>) -> (u64, Vec<u8>) {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    (item.cas(), value)
}

fn get(
    looker: &mut Looker,
    (key, keyhash): ([u8; 1], Keyhash),
) -> Result<Option<(u64, Vec<u8>)>, ()> {
    let batch = looker.participant.begin();
    looker
        .reader
        .read(&batch, keyhash, &key, NOW, 0, seen)
        .map_err(|_| ())
}

/// The n-th store of a test writes n's: value and CAS unique must belong together.
fn assert_whole(found: &(u64, Vec<u8>)) {
    assert_eq!(found.1, [found.0 as u8; 8], "torn");
}

/// An append in place beside a reader, into the space that the item got when it was first appended
/// to: the reader sees the old item or the new one.
#[test]
fn values_that_are_appended_to_are_not_torn() {
    explore(2, || {
        let mut owner = partition_for::<Crew>(8 * 8, 8, FIFO);
        let mut reader = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        append(&mut owner, key(0, 0), &[1; 9]);
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0, 0)) {
                let (cas, value) = found.expect("the key is never absent");
                let whole = match cas {
                    2 => vec![1; 17],
                    _ => [&[1; 17][..], &[2; 8]].concat(),
                };
                assert_eq!(value, whole, "torn");
            }
        });
        append(&mut owner, key(0, 0), &[2; 8]);
        reading.join().unwrap();
        assert_eq!(owner.figures().counts(0).in_place_updates, 1);
    });
}

/// An update in place beside a reader: the reader sees the old item or the new one.
#[test]
fn in_place_updates_are_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, FIFO);
        let mut reader = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0, 0)) {
                assert_whole(&found.expect("the key is never absent"));
            }
        });
        put(&mut owner, key(0, 0), 2);
        reading.join().unwrap();
    });
}

/// The log's tail runs over an item while it is copied: the reader sees the whole item or none. The
/// new item lies in the other bucket, so that no version moves.
#[test]
fn items_overwritten_by_the_tail_are_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, FIFO);
        let mut reader = looker(&mut owner);
        for n in 0..4 {
            put(&mut owner, key(0, n), 1 + n as u8);
        }
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
                assert_whole(&found);
                assert_eq!(found.0, 1, "another item's value");
            }
        });
        put(&mut owner, key(1, 0), 5);
        reading.join().unwrap();
    });
}

/// What was acknowledged before a read began is what the read sees, or something newer.
#[test]
fn acknowledged_writes_are_seen() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, FIFO);
        let mut reader = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        let acknowledged = Arc::new(AtomicBool::new(false));
        let reading = {
            let acknowledged = acknowledged.clone();
            thread::spawn(move || {
                let after = acknowledged.load(Ordering::Acquire);
                if let Ok(found) = get(&mut reader, key(0, 0)) {
                    let found = found.expect("the key is never absent");
                    assert_whole(&found);
                    assert!(!after || found.0 == 2, "stale after it was acknowledged");
                }
            })
        };
        put(&mut owner, key(0, 0), 2);
        acknowledged.store(true, Ordering::Release);
        reading.join().unwrap();
    });
}

/// An item that the head keeps (it was read) is moved while a reader looks for it: the reader finds
/// it, whole, wherever it is.
#[test]
fn items_kept_at_the_head_are_never_absent() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, S3_FIFO);
        let mut reader = looker(&mut owner);
        for n in 0..4 {
            put(&mut owner, key(0, n), 1 + n as u8);
        }
        assert!(get(&mut reader, key(0, 0)).unwrap().is_some());
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0, 0)) {
                let found = found.expect("an item that was read is kept");
                assert_whole(&found);
                assert_eq!(found.0, 1);
            }
        });
        put(&mut owner, key(1, 0), 5);
        reading.join().unwrap();
    });
}

/// The head passes one item, and keeps the next, which it copies to where the first one lies before
/// it has come to its end. The reader sees the whole first item or none. No version moves that it
/// looks at.
#[test]
fn items_overwritten_by_one_that_is_kept_are_not_torn() {
    explore(2, || {
        let mut owner = partition_for::<Crew>(8 * 7, 6, S3_FIFO);
        let mut reader = looker(&mut owner);
        let keys = [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (0, 4)];
        for ((bucket, n), fill) in keys.into_iter().zip(1..) {
            put(&mut owner, key(bucket, n), fill);
        }
        assert!(get(&mut reader, key(1, 0)).unwrap().is_some());
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
                assert_whole(&found);
                assert_eq!(found.0, 1, "another item's value");
            }
        });
        // Larger than the first item, so the head goes on to the next.
        put_value(&mut owner, 0, key(1, 1), &[7; 16]);
        assert_eq!(owner.figures().counts(0).reinsertions, 1);
        reading.join().unwrap();
    });
}

/// A flush empties the log, and the next item is written where the reader's one lies. It belongs to
/// the other bucket, so that no version moves.
#[test]
fn what_a_flush_gives_up_is_not_torn() {
    explore(2, || {
        let mut owner = growing::<Crew>(0, 8 * 6, 4);
        let mut reader = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
                assert_whole(&found);
                assert_eq!(found.0, 1, "another item's value");
            }
        });
        put_value(&mut owner, 1, key(1, 0), &[2; 8]);
        reading.join().unwrap();
    });
}

/// A full bucket is split while a reader looks for an item in it: whether the item stays or goes,
/// it is never absent. The index gives up the oldest item for the new one.
#[test]
fn items_are_found_while_their_bucket_is_split() {
    for goes in [false, true] {
        let is_wanted = |n: &usize| (key(0, *n).1.tag() & 1 == 1) == goes;
        let looked_for = (1..BUCKET_ENTRIES).find(is_wanted).expect("one of each");
        explore(1, move || {
            let mut owner = growing::<Crew>(0, 8 * 6, 10);
            let mut reader = looker(&mut owner);
            for n in 0..BUCKET_ENTRIES {
                put(&mut owner, key(0, n), 1 + n as u8);
            }
            let reading = thread::spawn(move || {
                if let Ok(found) = get(&mut reader, key(0, looked_for)) {
                    let found = found.expect("the key is never absent");
                    assert_whole(&found);
                    assert_eq!(found.0, 1 + looked_for as u64);
                }
            });
            put(&mut owner, key(0, BUCKET_ENTRIES), 100);
            assert_eq!(owner.figures().counts(0).buckets_added, 1);
            reading.join().unwrap();
        });
    }
}

/// After a flush the index grows into memory in which the reader's item lies. The reader sees the
/// whole item or none. The item belongs to the other bucket, which is not split. The full one gets
/// the spare bucket, so that no chain is scanned for one, and no version moves.
#[test]
fn items_where_the_index_grows_are_not_torn() {
    explore(2, || {
        let mut owner = growing::<Crew>(1, 8 * 9, 10);
        let mut reader = looker(&mut owner);
        // The log has 30 words, of which one more bucket takes the last six.
        for n in 0..4 {
            put_value(&mut owner, 0, key(1, n), &[1 + n as u8; 32]);
        }
        put(&mut owner, key(1, 4), 5);
        // The scan for stale entries comes to the other bucket next, and not to the reader's.
        put(&mut owner, key(0, 0), 6);
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(1, 4)) {
                assert_whole(&found);
                assert_eq!(found.0, 5, "another item's value");
            }
        });
        for n in 0..=BUCKET_ENTRIES {
            put_value(&mut owner, 1, key(0, n), &[7 + n as u8; 8]);
        }
        assert_eq!(owner.figures().counts(0).buckets_added, 1);
        reading.join().unwrap();
    });
}

/// A deleted key stays deleted for every reader that knows of it.
#[test]
fn deletes_are_seen() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, FIFO);
        let mut reader = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        let acknowledged = Arc::new(AtomicBool::new(false));
        let reading = {
            let acknowledged = acknowledged.clone();
            thread::spawn(move || {
                let after = acknowledged.load(Ordering::Acquire);
                if let Ok(found) = get(&mut reader, key(0, 0)) {
                    assert!(!after || found.is_none());
                    found.iter().for_each(assert_whole);
                }
            })
        };
        let (key, keyhash) = key(0, 0);
        assert!(owner.enter(0).remove(keyhash, &key, NOW));
        acknowledged.store(true, Ordering::Release);
        reading.join().unwrap();
    });
}

/// Two writers and a reader under CRCW: writers exclude one another, and nothing is lost.
#[test]
fn writers_exclude_one_another() {
    explore(2, || {
        let mut owner = partition::<Crcw>(4, FIFO);
        let mut reader = looker(&mut owner);
        let mut other = owner.share(2).unwrap();
        let writer = thread::spawn(move || put(&mut other, key(0, 0), 7));
        put(&mut owner, key(0, 1), 7);
        writer.join().unwrap();
        let mut found: Vec<_> = [key(0, 0), key(0, 1)]
            .map(|key| get(&mut reader, key).unwrap().unwrap().0)
            .into();
        found.sort_unstable();
        assert_eq!(found, [1, 2], "each store has a CAS unique of its own");
        assert_eq!(owner.figures().counts(0).items, 2);
    });
}

/// One writer moves the log's head past a large item for a small one of its own, and another writer
/// stores where the rest of the large item lay. The second one publishes no head. Both small items
/// lie in the other bucket, so no version moves.
#[test]
fn a_place_given_up_by_one_writer_and_taken_by_another_is_not_torn() {
    explore(2, || {
        let mut owner = partition_for::<Crcw>(8 * 9, 6, FIFO);
        let (mut reader, mut other) = (looker(&mut owner), owner.share(2).unwrap());
        put_value(&mut owner, 0, key(0, 0), &[1; 32]);
        for n in 1..5 {
            put(&mut owner, key(0, n), 1 + n as u8);
        }
        let first = thread::spawn(move || put(&mut owner, key(1, 0), 6));
        let second = thread::spawn(move || put(&mut other, key(1, 1), 7));
        if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
            assert_eq!(found, (1, vec![1; 32]), "torn, or another item's value");
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A reader that knows of a flush never sees an item from before it: it asks the writer until the
/// table has carried the flush out, and then there is no item.
#[test]
fn what_was_flushed_is_not_read() {
    explore(2, || {
        let mut owner = partition::<Crew>(4, FIFO);
        let mut looker = looker(&mut owner);
        put(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            let Looker {
                reader,
                participant,
            } = &mut looker;
            let (key, keyhash) = key(0, 0);
            let batch = participant.begin();
            let found = reader.read(&batch, keyhash, &key, NOW, 1, seen);
            assert!(matches!(found, Err(_) | Ok(None)));
        });
        drop(owner.enter(1));
        reading.join().unwrap();
    });
}
