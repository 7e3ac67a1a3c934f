//! Loom explores the shipped cuckoo index, slabs and MemC3 table: every interleaving (up to a bound
//! on preemptions) and every value that a relaxed load may return. `RUSTFLAGS="--cfg loom" cargo
//! test -p glimmer-store --release --test loom_memc3`.
//!
//! Pages have two lines here, so a segment has six buckets of four slots. Readers have threads of
//! their own: with the writer there and the reader in the main thread loom tries a fraction of the
//! orders.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::slab::Slabs;
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::index::cuckoo::{point, spread};
use glimmer_store::memc3::{Memc3Config, Owner};
use glimmer_store::memory::PagePolicy;
use glimmer_store::table::{Prefetcher, Table, TableReader, TableWriter};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
const PAGE_BYTES: usize = 128;
const BUCKETS: u32 = 6;
/// Pages of the index and of items in the smallest table that there can be.
const PAGES_MIN: usize = 4;
/// Items of a page.
const PAGE_ITEMS: usize = 5;

type Key = [u8; 2];

/// A table of this many pages. The index has one of them at first.
fn table<A: Access>(pages: usize) -> Owner<A> {
    table_for(pages, 8 * 6)
}

fn table_for<A: Access>(pages: usize, item_bytes_max: usize) -> Owner<A> {
    let config = Memc3Config {
        // What the writer knows of a page counts as well.
        memory_bytes: pages * (PAGE_BYTES + Slabs::BYTES_PER_PAGE),
        page_bytes: PAGE_BYTES,
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    Owner::new(&config).unwrap()
}

fn hash(key: Key) -> Keyhash {
    SEED.keyhash(&key)
}

/// The n-th key.
fn key(n: usize) -> Key {
    [b'a' + (n / 26) as u8, b'a' + (n % 26) as u8]
}

fn put<A: Access>(owner: &mut Owner<A>, flushes: u64, key: Key, fill: u8) {
    put_value(owner, flushes, key, &[fill; 8]);
}

fn put_value<A: Access>(owner: &mut Owner<A>, flushes: u64, key: Key, value: &[u8]) {
    let item = NewItem {
        key: &key,
        value: [value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    owner.enter(flushes).put(hash(key), &item, NOW);
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

fn get(looker: &mut Looker, key: Key) -> Result<Option<(u64, Vec<u8>)>, ()> {
    let batch = looker.participant.begin();
    looker
        .reader
        .read(&batch, hash(key), &key, NOW, 0, seen)
        .map_err(|_| ())
}

/// The n-th store of a test writes n's: value and CAS unique must belong together.
fn assert_whole(found: &(u64, Vec<u8>)) {
    assert_eq!(found.1, [found.0 as u8; 8], "torn");
}

/// An append in place beside a reader: the reader sees the old item or the new one.
#[test]
fn values_that_are_appended_to_are_not_torn() {
    explore(2, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0), 1);
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0)) {
                let (cas, value) = found.expect("the key is never absent");
                let whole: &[u8] = if cas == 1 {
                    &[1; 8]
                } else {
                    &[1, 1, 1, 1, 1, 1, 1, 1, 2]
                };
                assert_eq!(value, whole, "torn");
            }
        });
        let key = key(0);
        let more = NewItem {
            value: [&[], &[2]],
            ..NewItem::new(&key, &[])
        };
        let stored = owner.enter(0).extend(hash(key), &more, NOW);
        assert!(stored.is_some());
        reading.join().unwrap();
    });
}

/// An update in place beside a reader: the reader sees the old item or the new one.
#[test]
fn in_place_updates_are_not_torn() {
    explore(2, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0), 1);
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, key(0)) {
                assert_whole(&found.expect("the key is never absent"));
            }
        });
        put(&mut owner, 0, key(0), 2);
        reading.join().unwrap();
    });
}

