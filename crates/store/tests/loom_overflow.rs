//! Loom explores reads of keys that lie where their second keyhashes say, because the chains where
//! they belong are full, beside a writer of the shipped store-mode partition.
#![cfg(loom)]

use glimmer_base::{Expiry, KeyHasher, Keyhash, Moment};
use glimmer_store::access::Crew;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::index::CHAIN_ENTRIES_MAX;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_store::{Owner, StoreConfig};
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
/// The first chain is full of the keys before this one.
const LATE: u8 = CHAIN_ENTRIES_MAX as u8;

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.max_branches = 100_000;
    model.check(test);
}

/// A key of one byte, which is its number. All belong to the first of two chains, and by their
/// second keyhashes to the second one, each with a tag of its own.
fn halves(key: &[u8]) -> [u64; 2] {
    let tag = 1 + u64::from(key[0]);
    [tag, 0xC000_0000 << 16 | tag << 8]
}

fn keyhash(key: u8) -> Keyhash {
    Keyhash(halves(&[key])[0])
}

/// A partition whose first chain is full.
fn partition() -> Owner<Crew> {
    let mut owner = Owner::new(&StoreConfig {
        bytes: 65 * 16,
        roots: Some(2),
        spare_percent: 100,
        item_bytes_max: 8 * 6,
        pages: PagePolicy::Small,
        hasher: KeyHasher::chosen(halves),
        ..StoreConfig::default()
    })
    .unwrap();
    for key in 0..LATE {
        put(&mut owner, key, 1);
    }
    assert_eq!(overflowed(&owner), 0);
    owner
}

fn overflowed(owner: &Owner<Crew>) -> u64 {
    owner.figures().counts(0).overflowed
}

/// Stores a value of eight `fill`s.
fn put(owner: &mut Owner<Crew>, key: u8, fill: u8) {
    let item = NewItem {
        key: &[key],
        value: [&[fill; 8], &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History {
            cas: Some(fill.into()),
            ..History::NEW
        },
    };
    let stored = owner.enter(0).put(keyhash(key), &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

fn remove(owner: &mut Owner<Crew>, key: u8) -> bool {
    owner.enter(0).remove(keyhash(key), &[key], NOW)
}

/// A reader, with what it begins its batches by.
struct Looker {
    reader: <Owner<Crew> as Table>::Reader,
    participant: Participant,
}

/// A reader on worker 0. Worker 1 has the table.
fn looker(owner: &mut Owner<Crew>) -> Looker {
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    Looker {
        reader: owner.reader().unwrap(),
        participant: participants.remove(0),
    }
}

/// With what a read finds the key's value filled. Errs if the reader has to ask the owner.
fn get(looker: &mut Looker, key: u8) -> Result<Option<u8>, ()> {
    let seen = |item: &Item<'_>| {
        let mut value = Vec::new();
        item.value().append_to(&mut value);
        (item.cas() as u8, value)
    };
    let batch = looker.participant.begin();
    let read = looker
        .reader
        .read(&batch, keyhash(key), &[key], NOW, 0, seen);
    let found = read.map_err(|_| ())?;
    Ok(found.map(|(fill, value)| {
        assert_eq!(value, [fill; 8], "torn, or another item's value");
        fill
    }))
}

/// What the full chain does not take is found as soon as its writer has said that it is stored.
#[test]
fn what_overflows_is_found_as_soon_as_it_is_stored() {
    explore(|| {
        let mut owner = partition();
        let mut reader = looker(&mut owner);
        let is_stored = Arc::new(AtomicBool::new(false));
        let says = is_stored.clone();
        let writer = thread::spawn(move || {
            put(&mut owner, LATE, 1);
            assert_eq!(overflowed(&owner), 1);
            says.store(true, Ordering::Release);
        });
        let is_stored = is_stored.load(Ordering::Acquire);
        if let Ok(found) = get(&mut reader, LATE) {
            assert!(found == Some(1) || !is_stored, "it is stored, and absent");
        }
        writer.join().unwrap();
    });
}

/// An item in its second chain is stored again when there is room in the first one: it is neither
/// torn nor absent meanwhile, and there is one of it afterwards.
#[test]
fn what_has_overflowed_is_stored_again_where_it_is() {
    explore(|| {
        let mut owner = partition();
        let mut reader = looker(&mut owner);
        put(&mut owner, LATE, 1);
        assert!(remove(&mut owner, 0));
        let reading = thread::spawn(move || {
            if let Ok(found) = get(&mut reader, LATE) {
                assert!(matches!(found, Some(1 | 2)), "{found:?}");
            }
            reader
        });
        put(&mut owner, LATE, 2);
        let mut reader = reading.join().unwrap();
        assert!(remove(&mut owner, LATE));
        assert_eq!(get(&mut reader, LATE), Ok(None));
    });
}
