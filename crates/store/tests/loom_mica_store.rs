//! Loom explores the shipped store-mode partition as `loom_mica_cache` does the cache-mode one.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_store::{Owner, StoreConfig};
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use loom::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
const ROOTS: usize = 2;

/// A partition of two main buckets and no spare one, with room for more.
fn partition<A: Access>() -> Owner<A> {
    partition_of(65 * 8, 8 * 6)
}

/// A partition of two main buckets and no spare one.
fn partition_of<A: Access>(bytes: usize, item_bytes_max: usize) -> Owner<A> {
    let config = StoreConfig {
        bytes,
        roots: Some(ROOTS),
        spare_percent: 0,
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    Owner::new(&config).unwrap()
}

/// The n-th one-byte key that belongs to a main bucket.
fn key(bucket: usize, n: usize) -> ([u8; 1], Keyhash) {
    (b'A'..=b'z')
        .map(|byte| ([byte], SEED.keyhash(&[byte])))
        .filter(|(_, hash)| hash.bucket(ROOTS) == bucket)
        .nth(n)
        .unwrap()
}

/// Stores a value of eight `fill`s under a flush number.
fn put<A: Access>(owner: &mut Owner<A>, flushes: u64, key: ([u8; 1], Keyhash), fill: u8) {
    put_value(owner, flushes, key, &[fill; 8]);
}

/// Stores a value of which all bytes are the same.
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
        history: History {
            cas: Some(value[0].into()),
            ..History::NEW
        },
    };
    let stored = owner.enter(flushes).put(keyhash, &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
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

/// What a read at flush number 0 sees: the CAS unique and the value's bytes. Errs if the reader has
/// to ask the owner.
fn get(
    looker: &mut Looker,
    (key, keyhash): ([u8; 1], Keyhash),
) -> Result<Option<(u64, Vec<u8>)>, ()> {
    let seen = |item: &Item<'_>| {
        let mut value = Vec::new();
        item.value().append_to(&mut value);
        (item.cas(), value)
    };
    let batch = looker.participant.begin();
    looker
        .reader
        .read(&batch, keyhash, &key, NOW, 0, seen)
        .map_err(|_| ())
}

/// The value that was stored as `fill`, whole, or one of the others that are named.
fn assert_is(found: &(u64, Vec<u8>), fills: &[u64]) {
    assert_eq!(found.1, [found.0 as u8; 8], "torn");
    assert!(fills.contains(&found.0), "another item's value: {found:?}");
}

/// An append in place beside a reader, into what is free after the item.
#[test]
fn values_that_are_appended_to_are_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>();
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0, 0)) {
                let (cas, value) = found.expect("the key is never absent");
                let whole = match cas {
                    1 => vec![1; 8],
                    _ => [[1; 8], [2; 8]].concat(),
                };
                assert_eq!(value, whole, "torn");
            }
        });
        let (key, keyhash) = key(0, 0);
        let more = NewItem {
            value: [&[], &[2; 8]],
            history: History {
                cas: Some(2),
                ..History::NEW
            },
            ..NewItem::new(&key, &[])
        };
        let stored = owner.enter(0).extend(keyhash, &more, NOW);
        assert!(matches!(stored, Some(Stored::Yes(2))));
        reading.join().unwrap();
    });
}

/// An update in place beside a reader.
#[test]
fn in_place_updates_are_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>();
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), 1);
        let writer = thread::spawn(move || put(&mut owner, 0, key(0, 0), 2));
        if let Ok(found) = get(&mut reader, key(0, 0)) {
            assert_is(&found.expect("the key is never absent"), &[1, 2]);
        }
        writer.join().unwrap();
    });
}

/// An item is removed, and its place is given to one of another bucket while a reader copies it.
#[test]
fn a_place_given_to_another_item_is_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>();
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), 1);
        let writer = thread::spawn(move || {
            let (key_bytes, keyhash) = key(0, 0);
            assert!(owner.enter(0).remove(keyhash, &key_bytes, NOW));
            put(&mut owner, 0, key(1, 0), 2);
        });
        if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
            assert_is(&found, &[1]);
        }
        writer.join().unwrap();
    });
}

/// The same where one thread removes and another takes the place.
#[test]
fn a_place_given_up_by_one_writer_and_taken_by_another_is_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crcw>();
        let (mut reader, mut other) = (looker(&mut owner), owner.share(2).unwrap());
        put(&mut owner, 0, key(0, 0), 1);
        let remover = thread::spawn(move || {
            let (key_bytes, keyhash) = key(0, 0);
            assert!(owner.enter(0).remove(keyhash, &key_bytes, NOW));
        });
        let taker = thread::spawn(move || put(&mut other, 0, key(1, 0), 2));
        if let Ok(Some(found)) = get(&mut reader, key(0, 0)) {
            assert_is(&found, &[1]);
        }
        remover.join().unwrap();
        taker.join().unwrap();
    });
}

