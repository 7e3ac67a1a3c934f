//! Loom explores loans of large values in cache mode: a value that a reader uses where it lies,
//! beside writers that evict, flush or replace its item. See `loom_mica_cache.rs`. What counts as
//! large here are items of eight words.
#![cfg(loom)]

use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::Crcw;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::evict::FIFO;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Large, Stored, Table, TableReader, TableWriter};
use loom::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
/// A large value. Its item takes 8 words.
const LARGE: usize = 48;

type Cache = Owner<Crcw>;
type Key = ([u8; 1], Keyhash);

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.max_branches = 100_000;
    model.check(test);
}

/// A partition of two buckets whose log has this many words.
fn cache(log_words: usize) -> Cache {
    let config = PartitionConfig {
        log_bytes: 8 * log_words,
        main_buckets: 2,
        spare_buckets: 0,
        index_follows: false,
        item_bytes_max: 8 * 10,
        offset_bits: 40,
        pages: PagePolicy::Small,
        numa_node: None,
        seed: SEED,
    };
    Cache::new(&config, FIFO).unwrap()
}

/// The n-th one-byte key that belongs to a bucket.
fn key(bucket: usize, n: usize) -> Key {
    (b'a'..=b'z')
        .map(|byte| ([byte], SEED.keyhash(&[byte])))
        .filter(|(_, hash)| hash.bucket(2) == bucket)
        .nth(n)
        .unwrap()
}

fn put(owner: &mut Cache, flushes: u64, (key, keyhash): Key, value: &[u8]) {
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

/// Stores a large value that is copied before. Its place has 10 words.
fn put_large(owner: &mut Cache, (key, keyhash): Key, fill: u8) {
    let value = [fill; LARGE];
    let large = Large {
        key: &key,
        keyhash,
        value: &value,
        now: NOW,
    };
    let draft = owner.draft(Default::default(), 0, &large, |_| true);
    let mut writer = owner.enter(0);
    writer.bring(draft);
    let item = NewItem {
        key: &key,
        value: [&value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let stored = writer.put(keyhash, &item, NOW);
    writer.bring(None);
    assert!(matches!(stored, Stored::Yes(_)));
}

struct Borrower {
    reader: <Cache as Table>::Reader,
    participant: Participant,
}

/// A reader on worker 0. Worker 1 has the table.
fn borrower(owner: &mut Cache) -> Borrower {
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    Borrower {
        reader: owner.reader().unwrap(),
        participant: participants.remove(0),
    }
}

/// Borrows a value and uses it once the loan is made. None if there is no such item, or if it is
/// not to be had.
fn borrow(borrower: &mut Borrower, (key, keyhash): Key) -> Option<Vec<u8>> {
    let batch = borrower.participant.begin();
    let lent = (borrower.reader).borrow(&batch, keyhash, &key, NOW, 0, |_| ());
    let (_, loan) = lent.ok().flatten()?;
    let mut value = Vec::new();
    loan.item().value().append_to(&mut value);
    Some(value)
}

/// The head passes a value that is lent, and the tail comes to its place.
#[test]
fn what_is_lent_is_not_overwritten() {
    explore(|| {
        let mut owner = cache(22);
        let mut reader = borrower(&mut owner);
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
    explore(|| {
        let mut owner = cache(22);
        let mut reader = borrower(&mut owner);
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
    explore(|| {
        let mut owner = cache(40);
        let mut reader = borrower(&mut owner);
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

/// A value that is lent is replaced, and the next value is to take the place that it had.
#[test]
fn a_vacant_place_that_is_lent_is_not_taken() {
    explore(|| {
        let mut owner = cache(60);
        let mut reader = borrower(&mut owner);
        put_large(&mut owner, key(0, 0), 1);
        let reading = thread::spawn(move || {
            if let Some(found) = borrow(&mut reader, key(0, 0)) {
                assert!(
                    [1, 2, 3]
                        .map(|fill| [fill; LARGE].to_vec())
                        .contains(&found),
                    "{found:?}"
                );
            }
        });
        put_large(&mut owner, key(0, 0), 2);
        put_large(&mut owner, key(0, 0), 3);
        reading.join().unwrap();
    });
}
