//! Loom explores loans of large values: a value that a reader uses where it lies, beside writers
//! that evict, flush, move, replace or delete its item. See `loom_mica_cache.rs`. What counts as
//! large here are items of eight words.
#![cfg(loom)]

#[path = "support/large.rs"]
mod large;

use glimmer_base::sync::explore;
use glimmer_store::access::Crcw;
use glimmer_store::heap::slab::Slabs;
use glimmer_store::heap::{Item, NewItem};
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use large::*;
use loom::thread;

type Memc3 = memc3::Owner<Crcw>;

/// A table with this many pages of two lines, one of which the index has.
fn memc3(pages: usize) -> Memc3 {
    Memc3::new(&Memc3Config {
        memory_bytes: pages * (128 + Slabs::BYTES_PER_PAGE),
        page_bytes: 128,
        item_bytes_max: 8 * ITEM_WORDS_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    })
    .unwrap()
}

/// Borrows a value of equal bytes, if there is one and it is to be had, and uses it in two parts:
/// they are what the value was.
fn lend<T: Table>(borrower: &mut Looker<T>, (key, keyhash): Key) {
    let seen = |item: &Item<'_>| {
        let mut first = Vec::new();
        item.value().part(0, 1).append_to(&mut first);
        first[0]
    };
    let batch = borrower.participant.begin();
    let lent = (borrower.reader).lend(&batch, keyhash, &key, NOW, 0, seen);
    drop(batch);
    let Ok(Some((first, lent))) = lent else {
        return;
    };
    let (half, bytes) = (lent.bytes() / 2, lent.bytes());
    for part in [0..half, half..bytes] {
        assert!(lent.with(part, &mut |bytes| {
            assert!(bytes.len() >= LARGE / 2 - 8);
            assert!(bytes.iter().all(|&byte| byte == first), "overwritten");
        }));
    }
}

/// Has a reader borrow the value of a key beside a writer.
fn beside<T: Table>(mut owner: T, lent: Key, write: impl FnOnce(&mut T))
where
    T::Reader: 'static,
{
    let mut reader = looker(&mut owner);
    let reading = thread::spawn(move || lend(&mut reader, lent));
    write(&mut owner);
    reading.join().unwrap();
}

/// The same beside a table that holds nothing else.
fn beside_the_only_one<T: Table>(
    table: impl Fn() -> T + Send + Sync + 'static,
    write: impl Fn(&mut T) + Send + Sync + 'static,
) where
    T::Reader: 'static,
{
    explore(2, move || {
        let mut owner = table();
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        beside(owner, key(0, 0), &write);
    });
}

fn remove<T: Table>(owner: &mut T, (key, keyhash): Key) {
    assert!(owner.enter(0).remove(keyhash, &key, NOW));
}

/// Appends to a value, which is there.
fn append<T: Table>(owner: &mut T, (key, keyhash): Key, more: &[u8]) {
    let item = NewItem {
        value: [&[], more],
        ..item(&key, &[])
    };
    let stored = owner.enter(0).extend(keyhash, &item, NOW);
    assert!(matches!(stored, Some(Stored::Yes(_))), "{stored:?}");
}

/// The head passes a value that is lent, and the tail comes to its place. The writer does not wait
/// for the reader.
#[test]
fn what_is_lent_is_not_overwritten() {
    beside_the_only_one(
        || cache(22, false),
        |owner| {
            put(owner, 0, key(1, 0), &[2; LARGE]);
            put(owner, 0, key(1, 1), &[3; LARGE]);
        },
    );
}

/// A flush gives up the place of a value that is lent, and the next item lies there.
#[test]
fn what_is_lent_is_not_overwritten_after_a_flush() {
    explore(2, || {
        let mut owner = cache(22, false);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        put(&mut owner, 0, key(1, 0), &[2; LARGE]);
        beside(owner, key(0, 0), |owner| {
            put(owner, 1, key(1, 1), &[3; LARGE]);
        });
    });
}

/// A value that is lent is replaced by a small one, for which there would be room in its place.
#[test]
fn a_small_value_does_not_take_the_place_of_one_that_is_lent() {
    let table = || cache(40, false);
    beside_the_only_one(table, |owner| {
        put(owner, 0, key(0, 0), &[2; 40]);
    });
}

/// Bytes are appended to a value that is lent, and then the head passes it.
#[test]
fn a_value_that_is_lent_is_appended_to() {
    beside_the_only_one(
        || cache(22, false),
        |owner| {
            append(owner, key(0, 0), &[2; 3]);
            put(owner, 0, key(1, 0), &[3; LARGE]);
            put(owner, 0, key(1, 1), &[4; LARGE]);
        },
    );
}

/// A value that is lent is replaced, and the next value is to take the place that it had.
#[test]
fn a_vacant_place_that_is_lent_is_not_taken() {
    explore(2, || {
        let mut owner = cache(60, false);
        put_large(&mut owner, key(0, 0), 1);
        beside(owner, key(0, 0), |owner| {
            put_large(owner, key(0, 0), 2);
            put_large(owner, key(0, 0), 3);
        });
    });
}

/// In store mode a value that is lent is deleted, and an item of another bucket takes its place.
#[test]
fn a_place_of_store_mode_that_is_lent_is_not_taken() {
    let table = || store(80);
    beside_the_only_one(table, |owner| {
        remove(owner, key(0, 0));
        put(owner, 0, key(1, 0), &[2; LARGE]);
    });
}

/// In store mode a value that is lent is written over by a small one.
#[test]
fn a_place_of_store_mode_that_is_lent_is_not_written_over() {
    let table = || store(80);
    beside_the_only_one(table, |owner| {
        put(owner, 0, key(0, 0), &[2; 40]);
    });
}

/// In store mode a flush gives up the place of a value that is lent.
#[test]
fn what_store_mode_lends_is_not_overwritten_after_a_flush() {
    let table = || store(80);
    beside_the_only_one(table, |owner| {
        put(owner, 1, key(1, 0), &[2; LARGE]);
    });
}

/// CLOCK gives the chunk of a value that is lent to another item.
#[test]
fn a_chunk_that_is_lent_is_not_taken() {
    explore(2, || {
        let mut owner = memc3(4);
        put(&mut owner, 0, key(0, 0), &[1; LARGE]);
        for n in 1..6 {
            put(&mut owner, 0, key(0, n), &[2; LARGE]);
        }
        beside(owner, key(0, 0), |owner| {
            put(owner, 0, key(0, 6), &[3; LARGE]);
            assert_eq!(owner.figures().counts(0).evictions, 1);
        });
    });
}

/// An item of MemC3's table whose value is lent is written over where it lies.
#[test]
fn a_chunk_that_is_lent_is_not_written_over() {
    let table = || memc3(4);
    beside_the_only_one(table, |owner| {
        put(owner, 0, key(0, 0), &[2; LARGE]);
    });
}

/// A flush gives up the chunk of a value that is lent.
#[test]
fn what_memc3_lends_is_not_overwritten_after_a_flush() {
    let table = || memc3(4);
    beside_the_only_one(table, |owner| {
        put(owner, 1, key(1, 0), &[2; LARGE]);
    });
}