/// CLOCK gives an item's chunk to another one while it is copied: the reader sees the whole item or
/// none.
#[test]
fn items_whose_memory_is_given_away_are_not_torn() {
    explore(1, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        let full = PAGE_ITEMS * (PAGES_MIN - 1);
        for n in 0..full {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        assert_eq!(Owner::figures(&owner).counts(0).evictions, 0);
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, key(0)) {
                assert_whole(&found);
                assert_eq!(found.0, 1, "another item's value");
            }
        });
        put(&mut owner, 0, key(full), 1 + full as u8);
        assert_eq!(Owner::figures(&owner).counts(0).evictions, 1);
        reading.join().unwrap();
    });
}

/// What was acknowledged before a read began is what the read sees, or something newer.
#[test]
fn acknowledged_writes_are_seen() {
    explore(2, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0), 1);
        let acknowledged = Arc::new(AtomicBool::new(false));
        let reading = {
            let acknowledged = acknowledged.clone();
            thread::spawn(move || {
                let after = acknowledged.load(Ordering::Acquire);
                if let Ok(found) = get(&mut reader, key(0)) {
                    let found = found.expect("the key is never absent");
                    assert_whole(&found);
                    assert!(!after || found.0 == 2, "stale after it was acknowledged");
                }
            })
        };
        put(&mut owner, 0, key(0), 2);
        acknowledged.store(true, Ordering::Release);
        reading.join().unwrap();
    });
}

/// A deleted key stays deleted for every reader that knows of it, and its chunk may be another's.
#[test]
fn deletes_are_seen() {
    explore(1, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0), 1);
        let acknowledged = Arc::new(AtomicBool::new(false));
        let reading = {
            let acknowledged = acknowledged.clone();
            thread::spawn(move || {
                let after = acknowledged.load(Ordering::Acquire);
                if let Ok(found) = get(&mut reader, key(0)) {
                    assert!(!after || found.is_none());
                    if let Some(found) = &found {
                        assert_whole(found);
                        assert_eq!(found.0, 1, "another item's value");
                    }
                }
            })
        };
        assert!(owner.enter(0).remove(hash(key(0)), &key(0), NOW));
        put(&mut owner, 0, key(1), 2);
        acknowledged.store(true, Ordering::Release);
        reading.join().unwrap();
    });
}

/// Keys whose first bucket is `first` and whose other bucket passes.
fn keys_at(first: u32, other: impl Fn(u32) -> bool) -> impl Iterator<Item = Key> {
    (0..26 * 26).map(key).filter(move |&key| {
        let (homes, _) = spread(hash(key), BUCKETS);
        homes[0] == first && other(homes[1])
    })
}

/// A new item finds both its buckets full, and another moves to its other bucket, on another line:
/// the reader that looks for that one finds it wherever it is.
#[test]
fn items_that_are_moved_are_never_absent() {
    explore(2, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        // The first item of bucket 0 is the one that a shortest path moves.
        let moved: Vec<Key> = keys_at(0, |other| other == 5).take(4).collect();
        let others: Vec<Key> = keys_at(1, |other| other == 4).take(4).collect();
        let new = keys_at(0, |other| other == 1).next().unwrap();
        for (n, &key) in moved.iter().chain(&others).enumerate() {
            put(&mut owner, 0, key, 1 + n as u8);
        }
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, moved[0]) {
                let found = found.expect("an item that is moved is never absent");
                assert_whole(&found);
                assert_eq!(found.0, 1);
            }
        });
        put(&mut owner, 0, new, 9);
        assert_eq!(Owner::figures(&owner).counts(0).items, 9);
        reading.join().unwrap();
    });
}

/// Pages for as many items as make the index split.
const PAGES_TO_SPLIT: usize = 9;

