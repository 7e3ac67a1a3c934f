//! Loom explores loans of large values in cache mode: a value that a reader uses where it lies, for
//! one batch or for longer, beside writers that evict, flush or replace its item. See
//! `loom_mica_cache.rs`. What counts as large here are items of eight words.
#![cfg(loom)]

#[path = "support/large.rs"]
mod large;

use glimmer_base::sync::explore;
use glimmer_store::heap::NewItem;
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use large::*;
use loom::thread;

/// Borrows a value and uses it once the loan is made. None if there is no such item, or if it is
/// not to be had.
fn borrow(borrower: &mut Looker<Cache>, (key, keyhash): Key) -> Option<Vec<u8>> {
    let batch = borrower.participant.begin();
    let lent = (borrower.reader).borrow(&batch, keyhash, &key, NOW, 0, |_| ());
    let (_, loan) = lent.ok().flatten()?;
    let mut value = Vec::new();
    loan.item().value().append_to(&mut value);
    Some(value)
}

/// Borrows a value for longer than a batch, and uses it in two parts. None as in [`borrow`].
fn lend(borrower: &mut Looker<Cache>, (key, keyhash): Key) -> Option<Vec<u8>> {
    let batch = borrower.participant.begin();
    let lent = (borrower.reader).lend(&batch, keyhash, &key, NOW, 0, |_| ());
    drop(batch);
    let ((), lent) = lent.ok().flatten()?;
    let mut value = Vec::new();
    let (half, bytes) = (lent.bytes() / 2, lent.bytes());
    for part in [0..half, half..bytes] {
        lent.with(part, &mut |bytes| value.extend_from_slice(bytes));
    }
    Some(value)
}

/// Appends to a value, which is there.
fn append(owner: &mut Cache, (key, keyhash): Key, more: &[u8]) {
    let item = NewItem {
        value: [&[], more],
        ..item(&key, &[])
    };
    let stored = owner.enter(0).extend(keyhash, &item, NOW);
    assert!(matches!(stored, Some(Stored::Yes(_))), "{stored:?}");
}

/// The head passes a value that is lent for longer, and the tail comes to its place. The writer
/// does not wait for the reader.
#[test]
fn what_is_lent_for_longer_is_copied() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        let reading = thread::spawn(move || {
            if let Some(found) = lend(&mut reader, key(0, 0)) {
                assert!(!found.is_empty());
                assert!(found.iter().all(|byte| *byte == 1), "overwritten");
            }
        });
        put(&mut owner, 0, key(1, 0), &[2; LARGE]);
        put(&mut owner, 0, key(1, 1), &[3; LARGE]);
        reading.join().unwrap();
    });
}

/// The head passes a value that is lent, and the tail comes to its place.
#[test]
fn what_is_lent_is_not_overwritten() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        let reading = thread::spawn(move || {
            if let Some(found) = borrow(&mut reader, key(0, 0)) {
                assert_eq!(found, [1; LARGE], "overwritten");
            }
        });
        put(&mut owner, 0, key(1, 0), &[2; LARGE]);
        put(&mut owner, 0, key(1, 1), &[3; LARGE]);
        reading.join().unwrap();
    });
}

/// A flush gives up the place of a value that is lent, and the next item lies there.
#[test]
fn what_is_lent_is_not_overwritten_after_a_flush() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        put(&mut owner, 0, key(1, 0), &[2; LARGE]);
        let reading = thread::spawn(move || {
            if let Some(found) = borrow(&mut reader, key(0, 0)) {
                assert_eq!(found, [1; LARGE], "overwritten");
            }
        });
        put(&mut owner, 1, key(1, 1), &[3; LARGE]);
        reading.join().unwrap();
    });
}

/// A value that is lent is replaced by a small one, for which there would be room in its place.
#[test]
fn a_small_value_does_not_take_the_place_of_one_that_is_lent() {
    explore(2, || {
        let mut owner = cache(40, false);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        let reading = thread::spawn(move || {
            if let Some(found) = borrow(&mut reader, key(0, 0)) {
                assert_eq!(found, [1; LARGE], "overwritten");
            }
        });
        put(&mut owner, 0, key(0, 0), &[2; 40]);
        reading.join().unwrap();
    });
}

/// Bytes are appended to a value that is lent for longer, and then the head passes it.
#[test]
fn a_value_that_is_lent_is_appended_to() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut reader = looker(&mut owner);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        let reading = thread::spawn(move || {
            if let Some(found) = lend(&mut reader, key(0, 0)) {
                assert!(!found.is_empty() && found.len() <= LARGE);
                assert!(found.iter().all(|byte| *byte == 1), "overwritten");
            }
        });
        append(&mut owner, key(0, 0), &[2; 3]);
        put(&mut owner, 0, key(1, 0), &[3; LARGE]);
        put(&mut owner, 0, key(1, 1), &[4; LARGE]);
        reading.join().unwrap();
    });
}

/// A value that is lent is replaced, and the next value is to take the place that it had.
#[test]
fn a_vacant_place_that_is_lent_is_not_taken() {
    explore(2, || {
        let mut owner = cache(60, false);
        let mut reader = looker(&mut owner);
        put_large(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Some(found) = borrow(&mut reader, key(0, 0)) {
                let whole = [1, 2, 3].map(|fill| vec![fill; LARGE]);
                assert!(whole.contains(&found), "overwritten: {found:?}");
            }
        });
        put_large(&mut owner, key(0, 0), 2);
        put_large(&mut owner, key(0, 0), 3);
        reading.join().unwrap();
    });
}