/// A flush empties the heap, and the first place is given to an item of another bucket, before the
/// scan comes to the reader's one: no version that the reader looks at has moved by then.
#[test]
fn a_flush_beside_a_reader_is_noticed() {
    explore(2, || {
        let mut owner = partition::<Crew>();
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(1, 0), 1);
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(1, 0)) {
                assert_is(&found, &[1]);
            }
        });
        put(&mut owner, 1, key(0, 0), 2);
        reading.join().unwrap();
    });
}

/// A full bucket is split while a reader looks for an item in it: whether the item stays or goes,
/// it is never absent.
#[test]
fn items_are_found_while_their_bucket_is_split() {
    let full = glimmer_store::index::BUCKET_ENTRIES;
    let goes = |n: &usize| key(0, *n).1.tag() & 1 == 1;
    let looked_for = (0..full).find(goes).expect("one of the items goes");
    explore(2, move || {
        let mut owner = partition::<Crew>();
        let mut reader = looker(&mut owner);
        for n in 0..full {
            put(&mut owner, 0, key(0, n), 1 + n as u8);
        }
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0, looked_for)) {
                let found = found.expect("the key is never absent");
                assert_is(&found, &[1 + looked_for as u64]);
            }
        });
        put(&mut owner, 0, key(0, full), 100);
        reading.join().unwrap();
    });
}

/// An item is slid over a gap that is smaller than the item, and another one takes what comes
/// together after it. That one belongs to another bucket. A reader looks for the item meanwhile,
/// whose value is this.
fn beside_an_item_that_is_slid<const BYTES: usize>(
    read: fn(&mut Looker, ([u8; 1], Keyhash), [u8; BYTES]),
) {
    explore(2, move || {
        let value = [2; BYTES];
        // The heap has 24 words, or 8 more. They are all in use.
        let bytes = 65 * (5 + BYTES / 64);
        let mut owner = partition_of::<Crew>(bytes, (8 * 9).max(BYTES + 8 * 5));
        let mut reader = looker(&mut owner);
        let (first, slid, third) = (key(1, 0), key(0, 0), key(1, 1));
        put(&mut owner, 0, first, 1);
        put_value(&mut owner, 0, slid, &value);
        put(&mut owner, 0, third, 3);
        put_value(&mut owner, 0, key(1, 2), &[4; 32]);
        put_value(&mut owner, 0, key(1, 3), &[5; 16]);
        put_value(&mut owner, 0, key(1, 4), &[6; 16]);
        for (key, keyhash) in [first, third] {
            assert!(owner.enter(0).remove(keyhash, &key, NOW));
        }
        let reading = thread::spawn(move || read(&mut reader, slid, value));
        put_value(&mut owner, 0, key(1, 5), &[7; 32]);
        assert_eq!(owner.figures().counts(0).moved, 1);
        reading.join().unwrap();
    });
}

/// The reader finds the item at either place, and whole.
#[test]
fn an_item_that_is_slid_is_not_torn() {
    beside_an_item_that_is_slid::<16>(|reader, key, value| {
        if let Ok(found) = get(reader, key) {
            let found = found.expect("the key is never absent");
            assert_eq!(found.1, value, "torn, or another item's value");
        }
    });
}

/// The reader borrows the value.
#[test]
fn a_value_that_is_lent_of_an_item_that_is_slid_is_not_overwritten() {
    beside_an_item_that_is_slid::<80>(|reader, (key, keyhash), value| {
        let batch = reader.participant.begin();
        let lent = (reader.reader).lend(&batch, keyhash, &key, NOW, 0, |_| ());
        drop(batch);
        if let Ok(Some(((), lent))) = lent {
            lent.with(0..lent.bytes(), &mut |bytes| {
                assert!(value.starts_with(bytes), "overwritten");
            });
        }
    });
}

/// A reader that knows of a flush never sees an item from before it: it asks the writer until the
/// table has carried the flush out, and then there is no item.
#[test]
fn what_was_flushed_is_not_read() {
    explore(2, || {
        let mut owner = partition::<Crew>();
        let mut looker = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), 1);
        let reading = thread::spawn(move || {
            let Looker {
                reader,
                participant,
            } = &mut looker;
            let (key, keyhash) = key(0, 0);
            let batch = participant.begin();
            let found = reader.read(&batch, keyhash, &key, NOW, 1, |item| item.cas());
            assert!(matches!(found, Err(_) | Ok(None)));
        });
        drop(owner.enter(1));
        reading.join().unwrap();
    });
}
