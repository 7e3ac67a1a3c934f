//! What a controller observes and carries out, with both policies.
#![cfg(not(loom))]

mod support;

use glimmer_hotset::layout::Tally;
use glimmer_hotset::policies::{Counting, Paper};
use glimmer_hotset::{
    Changed, Controller, Filled, Guard, Memory, Offer, Policy, Prices, Reader, SampledRead,
};
use std::sync::Arc;
use support::{item, keyhash, value};

fn controller(policy: impl Policy + 'static) -> (Controller, Reader) {
    let memory = Arc::new(Memory::new(256, 2, 7));
    let reader = Reader::new(memory.clone(), 1);
    let guard = Arc::new(Guard::new(memory));
    (Controller::new(guard, Box::new(policy)), reader)
}

/// One sampled read of each key. Returns what is to be brought in.
fn sample(controller: &Controller, keys: &[&[u8]], now_ms: u64) -> Vec<Offer> {
    let reads = keys.iter().map(|key| SampledRead {
        keyhash: keyhash(key),
        key,
        value_bytes: 3,
    });
    let mut offers = Vec::new();
    controller.sampled(reads, now_ms, |offer| offers.push(offer));
    offers
}

fn bring_in(controller: &Controller, offers: &[Offer]) {
    for offer in offers {
        let epoch = controller.guard().epoch();
        let filled = controller.fill(offer, epoch, &item(&offer.key, b"one"), 0);
        assert!(matches!(filled, Filled::Live(_)), "{filled:?}");
    }
}

#[test]
fn a_key_is_offered_until_it_is_in() {
    let (controller, reader) = controller(Counting::new(256, 0));
    let offers = sample(&controller, &[b"a"], 0);
    assert_eq!(offers.len(), 1);
    bring_in(&controller, &offers);
    assert_eq!(value(&reader, b"a").unwrap(), b"one");
    assert_eq!(sample(&controller, &[b"a"], 0), []);
    // A dead slot is worth an offer again.
    controller.guard().retract(keyhash(b"a")).unwrap();
    assert_eq!(sample(&controller, &[b"a"], 0).len(), 1);
}

/// A flush for later ends the epoch, and the items are still there.
#[test]
fn a_key_comes_in_again_after_a_flush_was_ordered() {
    let (controller, reader) = controller(Counting::new(256, 0));
    let guard = controller.guard().clone();
    bring_in(&controller, &sample(&controller, &[b"a"], 0));
    assert_eq!(guard.live(0), 1);
    guard.flush(Some(1000), || ());
    assert_eq!(value(&reader, b"a"), Err(Tally::Flushed));
    assert_eq!(guard.live(0), 0);
    bring_in(&controller, &sample(&controller, &[b"a"], 0));
    assert_eq!(value(&reader, b"a").unwrap(), b"one");
    assert_eq!([guard.live(999), guard.live(1000)], [1, 0]);
}

#[test]
fn hits_are_credited_once_to_their_keys() {
    let (controller, reader) = controller(Counting::new(256, 0));
    let offers = sample(&controller, &[b"a", b"b"], 0);
    bring_in(&controller, &offers);
    for _ in 0..3 {
        value(&reader, b"a").unwrap();
    }
    let harvest = || {
        let mut credits = Vec::new();
        controller.harvest(250, |_| true, |credit| credits.push(credit));
        credits
    };
    let mut others = 0;
    controller.harvest(250, |theirs| theirs == keyhash(b"b"), |_| others += 1);
    assert_eq!(others, 0, "the hits of keys that are not the caller's stay");
    let credits = harvest();
    assert_eq!(credits.len(), 1);
    assert_eq!(credits[0].keyhash, keyhash(b"a"));
    assert_eq!(credits[0].key.as_deref(), Some(&b"a"[..]));
    assert_eq!((credits[0].hits, credits[0].value_bytes), (3, 3));
    assert_eq!(harvest(), []);
}

#[test]
fn a_key_that_is_changed_without_hits_is_out_until_its_reads_pay_its_return() {
    let (controller, reader) = controller(Counting::new(256, 0));
    controller.priced(Prices::new(4000, 4000));
    let offers = sample(&controller, &[b"a"], 0);
    bring_in(&controller, &offers);
    let change = |now_ms| {
        let epoch = controller.guard().epoch();
        let token = controller.guard().retract(keyhash(b"a")).unwrap();
        controller.changed(token, epoch, Some(&item(b"a", b"two")), now_ms)
    };
    for _ in 0..3 {
        assert!(matches!(change(100), Changed::Refilled(Filled::Live(_))));
        assert!(
            reader
                .find(b"a", 0)
                .is_ok_and(|hit| hit.peek().value_bytes() == 3)
        );
    }
    assert_eq!(change(100), Changed::Evicted);
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
    assert_eq!(controller.quarantined(100), 1);
    // Eight reads to a sample lend half of what a change costs.
    assert_eq!(sample(&controller, &[b"a"], 100), []);
    let offers = sample(&controller, &[b"a"], 100);
    assert_eq!((offers.len(), controller.quarantined(100)), (1, 0));
    bring_in(&controller, &offers);
    assert_eq!(change(100), Changed::Evicted, "the fill took it all");
}

