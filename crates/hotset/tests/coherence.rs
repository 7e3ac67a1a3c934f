//! What readers see while items change, one step after the other. `loom_slot.rs` and its
//! neighbours have the same with threads.
#![cfg(not(loom))]

mod support;

use glimmer_hotset::layout::{NEVER_NS, Piece, Refused, Tally};
use glimmer_hotset::{Filled, Pause, sums};
use support::{fill, guard_and_reader, item, key_at, keyhash, piece, value, value_at};

#[test]
fn a_filled_item_is_found_and_a_retracted_one_is_not() {
    let (guard, reader) = guard_and_reader(256);
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
    assert!(matches!(fill(&guard, &item(b"a", b"one")), Filled::Live(_)));
    assert_eq!(value(&reader, b"a").unwrap(), b"one");
    let token = guard.retract(keyhash(b"a")).unwrap();
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
    let epoch = guard.epoch();
    assert!(matches!(
        guard.refill(token, epoch, &item(b"a", b"two")),
        Filled::Live(_)
    ));
    assert_eq!(value(&reader, b"a").unwrap(), b"two");
    assert!(guard.retract(keyhash(b"b")).is_none());
}

#[test]
fn a_slot_that_is_not_refilled_stays_dead_and_can_be_filled_later() {
    let (guard, reader) = guard_and_reader(256);
    let Filled::Live(slot) = fill(&guard, &item(b"a", b"one")) else {
        panic!()
    };
    assert!(guard.retract(keyhash(b"a")).is_some());
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
    assert_eq!(fill(&guard, &item(b"a", b"two")), Filled::Live(slot));
    assert_eq!(value(&reader, b"a").unwrap(), b"two");
}

#[test]
fn a_token_is_good_for_one_refill() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    let (token, epoch) = (guard.retract(keyhash(b"a")).unwrap(), guard.epoch());
    assert!(matches!(
        guard.refill(token, epoch, &item(b"a", b"two")),
        Filled::Live(_)
    ));
    assert_eq!(
        guard.refill(token, epoch, &item(b"a", b"old")),
        Filled::Busy
    );
    assert_eq!(value(&reader, b"a").unwrap(), b"two");
}

#[test]
fn an_item_that_no_longer_qualifies_stays_dead() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    let (token, epoch) = (guard.retract(keyhash(b"a")).unwrap(), guard.epoch());
    let long = [0; 1401];
    assert_eq!(
        guard.refill(token, epoch, &item(b"a", &long)),
        Filled::Unfit(Refused::TooLong)
    );
    assert_eq!(value(&reader, b"a"), Err(Tally::Miss));
}

#[test]
fn an_evicted_key_gives_up_its_slot() {
    let (guard, reader) = guard_and_reader(256);
    let places = [3, 3];
    let [first, second] = [0, 1].map(|n| key_at(&guard, places, n));
    assert_eq!(fill(&guard, &item(&first, b"one")), Filled::Live(3));
    let two = item(&second, b"two");
    let weak = || guard.fill(guard.epoch(), keyhash(&second), &two, 5, |_| 5);
    assert_eq!(weak(), Filled::Outweighed);
    assert!(guard.may_have(keyhash(&first)) && !guard.may_have(keyhash(&second)));
    assert!(guard.evict(keyhash(&first)));
    assert!(!guard.evict(keyhash(&first)));
    assert!(!guard.may_have(keyhash(&first)));
    assert_eq!(value(&reader, &first), Err(Tally::Miss));
    assert_eq!(weak(), Filled::Live(3));
    assert_eq!(value(&reader, &second).unwrap(), b"two");
}

#[test]
fn a_heavier_key_takes_the_lighter_of_two_slots() {
    let (guard, reader) = guard_and_reader(256);
    let places = [10, 20];
    let keys: Vec<_> = (0..4).map(|n| key_at(&guard, places, n)).collect();
    let standing = |slot| if slot == 10 { 7 } else { 4 };
    let offer = |key: &[u8], weight| {
        guard.fill(
            guard.epoch(),
            keyhash(key),
            &item(key, b"v"),
            weight,
            standing,
        )
    };
    assert_eq!(offer(&keys[0], 1), Filled::Live(10));
    assert_eq!(offer(&keys[1], 1), Filled::Live(20));
    assert_eq!(offer(&keys[2], 4), Filled::Outweighed);
    assert_eq!(offer(&keys[2], 5), Filled::Live(20));
    // The key that lost its slot is not retracted any more, and can come back.
    assert!(guard.retract(keyhash(&keys[1])).is_none());
    assert_eq!(value(&reader, &keys[1]), Err(Tally::Miss));
    assert_eq!(value(&reader, &keys[2]).unwrap(), b"v");
    assert_eq!(offer(&keys[1], 100), Filled::Live(20));
    assert!(guard.retract(keyhash(&keys[2])).is_none());
}