/// How many keys fit before the first segment splits.
fn keys_before_split() -> usize {
    let keys = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = keys.clone();
    explore(2, move || {
        let mut owner = table::<Crew>(PAGES_TO_SPLIT);
        let before = Table::figures(&owner).index_bytes();
        let mut n = 0;
        while Table::figures(&owner).index_bytes() == before {
            put(&mut owner, 0, key(n), 1);
            n += 1;
        }
        assert_eq!(Owner::figures(&owner).counts(0).evictions, 0);
        counted.store(n - 1, std::sync::atomic::Ordering::Relaxed);
    });
    keys.load(std::sync::atomic::Ordering::Relaxed)
}

/// The key among the first `n` that a split moves to the new segment, or does not.
fn some_key(n: usize, moves: bool) -> Key {
    (0..n).map(key).find(|&key| is_moved(key) == moves).unwrap()
}

/// Whether the first split moves a key.
fn is_moved(key: Key) -> bool {
    point(hash(key)) >= 1 << 31
}

/// A segment is split under a reader: it finds the item, on the old page or on the new one.
#[test]
fn items_of_a_segment_that_is_split_are_never_absent() {
    let n = keys_before_split();
    explore(1, move || {
        let mut owner = table::<Crew>(PAGES_TO_SPLIT);
        let mut reader = looker(&mut owner);
        for n in 0..n {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, some_key(n, true)) {
                let found = found.expect("an item that goes to a new segment is never absent");
                assert_whole(&found);
            }
        });
        put(&mut owner, 0, key(n), 1 + n as u8);
        reading.join().unwrap();
    });
}

