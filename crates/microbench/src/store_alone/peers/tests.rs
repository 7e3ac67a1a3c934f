//! Every table against an oracle, under random operations.

use std::{collections::HashMap, sync::Arc};

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;
use crate::store_alone::heap_pages::HeapPages;
use paper::{LOAD_PERCENT, Paper};

const KEYS: u32 = 500;

/// Drives a handle and a map side by side. A table may lose items but never returns a value other
/// than the key's newest.
fn against_oracle<H: Handle<16, 32>>(mut handle: H, lossless: bool) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let mut oracle: HashMap<u32, u32> = HashMap::new();
    let (mut reads, mut found) = (0u32, 0u32);
    for step in 0..30_000 {
        let number = rng.random_range(0..KEYS);
        let key = key::<16>(number);
        let mut session = handle.session();
        match rng.random_range(0..10) {
            0..4 => {
                session.put(key, value(number, step));
                oracle.insert(number, step);
            }
            4 => {
                let was_there = session.remove(&key);
                let expected = oracle.remove(&number).is_some();
                assert!(
                    was_there == expected || !lossless && expected,
                    "step {step}"
                );
            }
            _ => {
                let expected = oracle.get(&number).map(|&version| value(number, version));
                let got = session.get(&key);
                assert!(got == expected || !lossless && got.is_none(), "step {step}");
                reads += u32::from(expected.is_some());
                found += u32::from(got.is_some());
            }
        }
    }
    assert!(found > reads / 2, "{found} of {reads}");
    if lossless {
        assert_eq!(handle.items(), Some(oracle.len() as u64));
    }
}

fn one<H>(handles: Vec<H>) -> H {
    handles.into_iter().next().unwrap()
}

type Key = [u8; 16];
type Value = [u8; 32];
type Bytes = Box<[u8]>;
type SharedBytes = Arc<[u8]>;

const ROOM: usize = KEYS as usize;

#[test]
fn hashbrown_behind_locks() {
    against_oracle(one(Sharded::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(Sharded::<Bytes, Bytes>::handles(ROOM, 1)), true);
}

#[test]
fn hashbrown_unshared() {
    against_oracle(Unshared::<Key, Value>::new(ROOM), true);
    against_oracle(Unshared::<Bytes, Bytes>::new(ROOM), true);
}

#[test]
fn dashmap() {
    against_oracle(one(Dash::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(Dash::<Bytes, Bytes>::handles(ROOM, 1)), true);
}

#[test]
fn papaya_pinned() {
    against_oracle(one(Papaya::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(Papaya::<Bytes, Bytes>::handles(ROOM, 1)), true);
}

#[test]
fn scc_map() {
    against_oracle(one(SccMap::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(SccMap::<Bytes, Bytes>::handles(ROOM, 1)), true);
}

#[test]
fn scc_cache_with_room() {
    against_oracle(one(SccCache::<Key, Value>::handles(ROOM, 1)), false);
    against_oracle(one(SccCache::<Bytes, Bytes>::handles(ROOM, 1)), false);
}

#[test]
fn quick_cache_with_room() {
    against_oracle(one(Quick::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(Quick::<Bytes, SharedBytes>::handles(ROOM, 1)), true);
}

#[test]
fn moka_with_room() {
    against_oracle(one(Moka::<Key, Value>::handles(ROOM, 1)), true);
    against_oracle(one(Moka::<Bytes, SharedBytes>::handles(ROOM, 1)), true);
}

#[test]
fn segcache_with_room() {
    against_oracle(Pelikan::new(ROOM, 16, 32), false);
}

#[test]
fn the_ordered_map() {
    against_oracle(Ordered::default(), true);
}

#[test]
fn a_bounded_chain_loses_its_oldest_and_nothing_else() {
    against_oracle(Bounded::new(ROOM), false);
}

#[test]
fn the_papers_index_loses_items_and_nothing_else() {
    against_oracle(Paper::<16, 32>::new(ROOM, LOAD_PERCENT).unwrap(), false);
    // The log goes round, too.
    against_oracle(
        Paper::<16, 32>::new(ROOM * 2 / 3, LOAD_PERCENT).unwrap(),
        false,
    );
}

#[test]
fn every_peer_is_filled_and_driven_by_two_threads() {
    let others = Peer::OTHERS.to_vec();
    for peer in [Peer::fixed(), Peer::any_length(), others].concat() {
        let mut rig = peer.build(20_000, 2, HeapPages::Given).unwrap();
        let draw = |worker| {
            let popularity = glimmer_loadgen::workload::Popularity::uniform(20_000);
            rig.share(worker).draw(popularity, 0.5, 10_000)
        };
        let lists = [draw(0), draw(1)];
        let task = Task {
            until: crate::store_alone::rig::Until::End,
            ..Task::lasting(std::time::Duration::ZERO)
        };
        let is_shared = rig.share(0).writes_all;
        let outcome = rig.run(&lists, &task).unwrap();
        assert!(outcome.reads > 9_000, "{}: {outcome:?}", peer.name());
        // Threads that share a table all count all of its items.
        let Some(held) = rig.items() else {
            assert!(peer == Peer::Pelikan, "{} counts its items", peer.name());
            assert_eq!(outcome.missed(), 0.0, "where there is room for all");
            continue;
        };
        let held = held / if is_shared { 2 } else { 1 };
        assert!(held > 19_000, "{}: {held}", peer.name());
    }
}

#[test]
fn names_tell_peers_apart_and_lengths() {
    let others = Peer::OTHERS.to_vec();
    let all = [Peer::fixed(), Peer::any_length(), others].concat();
    for (at, peer) in all.iter().enumerate() {
        let name = peer.name();
        assert!(all[..at].iter().all(|other| other.name() != name), "{name}");
        let says_bytes = name.ends_with("-bytes") || *peer == Peer::Pelikan;
        assert_eq!(says_bytes, peer.lengths() == Lengths::Any, "{name}");
    }
}

#[test]
fn keys_hash_as_ours_do() {
    let key = key::<16>(77);
    assert_eq!(Xxh3.hash_one(key), SEED.keyhash(&key).0);
    let held: Bytes = Held::hold(key);
    assert_eq!(Xxh3.hash_one(held), SEED.keyhash(&key).0);
    assert_eq!(Xxh3.hash_one(&key[..]), SEED.keyhash(&key).0);
}