#[test]
fn a_token_does_not_take_a_slot_back_from_another_key() {
    let (guard, reader) = guard_and_reader(256);
    let [first, second] = [0, 1].map(|n| key_at(&guard, [3, 3], n));
    fill(&guard, &item(&first, b"one"));
    let (token, epoch) = (guard.retract(keyhash(&first)).unwrap(), guard.epoch());
    assert_eq!(fill(&guard, &item(&second, b"two")), Filled::Live(3));
    assert_eq!(
        guard.refill(token, epoch, &item(&first, b"new")),
        Filled::Busy
    );
    assert_eq!(value(&reader, &second).unwrap(), b"two");
    assert!(guard.retract(keyhash(&second)).is_some());
    assert!(guard.retract(keyhash(&first)).is_none());
}

#[test]
fn keys_that_share_a_bucket_of_the_directory_are_told_apart() {
    let (guard, reader) = guard_and_reader(256);
    let mut refused = 0;
    for number in 0..5000 {
        let key = format!("k{number}").into_bytes();
        match fill(&guard, &item(&key, &key)) {
            Filled::Live(_) => assert_eq!(value(&reader, &key).unwrap(), key),
            Filled::NoEntry => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused < 5, "{refused}");
    let live: Vec<Vec<u8>> = (0..5000)
        .map(|number| format!("k{number}").into_bytes())
        .filter(|key| guard.slot_of(keyhash(key)).is_some())
        .collect();
    assert!((200..=256).contains(&live.len()), "{}", live.len());
    for key in &live {
        assert_eq!(value(&reader, key).unwrap(), *key);
        assert!(guard.evict(keyhash(key)));
    }
    assert!(guard.memory().slots().iter().all(|slot| !slot.is_taken()));
}

#[test]
fn a_flush_ends_what_was_filled_before_and_during_it() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    guard.flush(None, || {
        assert_eq!(value(&reader, b"a"), Err(Tally::Flushed));
        fill(&guard, &item(b"a", b"found before the flush was counted"));
    });
    assert_eq!(value(&reader, b"a"), Err(Tally::Flushed));
    fill(&guard, &item(b"a", b"two"));
    assert_eq!(value(&reader, b"a").unwrap(), b"two");
}

#[test]
fn an_epoch_from_before_a_flush_fills_nothing_that_is_read() {
    let (guard, reader) = guard_and_reader(256);
    let epoch = guard.epoch();
    guard.flush(None, || ());
    guard.fill(epoch, keyhash(b"a"), &item(b"a", b"old"), 1, |_| 0);
    assert_eq!(value(&reader, b"a"), Err(Tally::Flushed));
}

#[test]
fn a_delayed_flush_ends_hits_at_its_time() {
    let (guard, reader) = guard_and_reader(256);
    guard.flush(Some(1000), || ());
    fill(&guard, &item(b"a", b"one"));
    assert_eq!(value_at(&reader, b"a", 999).unwrap(), b"one");
    assert_eq!(value_at(&reader, b"a", 1000), Err(Tally::Flushed));
    // It comes due.
    guard.flush(None, || ());
    fill(&guard, &item(b"a", b"two"));
    assert_eq!(value_at(&reader, b"a", 1001).unwrap(), b"two");
    // A later one replaces an earlier one, and the other way round.
    guard.flush(Some(2000), || ());
    guard.flush(Some(3000), || ());
    fill(&guard, &item(b"a", b"three"));
    assert_eq!(value_at(&reader, b"a", 2500).unwrap(), b"three");
    guard.flush(Some(2600), || ());
    fill(&guard, &item(b"a", b"four"));
    assert_eq!(value_at(&reader, b"a", 2600), Err(Tally::Flushed));
}

