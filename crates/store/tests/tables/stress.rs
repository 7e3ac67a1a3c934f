//! Real threads on one table: writers that overwrite, delete and evict as fast as they can,
//! readers that check every byte they get.
//!
//! Every value carries its key, its version and a checksum, so a torn, foreign or half-old value
//! cannot pass. A table of the last acknowledged version of each key catches stale ones: what a
//! reader finds must be at least as new as what was acknowledged before it looked. Where a table loses nothing, some keys are
//! there from the start and never deleted: a reader that misses one fails.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::Access;
use glimmer_store::batches::Batches;
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::partition::{Counts, Stored};
use glimmer_store::table::{Table, TableReader, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

const KEYS: u32 = 600;
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const READERS: usize = 2;
const WRITERS: usize = 3;

/// Operations of each writer; the readers go on until the writers are done.
fn operations() -> u32 {
    if cfg!(debug_assertions) {
        60_000
    } else {
        400_000
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:0width$}", width = 4 + n as usize % 13).into_bytes()
}

/// Key, version, filling, checksum.
fn value(n: u32, version: u64, filling: usize, into: &mut Vec<u8>) {
    into.clear();
    into.extend(n.to_le_bytes());
    into.extend(version.to_le_bytes());
    into.extend((0..filling).map(|i| (version as usize + i) as u8));
    let checksum = Seed(9).keyhash(into).0;
    into.extend(checksum.to_le_bytes());
}

/// The version in a value that belongs to key `n`.
fn check(n: u32, value: &[u8]) -> u64 {
    let (body, checksum) = value.split_at(value.len() - 8);
    assert_eq!(
        Seed(9).keyhash(body).0.to_le_bytes(),
        checksum,
        "torn value of {} bytes",
        value.len()
    );
    assert_eq!(
        u32::from_le_bytes(body[..4].try_into().unwrap()),
        n,
        "foreign value"
    );
    u64::from_le_bytes(body[4..12].try_into().unwrap())
}

struct World {
    /// Keys below this one are always there.
    kept: u32,
    /// Last version of each key whose store has returned.
    acknowledged: Vec<AtomicU64>,
    /// Next version of each key; versions of a key rise with each store.
    next: Vec<AtomicU64>,
    done: AtomicBool,
}

fn writer<T: Table>(mut owner: T, world: &World, mine: impl Fn(u32) -> bool, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut buffer = Vec::new();
    for _ in 0..operations() {
        let n = rng.random_range(0..KEYS);
        if !mine(n) {
            continue;
        }
        let (key, keyhash) = (key(n), SEED.keyhash(&key(n)));
        if n >= world.kept && rng.random_bool(0.1) {
            owner.enter(0).remove(keyhash, &key, NOW);
            continue;
        }
        let version = world.next[n as usize].fetch_add(1, SeqCst);
        let filling = if rng.random_bool(0.05) {
            rng.random_range(0..3_000)
        } else {
            rng.random_range(0..40)
        };
        value(n, version, filling, &mut buffer);
        let cut = rng.random_range(0..=buffer.len());
        let item = NewItem {
            key: &key,
            value: [&buffer[..cut], &buffer[cut..]],
            flags: n,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        match owner.enter(0).put(keyhash, &item, NOW) {
            Stored::Yes(_) => {}
            Stored::OutOfMemory => continue,
            Stored::TooLarge => panic!("{filling} bytes are within the limit"),
        }
        world.acknowledged[n as usize].store(version, SeqCst);
    }
}

/// Drives a table with some readers and a writer, or several where the access mode has them; gives back its figures at the end.
pub fn run<T: Table>(owner: T) -> Counts {
    run_keeping(0, owner)
}

/// The same with a table that loses nothing, in which the first `kept` keys are always there.
pub fn run_keeping<T: Table>(kept: u32, mut owner: T) -> Counts {
    let seed: u64 = std::env::var("GLIMMER_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(rand::random);
    println!("GLIMMER_SEED={seed}");
    let (batches, participants) = Batches::new(READERS);
    owner.join(&batches, READERS);
    let (reader, figures) = (owner.reader().unwrap(), owner.figures());
    for n in 0..kept {
        let (key, mut buffer) = (key(n), Vec::new());
        value(n, 0, 10, &mut buffer);
        let item = NewItem {
            key: &key,
            value: [&buffer, &[]],
            flags: n,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let stored = owner.enter(0).put(SEED.keyhash(&key), &item, NOW);
        assert!(matches!(stored, Stored::Yes(_)));
    }
    let world = World {
        kept,
        acknowledged: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
        next: (0..KEYS).map(|_| AtomicU64::new(1)).collect(),
        done: AtomicBool::new(false),
    };
    let others = 0..if T::Access::SHARED_WRITES {
        WRITERS - 1
    } else {
        0
    };
    let mut owners: Vec<T> = others
        .map(|worker| owner.share(READERS + 1 + worker).expect("all may write"))
        .collect();
    owners.push(owner);
    let parts = owners.len() as u32;
    let hits: u64 = thread::scope(|scope| {
        let readers: Vec<_> = (participants.into_iter().enumerate())
            .map(|(id, mut participant)| {
                let (reader, world) = (reader.clone(), &world);
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed ^ id as u64);
                    let (mut buffer, mut hits) = (Vec::new(), 0);
                    while !world.done.load(SeqCst) {
                        let n = rng.random_range(0..KEYS);
                        let (key, keyhash) = (key(n), SEED.keyhash(&key(n)));
                        let acknowledged = world.acknowledged[n as usize].load(SeqCst);
                        let take = |item: &Item<'_>| {
                            buffer.clear();
                            item.value().append_to(&mut buffer);
                            item.flags()
                        };
                        let batch = participant.begin();
                        let found = reader.read(&batch, keyhash, &key, NOW, 0, take);
                        drop(batch);
                        assert!(n >= kept || !matches!(found, Ok(None)), "key {n} is absent");
                        if let Ok(Some(flags)) = found {
                            assert_eq!(flags, n, "foreign flags");
                            let version = check(n, &buffer);
                            assert!(
                                version >= acknowledged,
                                "key {n}: version {version} after {acknowledged} was acknowledged"
                            );
                            hits += 1;
                        }
                    }
                    hits
                })
            })
            .collect();
        let writers: Vec<_> = owners
            .into_iter()
            .enumerate()
            .map(|(id, owner)| {
                let world = &world;
                // Each key has one writer, so that its versions rise; under CRCW neighbours in
                // bucket and log belong to different ones.
                scope.spawn(move || {
                    writer(
                        owner,
                        world,
                        |n| n % parts == id as u32,
                        seed.wrapping_add(id as u64),
                    )
                })
            })
            .collect();
        let writers_failed = writers
            .into_iter()
            .map(|writer| writer.join())
            .any(|outcome| outcome.is_err());
        world.done.store(true, SeqCst);
        assert!(!writers_failed);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum()
    });
    let counts = figures.counts(0);
    println!("{}: {hits} hits, {counts:?}", T::Access::NAME);
    assert!(hits > 0);
    counts
}
