//! The program equals its twin: random and mutated frames, and every length of key and value.
//!
//! ```console
//! $ cargo test --release -p glimmer-xdp --test mutated -- --ignored --nocapture
//! ```
#![cfg(target_os = "linux")]

mod support;

use glimmer_hotset::layout::{HotItem, Tally};
use glimmer_hotset::twin::Verdict;
use glimmer_xdp::{Growth, Mode};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use support::frames::binary;
use support::{HEAD, NONE, Pair, TAIL, item, mutate, now_ns};

const COMBINATIONS: [(Mode, Growth); 5] = [
    (Mode::Driver, TAIL),
    (Mode::Driver, HEAD),
    (Mode::Driver, NONE),
    (Mode::Generic, TAIL),
    (Mode::Tcx, NONE),
];

/// Brings in items of many shapes, and returns their keys.
fn populate(pair: &Pair, rng: &mut SmallRng) -> Vec<Vec<u8>> {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut keys = Vec::new();
    for number in 0..150 {
        let key_bytes = match number % 5 {
            0 => rng.random_range(1..=8),
            1 => 250,
            2 => rng.random_range(1..=250),
            _ => rng.random_range(1..40),
        };
        let mut key = vec![0u8; key_bytes];
        let is_plain = rng.random_bool(0.8);
        key.fill_with(|| {
            if is_plain {
                rng.random_range(b'!'..=b'~')
            } else {
                rng.random()
            }
        });
        let mut value = vec![
            0;
            if rng.random() {
                rng.random_range(1..=1400)
            } else {
                16
            }
        ];
        rng.fill(&mut value[..]);
        let deadline_ns = match rng.random_range(0..6) {
            0 => now_ns() - 1,
            1 => now_ns() + HOUR_NS,
            _ => u64::MAX,
        };
        if number == 15 {
            for guard in pair.guards() {
                guard.flush(None, || ());
            }
        }
        if pair.has_room(&key) {
            pair.fill(&HotItem {
                flags: rng.random(),
                cas: rng.random::<u64>() >> rng.random_range(0..64),
                deadline_ns,
                ..item(&key, &value)
            });
        }
        keys.push(key);
    }
    keys
}

fn mutated(frames: u32) {
    let seed = glimmer_seeds::seed();
    for (mode, growth) in COMBINATIONS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let Some(pair) = Pair::new(mode, growth) else {
            return;
        };
        let keys = populate(&pair, &mut rng);
        let mut verdicts: BTreeMap<&str, u32> = BTreeMap::new();
        for number in 0..frames {
            if number % 1024 == 0 {
                for guard in pair.guards() {
                    let control = guard.memory().control();
                    control.fail_rechecks(number % 4096 == 0 && number > 0);
                    control.set_datagram_bytes_max(if number % 2048 == 0 { 1400 } else { 300 });
                }
            }
            let mut frame = mutate::frame(&mut rng, &keys);
            if mode == Mode::Tcx {
                // The kernel makes no packet for tcx without a whole header of IP.
                frame.resize(frame.len().max(54), 0);
            }
            let name = match pair.run(&frame).verdict {
                Verdict::Reply => "reply",
                Verdict::Pass(tally) => tally.name(),
            };
            *verdicts.entry(name).or_default() += 1;
        }
        println!("{mode:?}, {growth:?}: {verdicts:?}");
        // What is never reached is not tested.
        for tally in [
            Tally::Miss,
            Tally::Expired,
            Tally::Flushed,
            Tally::Foreign,
            Tally::Malformed,
            Tally::Source,
            Tally::Request,
            Tally::TooLong,
        ] {
            assert!(verdicts.contains_key(tally.name()), "no {tally:?}");
        }
        // Where a reply may grow nowhere, one frame in two hundred is answered.
        assert!(verdicts["reply"] > frames / 400);
    }
}

#[test]
fn mutated_frames() {
    mutated(20_000);
}

#[test]
#[ignore = "a million frames take a minute"]
fn a_million_mutated_frames() {
    mutated(1_000_000);
}

fn lengths(step: impl Fn(usize) -> usize) {
    for mode in [Mode::Driver, Mode::Tcx] {
        let Some(pair) = Pair::new(mode, TAIL) else {
            return;
        };
        let mut rng = SmallRng::seed_from_u64(1);
        let values: Vec<u8> = (0..1400).map(|_| rng.random()).collect();
        let keys: Vec<u8> = (0..250).map(|_| rng.random_range(b'!'..=b'~')).collect();
        let mut combinations = 0;
        for key_bytes in 1..=250 {
            let few = (1..=1400).step_by(step(key_bytes));
            for value_bytes in few.chain([1399, 1400]) {
                let (key, value) = (&keys[..key_bytes], &values[..value_bytes]);
                pair.fill(&item(key, value));
                let is_v4 = (key_bytes + value_bytes) % 2 == 0;
                let text = pair.ask(is_v4, &[b"get ", key, b"\r\n"].concat()).unwrap();
                let head = format!(" 3735928559 {value_bytes}\r\n");
                let parts = [b"VALUE ", key, head.as_bytes(), value, b"\r\nEND\r\n"];
                assert_eq!(text, parts.concat());
                let getk = pair.ask(!is_v4, &binary(12, key, [9; 4])).unwrap();
                assert_eq!(getk[28..], [key, value].concat());
                let get = pair.ask(is_v4, &binary(0, key, [9; 4])).unwrap();
                assert_eq!(get[28..], *value);
                combinations += 1;
            }
            assert!(
                pair.guards().into_iter().all(|guard| {
                    guard.evict(glimmer_base::Seed(7).keyhash(&keys[..key_bytes]))
                })
            );
        }
        println!("{mode:?}: {combinations} lengths of key and value");
    }
}

#[test]
fn many_lengths_of_key_and_value() {
    lengths(|key_bytes| if key_bytes % 83 == 0 { 7 } else { 467 });
}

#[test]
#[ignore = "all 350,000 take a minute"]
fn every_length_of_key_and_value() {
    lengths(|_| 1);
}