#[test]
fn an_item_is_answered_until_its_deadline() {
    let (guard, reader) = guard_and_reader(256);
    let mut expiring = item(b"a", b"one");
    expiring.deadline_ns = 500;
    fill(&guard, &expiring);
    assert_eq!(value_at(&reader, b"a", 499).unwrap(), b"one");
    assert_eq!(value_at(&reader, b"a", 500), Err(Tally::Expired));
    assert_eq!(value_at(&reader, b"a", NEVER_NS - 1), Err(Tally::Expired));
}

#[test]
fn every_reason_for_a_pause_counts_alone() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    guard.pause(Pause::Watched);
    guard.pause(Pause::Draining);
    guard.resume(Pause::Watched);
    assert_eq!(value(&reader, b"a"), Err(Tally::Paused));
    assert_eq!(guard.pauses().collect::<Vec<_>>(), [Pause::Draining]);
    // Changes are followed meanwhile.
    let (token, epoch) = (guard.retract(keyhash(b"a")).unwrap(), guard.epoch());
    guard.refill(token, epoch, &item(b"a", b"two"));
    guard.resume(Pause::Draining);
    assert_eq!(value(&reader, b"a").unwrap(), b"two");
}

#[test]
fn when_every_recheck_fails_nothing_is_answered() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    guard.memory().control().fail_rechecks(true);
    assert_eq!(value(&reader, b"a"), Err(Tally::Torn));
    guard.memory().control().fail_rechecks(false);
    assert_eq!(value(&reader, b"a").unwrap(), b"one");
}

#[test]
fn a_reader_that_is_overtaken_throws_its_copy_away() {
    let (guard, reader) = guard_and_reader(256);
    fill(&guard, &item(b"a", b"one"));
    let hit = reader.find(b"a", 0).unwrap();
    guard.retract(keyhash(b"a"));
    assert!(!hit.finish(Tally::HitGet));
    fill(&guard, &item(b"a", b"one"));
    let hit = reader.find(b"a", 0).unwrap();
    fill(&guard, &item(b"a", b"one"));
    assert!(!hit.finish(Tally::HitGet), "another generation");
}

#[test]
fn every_length_of_key_and_value_is_copied_whole_with_the_right_sums() {
    let (guard, reader) = guard_and_reader(256);
    let keys: Vec<u8> = (0..250).map(|place| b'a' + place % 26).collect();
    let values: Vec<u8> = (0..1400u32).map(|place| (place * 7) as u8).collect();
    for key_bytes in 1..=250 {
        let step = if key_bytes % 50 == 0 { 1 } else { 97 };
        for value_bytes in (1..=1400).step_by(step).chain([1399, 1400]) {
            let (key, bytes) = (&keys[..key_bytes], &values[..value_bytes]);
            assert!(matches!(fill(&guard, &item(key, bytes)), Filled::Live(_)));
            let line = [b"VALUE ", key, format!(" 5 {value_bytes}").as_bytes()].concat();
            let expected = [
                (Piece::GetLine, line.clone()),
                (Piece::GetsLine, [&line[..], b" 9"].concat()),
                (Piece::Body, [b"\r\n", bytes, b"\r\nEND\r\n"].concat()),
                (Piece::Key, key.to_vec()),
                (Piece::Value, bytes.to_vec()),
            ];
            for (what, expected) in expected {
                assert_eq!(piece(&reader, key, 0, what).unwrap(), expected, "{what:?}");
                let sum = reader.find(key, 0).unwrap().peek().sum(what);
                assert_eq!(
                    sum,
                    sums::of(&expected),
                    "{what:?} {key_bytes} {value_bytes}"
                );
            }
        }
    }
}

#[test]
fn hits_are_counted_for_their_slot() {
    let (guard, reader) = guard_and_reader(256);
    let Filled::Live(slot) = fill(&guard, &item(b"a", b"one")) else {
        panic!()
    };
    for _ in 0..3 {
        value(&reader, b"a").unwrap();
    }
    value(&reader, b"b").unwrap_err();
    let counts = guard.memory().counts(0);
    let load =
        |count: &glimmer_base::sync::AtomicU64| count.load(glimmer_base::sync::Ordering::Relaxed);
    assert_eq!(load(&counts[slot]), 3);
    assert_eq!(counts.iter().map(load).sum::<u64>(), 3);
    let tallies = guard.memory().tallies(0);
    assert_eq!(load(&tallies[Tally::HitGet as usize]), 3);
    assert_eq!(load(&tallies[Tally::Miss as usize]), 1);
}
