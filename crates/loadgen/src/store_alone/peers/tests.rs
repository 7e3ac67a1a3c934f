//! Every table against an oracle, under random operations.

use std::collections::HashMap;

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;

const KEYS: u32 = 500;

/// Drives a handle and a map side by side. A table that may lose items still never returns a value that is not the key's newest.
fn against_oracle<H: Handle<16, 32>>(mut handle: H, lossless: bool) {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
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
        assert_eq!(handle.items(), oracle.len() as u64);
    }
}

fn one<H>(handles: Vec<H>) -> H {
    handles.into_iter().next().unwrap()
}

#[test]
fn hashbrown_behind_locks() {
    against_oracle(one(Sharded::handles(KEYS as usize, 1)), true);
}

#[test]
fn dashmap() {
    against_oracle(one(Dash::handles(KEYS as usize, 1)), true);
}

#[test]
fn papaya_pinned() {
    against_oracle(one(Papaya::handles(KEYS as usize, 1)), true);
}

#[test]
fn quick_cache_with_room() {
    against_oracle(one(Quick::handles(KEYS as usize, 1)), true);
}

#[test]
fn the_ordered_map() {
    against_oracle(Ordered::default(), true);
}

#[test]
fn a_bounded_chain_loses_its_oldest_and_nothing_else() {
    against_oracle(Bounded::new(KEYS as usize), false);
}

#[test]
fn every_peer_is_filled_and_driven_by_two_threads() {
    let peers = [&Peer::PUBLIC[..], &[Peer::Ordered, Peer::Bounded]].concat();
    for peer in peers {
        let mut rig = peer.build(20_000, 2).unwrap();
        let draw = |worker| {
            let popularity = crate::popularity::Popularity::uniform(20_000);
            rig.share(worker).draw(popularity, 0.5, 10_000)
        };
        let lists = [draw(0), draw(1)];
        let task = Task {
            until: crate::store_alone::rig::Until::End,
            ..Task::lasting(std::time::Duration::ZERO)
        };
        let outcome = rig.run(&lists, &task).unwrap();
        assert!(outcome.reads > 9_000, "{}: {outcome:?}", peer.name());
        let held = rig.items().unwrap();
        let counts_all = if matches!(peer, Peer::Ordered | Peer::Bounded) {
            1
        } else {
            2
        };
        assert!(held > counts_all * 19_000, "{}: {held}", peer.name());
    }
}

#[test]
fn keys_hash_as_ours_do() {
    let key = key::<16>(77);
    assert_eq!(Xxh3.hash_one(key), SEED.keyhash(&key).0);
}
