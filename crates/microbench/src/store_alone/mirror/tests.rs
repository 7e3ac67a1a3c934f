//! Every mirror against an oracle, alone and with other threads, with and without enough room.

use std::{collections::HashMap, sync::atomic::Ordering::Relaxed};

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{
    chained::Chained,
    cuckoo::Cuckoo,
    locks::{Global, Keyed, Optimistic, Striped, Unlocked},
    replacement::{All, Clock, Lru},
    table::Mirror,
    *,
};
use crate::store_alone::{
    items::{is_value, key, value},
    rig::Task,
    stream::Operation,
};
use glimmer_loadgen::workload::Popularity;

const KEYS: u32 = 400;

/// Drives a table and a map side by side. A table with too little room may lose an item but never
/// returns an old value.
fn against_oracle<X: Index, R: Replacement, L: Locks>(capacity: usize) {
    let table = Mirror::<X, R, L, 16, 32>::new(capacity, PagePolicy::Small).unwrap();
    println!("room for {capacity}");
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let mut oracle: HashMap<u32, u32> = HashMap::new();
    let has_room = capacity >= KEYS as usize;
    for step in 0..20_000 {
        let number = rng.random_range(0..KEYS);
        let key = key::<16>(number);
        match rng.random_range(0..10) {
            0..4 => {
                table.put(&key, &value(number, step));
                oracle.insert(number, step);
                assert_eq!(table.get(&key), Some(value(number, step)), "step {step}");
            }
            4 => {
                let expected = oracle.remove(&number).is_some();
                let was_there = table.remove(&key);
                assert!(
                    was_there == expected || !has_room && expected,
                    "step {step}"
                );
            }
            _ => {
                let expected = oracle.get(&number).map(|&version| value(number, version));
                let got = table.get(&key);
                assert!(got == expected || !has_room && got.is_none(), "step {step}");
            }
        }
    }
    let held = table.items.load(Relaxed) as usize;
    let found = (0..KEYS).filter(|&number| table.get(&key(number)).is_some());
    assert_eq!(held, found.count());
    match has_room {
        true => assert_eq!(held, oracle.len()),
        false => assert!(
            held <= capacity && held >= capacity * 3 / 4,
            "{held} of {capacity}"
        ),
    }
}

#[test]
fn chaining_follows_an_oracle() {
    against_oracle::<Chained<false>, All, Unlocked>(400);
    against_oracle::<Chained<true>, All, Striped>(400);
    for capacity in [400, 100, 3] {
        against_oracle::<Chained<false>, Lru, Global>(capacity);
        against_oracle::<Chained<true>, Lru, Striped>(capacity);
        against_oracle::<Chained<true>, Clock, Striped>(capacity);
    }
}

#[test]
fn cuckoo_hashing_follows_an_oracle() {
    against_oracle::<Cuckoo<false>, All, Unlocked>(400);
    against_oracle::<Cuckoo<false>, All, Striped>(400);
    against_oracle::<Cuckoo<true>, All, Optimistic>(400);
    for capacity in [400, 100, 3] {
        against_oracle::<Cuckoo<true>, Lru, Optimistic>(capacity);
        against_oracle::<Cuckoo<true>, Clock, Optimistic>(capacity);
        against_oracle::<Cuckoo<true>, Clock, Keyed>(capacity);
    }
}

/// LRU is exact: the items used last stay, whatever else is inserted.
#[test]
fn lru_keeps_exactly_the_last_used() {
    let table = Mirror::<Chained<false>, Lru, Global, 16, 32>::new(100, PagePolicy::Small).unwrap();
    (0..100).for_each(|number| table.put(&key(number), &value(number, 0)));
    (0..50).for_each(|number| assert!(table.get(&key(number)).is_some()));
    (100..150).for_each(|number| table.put(&key(number), &value(number, 0)));
    for number in 0..150 {
        assert_eq!(
            table.get(&key(number)).is_some(),
            !(50..100).contains(&number),
            "{number}"
        );
    }
}

/// CLOCK gives a used item a second chance.
#[test]
fn clock_spares_what_was_used() {
    let table = Mirror::<Cuckoo<true>, Clock, Optimistic, 16, 32>::new(100, PagePolicy::Small);
    let table = table.unwrap();
    (0..100).for_each(|number| table.put(&key(number), &value(number, 0)));
    (0..50).for_each(|number| assert!(table.get(&key(number)).is_some()));
    (100..150).for_each(|number| table.put(&key(number), &value(number, 0)));
    let kept = (0..50)
        .filter(|&number| table.get(&key(number)).is_some())
        .count();
    assert_eq!(kept, 50);
}

/// Threads that keep evicting each other's items never read a value of a different key.
#[test]
fn threads_never_read_another_keys_value() {
    fn together<X: Index, R: Replacement, L: Locks>() {
        let table = Mirror::<X, R, L, 16, 32>::new(64, PagePolicy::Small).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let table = &table;
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(thread);
                    for step in 0..20_000 {
                        let number = rng.random_range(0..128);
                        if rng.random_range(0..4) == 0 {
                            table.put(&key(number), &value(number, step));
                        } else if let Some(value) = table.get(&key(number)) {
                            assert!(is_value(&value, number), "step {step} of {thread}");
                        }
                    }
                });
            }
        });
        let found = (0..128).filter(|&number| table.get(&key(number)).is_some());
        assert_eq!(found.count(), table.items.load(Relaxed) as usize);
    }
    together::<Chained<false>, Lru, Global>();
    together::<Chained<true>, Lru, Striped>();
    together::<Chained<true>, Clock, Striped>();
    together::<Cuckoo<true>, Lru, Optimistic>();
    together::<Cuckoo<true>, Clock, Optimistic>();
    together::<Cuckoo<true>, Clock, Keyed>();
}

#[test]
fn chunks_are_as_large_as_the_papers() {
    let kind = |index, replacement| Kind {
        index,
        replacement,
        ..Kind::MEMCACHED
    };
    use IndexKind::{Chaining, CuckooTags};
    use ReplacementKind::{Clock, Lru};
    let bytes = |index, replacement| kind(index, replacement).chunk_bytes(16, 32);
    // Table 3: 9.59, 10.32, 12.20 and 13.42 million items in a gibibyte.
    assert_eq!(bytes(Chaining, Lru), 112);
    assert_eq!(bytes(CuckooTags, Lru), 104);
    assert_eq!(bytes(Chaining, Clock), 88);
    assert_eq!(bytes(CuckooTags, Clock), 80);
}

#[test]
fn a_cache_holds_what_it_has_room_for_and_refills() {
    let mut rig = Kind::MEMCACHED.cache(112 * 1000, 1).unwrap();
    let all: Vec<_> = (0..2000)
        .map(|number| Operation::new(number, true))
        .collect();
    rig.run(&[all], &Task::filling()).unwrap();
    assert_eq!(rig.items(), Some(1000));
    let reads = rig.share(0).draw(Popularity::uniform(2000), 1.0, 10_000);
    let outcome = rig.run(&[reads], &Task::filling()).unwrap();
    assert!((0.4..0.6).contains(&outcome.missed()), "{outcome:?}");
}
