//! Loom explores drafts of large values in cache mode and store mode: a copy in progress beside
//! writers that make room, a flush, and readers. See `loom_mica_cache.rs`. What counts as large
//! here are items of eight words.
#![cfg(loom)]

#[path = "support/large.rs"]
mod large;

use glimmer_base::sync::explore;
use glimmer_store::heap::Item;
use glimmer_store::table::{Table, TableReader, TableWriter};
use large::*;
use loom::thread;

fn seen(item: &Item<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    value
}

/// What a reader finds, unless it meets writers.
fn get<T: Table>(looker: &mut Looker<T>, (key, keyhash): Key) -> Option<Vec<u8>> {
    let batch = looker.participant.begin();
    let found = (looker.reader).read(&batch, keyhash, &key, NOW, 0, seen);
    found.unwrap_or_default()
}

/// The same without a mark in the entry. Loom lets the writer see such a mark after it has replaced
/// the entry.
fn peek<T: Table>(looker: &mut Looker<T>, (key, keyhash): Key) -> Option<Vec<u8>> {
    let batch = looker.participant.begin();
    let found = (looker.reader).peek(&batch, keyhash, &key, NOW, 0, seen);
    found.unwrap_or_default()
}

/// What the writer finds.
fn find<T: Table>(owner: &mut T, (key, keyhash): Key) -> Option<Vec<u8>> {
    owner.enter(0).read(keyhash, &key, NOW, seen)
}

/// A large value is copied to where items lie, beside a reader of one key: with two reads, loom
/// would try every result of one with every result of the other.
fn copied_over(reads: impl Fn(&mut Looker<Cache>) + Copy + Send + Sync + 'static) {
    explore(2, move || {
        let mut owner = cache(22, false);
        let mut reader = looker(&mut owner);
        for n in 0..7 {
            put(&mut owner, 0, key(0, n), &[1 + n as u8; 8]);
        }
        let reading = thread::spawn(move || reads(&mut reader));
        put_large(&mut owner, key(1, 0), 9);
        reading.join().unwrap();
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
    });
}

/// The reader sees the whole item or none.
#[test]
fn what_a_draft_is_copied_over_is_not_torn() {
    copied_over(|reader| {
        if let Some(found) = get(reader, key(0, 3)) {
            assert_eq!(found, [4; 8], "torn, or another item's value");
        }
    });
}

/// It sees all of the large value or nothing.
#[test]
fn a_draft_that_is_copied_over_items_is_not_torn() {
    copied_over(|reader| {
        if let Some(found) = get(reader, key(1, 0)) {
            assert_eq!(found, [9; LARGE], "torn");
        }
    });
}

/// A large value is deleted while a reader looks for it, and the next one lies where it lay.
#[test]
fn what_is_copied_to_a_vacant_place_is_not_torn() {
    explore(2, || {
        let mut owner = cache(60, false);
        let mut reader = looker(&mut owner);
        put_large(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Some(found) = peek(&mut reader, key(0, 0)) {
                assert_eq!(found, [1; LARGE], "torn, or another item's value");
            }
        });
        let (gone, keyhash) = key(0, 0);
        assert!(owner.enter(0).remove(keyhash, &gone, NOW));
        put_large(&mut owner, key(1, 0), 9);
        reading.join().unwrap();
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
    });
}

/// Another writer needs the room in which a large value is being copied: it waits for the copy, and
/// the one who copies notices that its place is gone.
#[test]
fn a_place_that_is_being_copied_to_is_not_reused() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut other = owner.share(2).unwrap();
        let second = thread::spawn(move || {
            // A lap and more.
            for n in 0..3 {
                put(&mut other, 0, key(1, n), &[20 + n as u8; 32]);
            }
            for n in 0..2 {
                let found = find(&mut other, key(1, n)).unwrap_or_else(|| vec![20 + n as u8; 32]);
                assert_eq!(found, [20 + n as u8; 32], "torn, or another item's value");
            }
            other
        });
        put_large(&mut owner, key(0, 0), 9);
        if let Some(found) = find(&mut owner, key(0, 0)) {
            assert_eq!(found, [9; LARGE], "torn, or another item's value");
        }
        let mut other = second.join().unwrap();
        for n in 0..3 {
            if let Some(found) = find(&mut other, key(1, n)) {
                assert_eq!(found, [20 + n as u8; 32], "torn, or another item's value");
            }
        }
    });
}

