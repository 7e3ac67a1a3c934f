//! The cycle budget. Cycles count from the one that takes a key's first byte to the one that takes
//! the value's last byte, both included; for a miss, to the one that takes the length of zero. The
//! requester and the taker are always ready.

use crate::directed::{numbered, pattern};
use glimmer_accel_device::device::{COUNT_MAX, Device, Mode};
use glimmer_accel_device::models::LookUp;
use glimmer_accel_rtl::lookup::{Circuit, Reply, Shape};
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;
use rand::rngs::SmallRng;

const KEY_BYTES: [usize; 14] = [1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 100, 200, 250, 255];
const VALUE_BYTES: [usize; 10] = [1, 2, 3, 7, 8, 9, 64, 100, 255, 1400];

/// The clock of the wide circuit, and the time of a frame of 64 bytes at 10 Gb/s with preamble and
/// gap: 67.2 ns.
const WIDE_CLOCK_MHZ: f64 = 156.25;
const FRAME_CYCLES: f64 = 10.5;

fn cycles(reply: &Reply) -> usize {
    (reply.ended - reply.begun + 1) as usize
}

fn look_up(circuit: &mut Circuit, key: &[u8]) -> Reply {
    circuit.offer(key);
    circuit.wait_for_reply()
}

fn store(circuit: &mut Circuit, key: &[u8], value_bytes: usize) -> usize {
    circuit.switch_mode(Mode::Write);
    let slot = circuit.reserve(key, COUNT_MAX).unwrap().unwrap();
    circuit.associate_length(slot, value_bytes).unwrap();
    circuit.write_value(slot, &pattern(value_bytes)).unwrap();
    circuit.switch_mode(Mode::Read);
    slot
}

/// Keys that differ in their last byte alone: one with two slots, the key that has its primary
/// slot, and the key that has its secondary one.
fn rivals(circuit: &Circuit, bytes: usize, rng: &mut SmallRng) -> [Vec<u8>; 3] {
    loop {
        let mut key = vec![0; bytes];
        key.iter_mut().for_each(|byte| *byte = rng.random());
        let family: Vec<_> = (0..=255u8)
            .map(|last| {
                key[bytes - 1] = last;
                (key.clone(), circuit.places(&key))
            })
            .collect();
        let [primary, secondary] = family[0].1;
        let with = |place: usize, besides: usize| {
            let mut others = family[1..].iter();
            others.find(|(_, places)| places[0] == place && places[1] != besides)
        };
        if let (true, Some(first), Some(second)) = (
            primary != secondary,
            with(primary, secondary),
            with(secondary, primary),
        ) {
            return [&family[0], first, second].map(|(key, _)| key.clone());
        }
        assert!(bytes > 1, "these keys are all there are");
    }
}

/// Tries one length of keys. `beats` of the key are `k`.
fn try_key(circuit: &mut Circuit, bytes: usize, rng: &mut SmallRng) {
    let width = circuit.shape().width;
    let k = bytes.div_ceil(width);
    let [key, first, second] = rivals(circuit, bytes, rng);
    assert_eq!(
        cycles(&look_up(circuit, &key)),
        k + 6,
        "miss by length, {bytes}"
    );
    for value_bytes in VALUE_BYTES {
        let v = value_bytes.div_ceil(width);
        store(circuit, &key, value_bytes);
        let reply = look_up(circuit, &key);
        assert!(reply.item.is_some());
        assert_eq!(
            cycles(&reply),
            2 * k + v + 6,
            "primary hit, {bytes}, {value_bytes}"
        );
        assert!(width > 1 || cycles(&reply) <= 2 * bytes + value_bytes + 8);
        let period = sustained(circuit, &key);
        assert_eq!(
            period,
            (k + 3).max(v + 2),
            "sustained, {bytes}, {value_bytes}"
        );
        assert!(width > 1 || period <= bytes.max(value_bytes) + 4);
        circuit.switch_mode(Mode::Write);
        circuit.delete(&key).unwrap();
        store(circuit, &first, 1);
        let slot = store(circuit, &key, value_bytes);
        assert_eq!(slot, circuit.places(&key)[1]);
        let reply = look_up(circuit, &key);
        assert!(reply.item.is_some());
        assert_eq!(
            cycles(&reply),
            3 * k + v + 7,
            "secondary hit, {bytes}, {value_bytes}"
        );
        assert!(width > 1 || cycles(&reply) <= 3 * bytes + value_bytes + 10);
        remove(circuit, &[&key, &first]);
        let other_bytes = if bytes > 100 { bytes - 1 } else { bytes + 4 };
        let primary = circuit.places(&key)[0];
        let other = numbered(other_bytes).find(|other| circuit.places(other)[0] == primary);
        let other = other.unwrap();
        store(circuit, &other, 1);
        store(circuit, &key, value_bytes);
        let reply = look_up(circuit, &key);
        assert_eq!(
            cycles(&reply),
            2 * k + v + 7,
            "after another length, {bytes}, {value_bytes}"
        );
        let period = sustained(circuit, &key);
        assert_eq!(
            period,
            (k + 4).max(v + 2),
            "sustained, {bytes}, {value_bytes}"
        );
        remove(circuit, &[&key, &other]);
    }
    store(circuit, &first, 1);
    store(circuit, &second, 1);
    let reply = look_up(circuit, &key);
    assert!(reply.item.is_none());
    assert_eq!(
        cycles(&reply),
        3 * k + 6,
        "miss in the last byte twice, {bytes}"
    );
    remove(circuit, &[&first, &second]);
}