#[test]
fn a_key_without_an_item_that_fits_is_not_offered_for_a_while() {
    let (controller, _) = controller(Counting::new(256, 0));
    let mut now_ms = 1000;
    for length_ms in [250; 3] {
        // Two workers may have sampled it at the same time. That does not count twice.
        let offers = sample(&controller, &[b"a", b"a"], now_ms);
        assert_eq!(offers.len(), 2);
        for offer in &offers {
            controller.refused(offer, now_ms);
        }
        assert_eq!(controller.quarantined(now_ms), 1);
        assert_eq!(sample(&controller, &[b"a"], now_ms + length_ms - 1), []);
        assert_eq!(sample(&controller, &[b"b"], now_ms).len(), 1);
        now_ms += length_ms;
    }
    bring_in(&controller, &sample(&controller, &[b"a"], now_ms));
}

#[test]
fn an_item_that_is_gone_leaves_its_slot_dead() {
    let (controller, reader) = controller(Counting::new(256, 0));
    let offers = sample(&controller, &[b"a"], 0);
    bring_in(&controller, &offers);
    let epoch = controller.guard().epoch();
    let token = controller.guard().retract(keyhash(b"a")).unwrap();
    assert_eq!(controller.changed(token, epoch, None, 0), Changed::LeftDead);
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
}

/// 300 keys, more than are kept by name, with known rates.
#[test]
fn the_hottest_keys_come_with_their_rates() {
    let (controller, _) = controller(Counting::new(256, 0));
    let keys: Vec<String> = (0..300).map(|number| format!("key {number:03}")).collect();
    for round in 0..100 {
        for (place, key) in keys.iter().enumerate() {
            // The first ten keys are sampled in every round, the others in every twentieth.
            if place < 10 || round % 20 == place % 20 {
                sample(&controller, &[key.as_bytes()], 10 * round as u64);
            }
        }
    }
    let hottest = controller.hot_keys(10, 1000);
    assert_eq!(hottest.len(), 10);
    for hot in hottest {
        assert!(hot.key.as_ref() < b"key 010", "{hot:?}");
        assert_eq!(hot.value_bytes, 3);
        // 100 samples of one read in eight, in a second.
        assert!((hot.reads_per_s - 800.0).abs() < 80.0, "{hot:?}");
    }
    assert_eq!(controller.hot_keys(1000, 1000).len(), 256);
}

#[test]
fn the_papers_batch_has_a_hundred_keys() {
    let (controller, reader) = controller(Paper::new(256, 0));
    let keys: Vec<String> = (0..100).map(|number| format!("key {number}")).collect();
    for key in &keys[..99] {
        assert_eq!(sample(&controller, &[key.as_bytes()], 0), []);
    }
    assert_eq!(
        sample(&controller, &[b"key 7"], 0),
        [],
        "not a distinct key"
    );
    let offers = sample(&controller, &[keys[99].as_bytes()], 0);
    // The slots are empty when the offers are made.
    assert_eq!(offers.len(), 100);
    let weight = |key: &[u8]| {
        offers
            .iter()
            .find(|offer| *offer.key == *key)
            .unwrap()
            .weight
    };
    assert_eq!((weight(b"key 7"), weight(b"key 8")), (16, 8));
    bring_in(&controller, &offers[..1]);
    assert_eq!(value(&reader, &offers[0].key).unwrap(), b"one");
    // Whatever changes leaves.
    let token = controller.guard().retract(offers[0].keyhash).unwrap();
    let epoch = controller.guard().epoch();
    let changed = controller.changed(token, epoch, Some(&item(&offers[0].key, b"two")), 0);
    assert_eq!(changed, Changed::Evicted);
    assert_eq!(controller.guard().slot_of(offers[0].keyhash), None);
}

#[test]
fn hits_count_as_reads_of_their_key() {
    let (controller, reader) = controller(Counting::new(256, 0));
    let offers = sample(&controller, &[b"a"], 0);
    bring_in(&controller, &offers);
    for _ in 0..800 {
        value(&reader, b"a").unwrap();
    }
    controller.harvest(250, |_| true, |_| ());
    // One read was sampled, for eight, and 800 were answered, in a second.
    let hottest = controller.hot_keys(1, 1000);
    assert_eq!(hottest[0].reads_per_s, 808.0);
}
