//! A bucket of the shadow directory is filled, as by a client that had computed keys for it.

#![cfg(not(loom))]

mod support;

use glimmer_base::Keyhash;
use glimmer_hotset::{hash, places};
use std::collections::HashSet;
use support::{fill, guard_and_reader, item, keyhash, value};

/// As many keys of one bucket as it has entries are held, further ones are refused, and the keys of
/// other buckets are answered as before.
#[test]
fn keys_of_one_bucket_displace_no_other() {
    const SLOTS: usize = 1_000;
    let (guard, reader) = guard_and_reader(SLOTS);
    let seed = guard.memory().control().seed();
    // Keys that want no slot that another one has.
    let mut taken = HashSet::new();
    let mut keys = (0u32..)
        .map(|number| format!("key:{number}").into_bytes())
        .filter(|key| {
            let places = places(hash(seed, key), SLOTS);
            let is_free = places.iter().all(|place| !taken.contains(place));
            taken.extend(places.iter().copied().filter(|_| is_free));
            is_free
        });
    let victims: Vec<Vec<u8>> = keys.by_ref().take(100).collect();
    for key in &victims {
        fill(&guard, &item(key, b"victim"));
    }
    let Keyhash(of_victim) = keyhash(&victims[0]);
    let mut held = 0;
    for (number, key) in keys.take(100).enumerate() {
        let colliding = Keyhash(of_victim ^ (number as u64 + 1));
        let epoch = guard.epoch();
        guard.fill(epoch, colliding, &item(&key, b"attacker"), u32::MAX, |_| 0);
        held += usize::from(value(&reader, &key).is_ok());
    }
    assert!((1..=4).contains(&held), "{held} of a bucket's four entries");
    for key in &victims {
        assert_eq!(value(&reader, key).as_deref(), Ok(&b"victim"[..]));
    }
}