/// A reader looks for a large value while another writer takes its place away.
#[test]
fn a_draft_whose_place_is_taken_is_not_read() {
    explore(2, || {
        let mut owner = cache(22, false);
        let (mut reader, mut other) = (looker(&mut owner), owner.share(2).unwrap());
        let second = thread::spawn(move || {
            for n in 0..2 {
                put(&mut other, 0, key(1, n), &[20 + n as u8; LARGE]);
            }
        });
        let first = thread::spawn(move || put_large(&mut owner, key(0, 0), 9));
        if let Some(found) = get(&mut reader, key(0, 0)) {
            assert_eq!(found, [9; LARGE], "torn, or another item's value");
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A flush gives up the place of a large value that is being copied, and the next items lie there.
#[test]
fn a_flush_waits_for_a_copy() {
    explore(2, || {
        let mut owner = cache(40, true);
        let mut other = owner.share(2).unwrap();
        let second = thread::spawn(move || {
            put(&mut other, 1, key(1, 0), &[20; 8]);
            put(&mut other, 1, key(1, 1), &[21; 8]);
            other
        });
        put_large(&mut owner, key(0, 0), 9);
        let mut other = second.join().unwrap();
        for n in 0..2 {
            let found = find(&mut other, key(1, n));
            assert_eq!(found, Some(vec![20 + n as u8; 8]), "torn, or lost");
        }
    });
}

/// The item before a place that is reserved is given a longer value, which does not fit where it
/// lies.
#[test]
fn no_item_grows_into_a_place_that_is_reserved() {
    explore(2, || {
        let mut owner = cache(60, false);
        let mut other = owner.share(2).unwrap();
        put(&mut owner, 0, key(1, 0), &[20; 8]);
        let second = thread::spawn(move || {
            put(&mut other, 0, key(1, 0), &[21; 16]);
            other
        });
        put_large(&mut owner, key(0, 0), 9);
        let mut other = second.join().unwrap();
        assert_eq!(find(&mut other, key(1, 0)), Some(vec![21; 16]));
        assert_eq!(find(&mut other, key(0, 0)), Some(vec![9; LARGE]));
    });
}

/// In store mode, a large value is copied to where an item lay that was deleted while a reader
/// looks for it.
fn copied_over_in_store_mode(reads: impl Fn(&mut Looker<Store>) + Copy + Send + Sync + 'static) {
    explore(1, move || {
        let mut owner = store(80);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        put(&mut owner, 0, key(0, 1), &[2; 8]);
        put(&mut owner, 0, key(0, 2), &[3; 8]);
        // The two places together are large enough.
        let (gone, keyhash) = key(0, 1);
        assert!(owner.enter(0).remove(keyhash, &gone, NOW));
        // Else the reader would mark the entry, and loom lets the writer see that mark after it has
        // cleared the entry.
        assert!(find(&mut owner, key(0, 0)).is_some());
        let reading = thread::spawn(move || reads(&mut reader));
        let (gone, keyhash) = key(0, 0);
        assert!(owner.enter(0).remove(keyhash, &gone, NOW));
        put_large(&mut owner, key(1, 0), 9);
        reading.join().unwrap();
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
        let items = owner.enter(0).audit().items;
        assert_eq!(items.into_keys().collect::<Vec<_>>(), [0, 11]);
    });
}

/// The reader sees the whole item that is deleted, or none.
#[test]
fn what_a_draft_in_store_mode_is_copied_over_is_not_torn() {
    copied_over_in_store_mode(|reader| {
        if let Some(found) = get(reader, key(0, 0)) {
            assert_eq!(found, [1; LARGE], "torn, or another item's value");
        }
    });
}

/// It sees all of the large value or nothing.
#[test]
fn a_draft_in_store_mode_is_not_torn() {
    copied_over_in_store_mode(|reader| {
        if let Some(found) = get(reader, key(1, 0)) {
            assert_eq!(found, [9; LARGE], "torn");
        }
    });
}

/// In store mode, a flush gives up the place of a large value that is being copied, and the next
/// items lie there. The one who copies notices that its place is gone.
#[test]
fn a_flush_in_store_mode_waits_for_a_copy() {
    explore(2, || {
        let mut owner = store(80);
        let mut other = owner.share(2).unwrap();
        let second = thread::spawn(move || {
            put(&mut other, 1, key(1, 0), &[20; 8]);
            put(&mut other, 1, key(1, 1), &[21; 8]);
            other
        });
        put_large(&mut owner, key(0, 0), 9);
        let mut other = second.join().unwrap();
        for n in 0..2 {
            let found = find(&mut other, key(1, n));
            assert_eq!(found, Some(vec![20 + n as u8; 8]), "torn, or lost");
        }
        if let Some(found) = find(&mut other, key(0, 0)) {
            assert_eq!(found, [9; LARGE], "torn, or another item's value");
        }
        other.enter(1).audit();
    });
}

/// Two large values are stored under one key, beside a reader: it sees one of them.
#[test]
fn two_drafts_of_one_key_are_one_item() {
    explore(2, || {
        let mut owner = store(80);
        let (mut reader, mut other) = (looker(&mut owner), owner.share(2).unwrap());
        let first = thread::spawn(move || {
            put_large(&mut owner, key(0, 0), 8);
            owner
        });
        let second = thread::spawn(move || put_large(&mut other, key(0, 0), 9));
        if let Some(found) = get(&mut reader, key(0, 0)) {
            assert!(
                found == [8; LARGE] || found == [9; LARGE],
                "torn: {found:?}"
            );
        }
        let mut owner = first.join().unwrap();
        second.join().unwrap();
        let found = find(&mut owner, key(0, 0)).expect("it was stored twice");
        assert!(
            found == [8; LARGE] || found == [9; LARGE],
            "torn: {found:?}"
        );
        owner.enter(0).audit();
    });
}