/// A place that was looked up before a split is not where the writer looks for the item after it.
#[test]
fn a_place_from_before_a_split_is_not_believed() {
    let n = keys_before_split();
    explore(2, move || {
        let mut owner = table::<Crew>(PAGES_TO_SPLIT);
        for n in 0..n {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        let moved = some_key(n, true);
        let before = owner.prefetcher().home(hash(moved));
        put(&mut owner, 0, key(n), 1 + n as u8);
        assert_ne!(owner.prefetcher().home(hash(moved)), before);
        let mut writer = owner.enter_at(hash(moved), before, 0);
        let found = writer.read(hash(moved), &moved, NOW, seen);
        assert_whole(&found.expect("the item is in the new segment"));
    });
}

/// The index grows into a page on which a slab lies. The slab moves to a free page, and the index
/// writes over the old one, beside a reader of an item of the slab, whose value is this.
fn beside_a_slab_that_moves<const BYTES: usize>(read: fn(&mut Looker, Key, [u8; BYTES])) {
    /// Two pages of fillers, two of other items, the slab that moves, and the index.
    const PAGES: usize = 6;
    /// An item of more than half a page, and one that has a slab of its own beside the others.
    const FILLER: [u8; 62] = [0xFF; 62];
    let value = [8; BYTES];
    let key_in_full_buckets = |moves: bool| {
        let keys = [0, 1].map(|first| keys_at(first, move |other| other == 1 - first));
        let keys = keys.into_iter().flatten();
        keys.filter(move |&key| is_moved(key) == moves)
    };
    let fillers: Vec<Key> = keys_at(4, |other| other > 1).take(2).collect();
    // Eight keys fill two buckets. The ninth has the same two, and goes to the new segment.
    let keys: Vec<Key> = key_in_full_buckets(false).take(8).collect();
    let new = key_in_full_buckets(true).next().unwrap();
    explore(2, move || {
        let mut owner = table_for::<Crew>(PAGES, 8 * 12);
        let mut reader = looker(&mut owner);
        for &filler in &fillers {
            put_value(&mut owner, 0, filler, &FILLER);
        }
        let (&looked_for, others) = keys.split_last().unwrap();
        for (n, &key) in others.iter().enumerate() {
            put(&mut owner, 0, key, n as u8);
        }
        put_value(&mut owner, 0, looked_for, &value);
        // A class keeps one page of its own, so one of two is free now.
        for filler in &fillers {
            assert!(owner.enter(0).remove(hash(*filler), filler, NOW));
        }
        // An item that was read is not marked again. Loom has no total order of a plain store and
        // an exchange that races with it, so the writer would meet marks that it has overwritten.
        assert!(get(&mut reader, looked_for).unwrap().is_some());
        let reading = thread::spawn(move || read(&mut reader, looked_for, value));
        put(&mut owner, 0, new, 9);
        let counts = Owner::figures(&owner).counts(0);
        assert_eq!((counts.moved, counts.items, counts.evictions), (1, 9, 0));
        reading.join().unwrap();
    });
}

/// The reader finds the item on either page, and whole.
#[test]
fn items_of_a_slab_that_moves_are_not_torn() {
    beside_a_slab_that_moves::<16>(|reader, key, value| {
        if let Ok(found) = get(reader, key) {
            let found = found.expect("an item that moves with its slab is never absent");
            assert_eq!(found.1, value, "torn, or another item's value");
        }
    });
}

/// The reader borrows the value.
#[test]
fn a_value_that_is_lent_of_a_slab_that_moves_is_not_overwritten() {
    beside_a_slab_that_moves::<48>(|reader, key, value| {
        let Looker {
            reader,
            participant,
        } = reader;
        let batch = participant.begin();
        let lent = reader.lend(&batch, hash(key), &key, NOW, 0, |_| ());
        drop(batch);
        if let Ok(Some(((), lent))) = lent {
            lent.with(0..lent.bytes(), &mut |bytes| {
                assert!(value.starts_with(bytes), "overwritten");
            });
        }
    });
}

/// A flush gives the memory of items away whose segment it does not touch: the reader sees the
/// whole item or none.
#[test]
fn items_that_are_flushed_are_not_torn() {
    let n = keys_before_split() + 1;
    explore(2, move || {
        let mut owner = table::<Crew>(PAGES_TO_SPLIT);
        let mut reader = looker(&mut owner);
        for n in 0..n {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        // The first item lies where the next one will after the flush.
        let first = key(0);
        assert!(
            is_moved(first),
            "choose a seed by which the first key moves"
        );
        let reading = thread::spawn(move || {
            if let Ok(Some(found)) = get(&mut reader, first) {
                assert_whole(&found);
                assert_eq!(found.0, 1, "another item's value");
            }
        });
        put(&mut owner, 1, key(n), 1 + n as u8);
        reading.join().unwrap();
    });
}

/// Between two looks at an item comes a flush, and the same keys are stored again, so that page,
/// lines and versions become what they were. Only the number of flushes tells the reader.
#[test]
fn items_that_are_flushed_and_stored_again_are_not_torn() {
    let n = keys_before_split() + 1;
    explore(2, move || {
        let mut owner = table::<Crew>(PAGES_TO_SPLIT);
        let Looker {
            reader,
            mut participant,
        } = looker(&mut owner);
        for n in 0..n {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        let (first, batch) = (some_key(n, true), participant.begin());
        let mut looks = 0;
        let read = reader.read(&batch, hash(first), &first, NOW, 0, |item| {
            let cas = item.cas();
            looks += 1;
            for i in 0..n {
                put(&mut owner, 1, key(i), 1 + (n + i) as u8);
            }
            (cas, seen(item).1)
        });
        assert!(read.is_err(), "the table has carried out another flush");
        assert_eq!(looks, 1);
    });
}

/// A flush leaves a page of the index, and an item takes it. A reader that has found its item in
/// the page before the flush may note its read there. Each half of a word of the new item looks
/// like the slot that the reader has found, and none is changed.
#[test]
fn a_page_that_a_flush_leaves_is_not_marked_as_an_item() {
    let n = keys_before_split() + 1;
    explore(1, move || {
        let mut owner = table_for::<Crew>(PAGES_TO_SPLIT, 3 * PAGE_BYTES);
        let mut reader = looker(&mut owner);
        for n in 0..n {
            put(&mut owner, 0, key(n), 1 + n as u8);
        }
        // The first item lies at the first word, so its slot is zero before it is read.
        let first = key(0);
        assert!(
            is_moved(first),
            "choose a seed by which the first key moves"
        );
        let reading = thread::spawn(move || {
            let _ = get(&mut reader, first);
        });
        // Of seven pages two items take three each. The last item needs one page more than there
        // is.
        let in_three_pages = [1; 2 * PAGE_BYTES + 8];
        put_value(&mut owner, 1, key(n), &in_three_pages);
        put_value(&mut owner, 1, key(n + 1), &in_three_pages);
        let zeros = [0; 2 * PAGE_BYTES - 32];
        put_value(&mut owner, 1, key(n + 2), &zeros);
        reading.join().unwrap();
        let last = key(n + 2);
        let found = owner.enter(1).read(hash(last), &last, NOW, seen);
        assert!(found.unwrap().1 == zeros, "an item was changed");
    });
}

/// Two writers and a reader under CRCW: writers exclude one another, and nothing is lost.
#[test]
fn writers_exclude_one_another() {
    explore(2, || {
        let mut owner = table::<Crcw>(PAGES_MIN);
        let mut reader = looker(&mut owner);
        let mut other = owner.share(2).unwrap();
        let writer = thread::spawn(move || put(&mut other, 0, key(0), 7));
        put(&mut owner, 0, key(1), 7);
        writer.join().unwrap();
        let mut found: Vec<_> = [key(0), key(1)]
            .map(|key| get(&mut reader, key).unwrap().unwrap().0)
            .into();
        found.sort_unstable();
        assert_eq!(found, [1, 2], "each store has a CAS unique of its own");
        assert_eq!(Owner::figures(&owner).counts(0).items, 2);
    });
}

/// One writer removes an item, and another one stores its own where that item lay: a reader that
/// copies the first item sees all of it, or nothing.
#[test]
fn a_chunk_given_up_by_one_writer_and_taken_by_another_is_not_torn() {
    explore(2, || {
        let mut owner = table::<Crcw>(PAGES_MIN);
        let (mut reader, mut other) = (looker(&mut owner), owner.share(2).unwrap());
        // The second key's slot is on another line, so its store changes no version that the
        // reader looks at.
        let [first, second] = two_keys_on_different_lines();
        put(&mut owner, 0, first, 1);
        let remover = thread::spawn(move || {
            assert!(owner.enter(0).remove(hash(first), &first, NOW));
        });
        let taker = thread::spawn(move || put(&mut other, 0, second, 2));
        if let Ok(Some(found)) = get(&mut reader, first) {
            assert_whole(&found);
            assert_eq!(found.0, 1, "another item's value");
        }
        remover.join().unwrap();
        taker.join().unwrap();
    });
}

/// A key whose buckets both lie on the first line, and one whose buckets both lie on the second.
fn two_keys_on_different_lines() -> [Key; 2] {
    let on_line = |line: u32| {
        let mut keys = (0..26 * 26).map(key);
        let both = |key: &Key| spread(hash(*key), BUCKETS).0.map(|bucket| bucket / 3) == [line; 2];
        keys.find(both).expect("there are keys enough")
    };
    [on_line(0), on_line(1)]
}

/// A reader that knows of a flush never sees an item from before it: it asks the writer until the
/// table has carried the flush out, and then there is no item.
#[test]
fn what_was_flushed_is_not_read() {
    explore(2, || {
        let mut owner = table::<Crew>(PAGES_MIN);
        let mut looker = looker(&mut owner);
        put(&mut owner, 0, key(0), 1);
        let reading = thread::spawn(move || {
            let Looker {
                reader,
                participant,
            } = &mut looker;
            let batch = participant.begin();
            let found = reader.read(&batch, hash(key(0)), &key(0), NOW, 1, seen);
            assert!(matches!(found, Err(_) | Ok(None)));
        });
        drop(owner.enter(1));
        reading.join().unwrap();
    });
}