fn remove(circuit: &mut Circuit, keys: &[&Vec<u8>]) {
    circuit.switch_mode(Mode::Write);
    for key in keys {
        circuit.delete(key).unwrap().expect("it was there");
    }
    circuit.switch_mode(Mode::Read);
}

/// Cycles from one reply to the next, all stages busy.
fn sustained(circuit: &mut Circuit, key: &[u8]) -> usize {
    const HITS: usize = 12;
    for _ in 0..HITS {
        circuit.offer(key);
    }
    let ends: Vec<u64> = (0..HITS).map(|_| circuit.wait_for_reply().ended).collect();
    // The first ones fill the stages.
    let between: Vec<u64> = ends
        .windows(2)
        .skip(4)
        .map(|ends| ends[1] - ends[0])
        .collect();
    assert!(
        between.iter().all(|cycles| *cycles == between[0]),
        "{between:?}"
    );
    between[0] as usize
}

fn the_budget_holds(width: usize) {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| {
        let mut rng = from_seed(seed);
        let mut circuit = Circuit::new(&tools, Shape::small(width), seed);
        for bytes in KEY_BYTES {
            try_key(&mut circuit, bytes, &mut rng);
        }
    });
}

#[test]
fn the_narrow_one() {
    the_budget_holds(1);
}

#[test]
fn the_wide_one() {
    the_budget_holds(8);
}

/// What `accel/stages.csv` says of hits in primary slots whose key and value are equally long, so
/// that the stages take equally long: cycles of one that is alone, and from one to the next without
/// a gap.
#[test]
fn stages_that_work_at_the_same_time() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let mut found = "width_bytes,key_bytes,alone_cycles,stream_cycles\n".to_owned();
    for width in [1, 8] {
        for bytes in [16, 64, 250] {
            let mut circuit = Circuit::new(&tools, Shape::small(width), 1);
            let key = vec![b'k'; bytes];
            let slot = store(&mut circuit, &key, bytes);
            assert_eq!(slot, circuit.places(&key)[0]);
            let alone = cycles(&look_up(&mut circuit, &key));
            let stream = sustained(&mut circuit, &key);
            found += &format!("{width},{bytes},{alone},{stream}\n");
        }
    }
    assert_eq!(found, include_str!("../../../../accel/stages.csv"));
}

/// Hits in both slots and misses without a gap, in keys of up to 56 bytes and values of up to 64:
/// one each 10 cycles at most, where frames of 64 bytes come each 10.5 cycles.
#[test]
fn the_wide_one_keeps_up_with_the_line() {
    if let Some(tools) = Tools::for_test() {
        each_seed(&[], |seed| keeps_up_with_the_line(&tools, seed));
    }
}

fn keeps_up_with_the_line(tools: &Tools, seed: u64) {
    let mut rng = from_seed(seed);
    let mut circuit = Circuit::new(tools, Shape::of_the_paper(8), seed);
    let mut keys = Vec::new();
    for number in 0..900u32 {
        let mut key = vec![b'x'; rng.random_range(4..=56)];
        key[..4].copy_from_slice(&number.to_le_bytes());
        keys.push(key.clone());
        circuit.switch_mode(Mode::Write);
        if number % 4 != 0
            && let Some(slot) = circuit.reserve(&key, 1).unwrap()
        {
            let bytes = rng.random_range(1..=64);
            circuit.associate_address(slot, 64 * slot).unwrap();
            circuit.associate_length(slot, bytes).unwrap();
            circuit.write_value(slot, &pattern(bytes)).unwrap();
        }
    }
    circuit.switch_mode(Mode::Read);
    const LOOKUPS: usize = 20_000;
    for _ in 0..LOOKUPS {
        circuit.offer(&keys[rng.random_range(0..keys.len())]);
    }
    let begin = circuit.cycle();
    let hits = (0..LOOKUPS)
        .filter(|_| circuit.wait_for_reply().item.is_some())
        .count();
    let mean = (circuit.cycle() - begin) as f64 / LOOKUPS as f64;
    println!("{LOOKUPS} lookups, {hits} hits: {mean:.2} cycles to a lookup");
    println!("{:.2} M/s at {WIDE_CLOCK_MHZ} MHz", WIDE_CLOCK_MHZ / mean);
    assert!(hits > LOOKUPS / 2 && hits < LOOKUPS);
    assert!(mean <= FRAME_CYCLES);
    // The longest of them, one after the other, in its primary slot.
    let mut empty = Circuit::new(tools, Shape::small(8), seed);
    let key = vec![b'l'; 56];
    assert_eq!(store(&mut empty, &key, 64), empty.places(&key)[0]);
    assert!(sustained(&mut empty, &key) <= 10);
}
