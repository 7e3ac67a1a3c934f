//! Loom explores what happens between the stages of the pipeline and the execution, while a home
//! carries the slot of an item behind its bucket. `RUSTFLAGS="--cfg loom" cargo test -p
//! glimmer-store --release --test loom_carried`.
//!
//! The item is replaced, evicted, flushed, or has expired meanwhile, or its bucket is split. It is
//! seen as if nothing had been carried.
#![cfg(loom)]

use glimmer_base::sync::explore;
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::evict::FIFO;
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::index::BUCKET_ENTRIES;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Prefetcher, Stored, Table, TableReader, TableWriter};
use loom::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const LATER: Moment = Moment {
    ms: 4_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
const ITEM_WORDS: usize = 3;
/// The item behind the bucket.
const BEHIND: usize = BUCKET_ENTRIES;

type Key = ([u8; 1], Keyhash);
type HomeOf<A> = <Owner<A> as Table>::HomeBucket;

/// A partition of two buckets and a spare one, whose log holds this many items.
fn partition<A: Access>(items: usize) -> Owner<A> {
    partition_with(items, 1, false)
}

/// The same with another number of spare buckets, and perhaps an index that follows the items.
fn partition_with<A: Access>(items: usize, spare_buckets: usize, index_follows: bool) -> Owner<A> {
    let config = PartitionConfig {
        log_bytes: items * ITEM_WORDS * 8,
        main_buckets: 2,
        spare_buckets,
        index_follows,
        item_bytes_max: 8 * 6,
        offset_bits: 40,
        pages: PagePolicy::Small,
        numa_node: None,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    Owner::new(&config, FIFO).unwrap()
}

/// The n-th one-byte key that belongs to a bucket.
fn key(bucket: usize, n: usize) -> Key {
    (b'a'..=b'z')
        .map(|byte| ([byte], SEED.keyhash(&[byte])))
        .filter(|(_, hash)| hash.bucket(2) == bucket)
        .nth(n)
        .unwrap()
}

fn item<'a>(key: &'a [u8; 1], value: &'a [u8; 8]) -> NewItem<'a> {
    NewItem {
        key,
        value: [value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    }
}

fn put<A: Access>(owner: &mut Owner<A>, flushes: u64, (key, keyhash): Key, fill: u8) {
    let stored = owner
        .enter(flushes)
        .put(keyhash, &item(&key, &[fill; 8]), NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// Stores by the home that the stages have left.
fn put_at<A: Access>(
    owner: &mut Owner<A>,
    (home, flushes): (HomeOf<A>, u64),
    (key, keyhash): Key,
    fill: u8,
) {
    let stored = owner.put_at((keyhash, home), &item(&key, &[fill; 8]), NOW, flushes);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// The values of the keys of the first bucket: the main bucket is full, and the last item lies
/// behind it.
fn fill<A: Access>(owner: &mut Owner<A>) {
    for n in 0..=BEHIND {
        put(owner, 0, key(0, n), 1 + n as u8);
    }
}

/// The stages in front of the execution. The home carries the slot behind the bucket.
fn stages<P: Prefetcher>(prefetcher: &P, keyhash: Keyhash) -> P::HomeBucket {
    let mut home = prefetcher.home(keyhash);
    prefetcher.prefetch_bucket(home);
    if prefetcher.prefetch_item(&mut home) {
        prefetcher.prefetch_item_behind(&mut home);
    }
    home
}

fn seen(item: &Item<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    value
}

/// A reader on worker 0. Worker 1 has the table.
struct Looker {
    reader: <Owner<Crew> as Table>::Reader,
    participant: Participant,
}

fn looker(owner: &mut Owner<Crew>) -> Looker {
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    Looker {
        reader: owner.reader().unwrap(),
        participant: participants.remove(0),
    }
}

impl Looker {
    /// Takes a key through the stages, and then reads it. None if the reader met writers.
    fn read(&mut self, (key, keyhash): Key) -> Option<Option<Vec<u8>>> {
        let batch = self.participant.begin();
        let home = stages(&*self.reader.prefetcher(), keyhash);
        let found = self
            .reader
            .read_at(&batch, home, keyhash, &key, NOW, 0, seen);
        found.ok()
    }
}

/// The writer stores another value, by a home that carries the slot as well.
#[test]
fn an_item_replaced_between_the_stages_is_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>(BEHIND + 2);
        let mut looker = looker(&mut owner);
        fill(&mut owner);
        let home = stages(&*owner.prefetcher(), key(0, BEHIND).1);
        let reading = thread::spawn(move || {
            if let Some(found) = looker.read(key(0, BEHIND)) {
                let value = found.expect("the key is never absent");
                assert!(value == [1 + BEHIND as u8; 8] || value == [100; 8], "torn");
            }
        });
        put_at(&mut owner, (home, 0), key(0, BEHIND), 100);
        reading.join().unwrap();
    });
}

/// The log's tail runs over the item. The entry stays where it is, and no version moves.
#[test]
fn an_item_evicted_between_the_stages_is_not_torn() {
    explore(2, || {
        let mut owner = partition::<Crew>(BEHIND + 1);
        let mut looker = looker(&mut owner);
        fill(&mut owner);
        // The others are stored again, so that it is the oldest.
        for n in 0..BEHIND {
            let (key, keyhash) = key(0, n);
            assert!(owner.enter(0).remove(keyhash, &key, NOW));
            put(&mut owner, 0, (key, keyhash), 1 + n as u8);
        }
        let reading = thread::spawn(move || {
            if let Some(Some(value)) = looker.read(key(0, BEHIND)) {
                assert_eq!(value, [1 + BEHIND as u8; 8], "torn, or another item's");
            }
        });
        put(&mut owner, 0, key(1, 0), 100);
        reading.join().unwrap();
    });
}

/// A store by a home from before a flush is no change of an item that the flush gave up.
#[test]
fn a_store_after_a_flush_between_the_stages_is_kept() {
    explore(2, || {
        let mut owner = partition::<Crew>(BEHIND + 2);
        fill(&mut owner);
        let (stored, keyhash) = key(0, BEHIND);
        let home = stages(&*owner.prefetcher(), keyhash);
        put_at(&mut owner, (home, 1), (stored, keyhash), 100);
        let value = owner
            .enter(1)
            .read(keyhash, &stored, NOW, |item| seen(item));
        assert_eq!(value.as_deref(), Some(&[100; 8][..]));
        let (other, keyhash) = key(0, 0);
        let home = stages(&*owner.prefetcher(), keyhash);
        assert!(
            owner
                .read_at((keyhash, home), &other, NOW, 1, |_| ())
                .is_none()
        );
    });
}

/// An item that has expired between the stages is not there.
#[test]
fn an_item_that_expires_between_the_stages_is_not_read() {
    explore(2, || {
        let mut owner = partition::<Crew>(BEHIND + 4);
        fill(&mut owner);
        let (key, keyhash) = key(0, BEHIND);
        let expiring = NewItem {
            expiry: Expiry::at_ms(NOW.ms + 1_000),
            ..item(&key, &[100; 8])
        };
        let stored = owner.enter(0).put(keyhash, &expiring, NOW);
        assert!(matches!(stored, Stored::Yes(_)));
        let home = stages(&*owner.prefetcher(), keyhash);
        let read =
            |owner: &mut Owner<Crew>, now| owner.read_at((keyhash, home), &key, now, 0, |_| ());
        assert!(read(&mut owner, NOW).is_some());
        assert!(read(&mut owner, LATER).is_none());
    });
}

/// The bucket is split, and the item goes to the new one.
#[test]
fn a_home_from_before_a_split_is_not_believed() {
    let goes = |n: &usize| key(0, *n).1.tag() & 1 == 1;
    let moved = (1..BUCKET_ENTRIES).find(goes).expect("one goes");
    explore(2, move || {
        let mut owner = partition_with::<Crew>(10, 0, true);
        for n in 0..BUCKET_ENTRIES {
            put(&mut owner, 0, key(0, n), 1 + n as u8);
        }
        let (moved, keyhash) = key(0, moved);
        let home = stages(&*owner.prefetcher(), keyhash);
        put(&mut owner, 0, key(0, BUCKET_ENTRIES), 100);
        assert_eq!(owner.figures().counts(0).buckets_added, 1);
        assert!(
            owner
                .read_at((keyhash, home), &moved, NOW, 0, |_| ())
                .is_some()
        );
    });
}

/// Two workers that may write: each has carried the slot, and each stores. One of the values stays,
/// and a third key that one of them stores meanwhile is not written over.
#[test]
fn two_writers_that_carry_one_slot_exclude_one_another() {
    explore(2, || {
        let mut first = partition::<Crcw>(BEHIND + 3);
        fill(&mut first);
        let mut second = first.share(1).expect("all may write");
        let (shared, keyhash) = key(0, BEHIND);
        let homes = [(); 2].map(|()| stages(&*first.prefetcher(), keyhash));
        let storing = thread::spawn(move || {
            put_at(&mut second, (homes[1], 0), (shared, keyhash), 101);
        });
        first.enter(0).remove(keyhash, &shared, NOW);
        put(&mut first, 0, key(0, BEHIND + 1), 102);
        put_at(&mut first, (homes[0], 0), (shared, keyhash), 100);
        storing.join().unwrap();
        let mut value =
            |(key, keyhash): Key| first.enter(0).read(keyhash, &key, NOW, |item| seen(item));
        let of_shared = value((shared, keyhash)).expect("it was stored");
        assert!(
            of_shared == [100; 8] || of_shared == [101; 8],
            "{of_shared:?}"
        );
        assert_eq!(value(key(0, BEHIND + 1)).as_deref(), Some(&[102; 8][..]));
    });
}
