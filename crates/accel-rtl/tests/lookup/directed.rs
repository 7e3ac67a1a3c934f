//! One situation after the other. Each takes any shape, so that planted bugs can be tried with it.

use glimmer_accel_device::device::{COUNT_MAX, Device, DeviceError, Mode};
use glimmer_accel_device::models::LookUp;
use glimmer_accel_rtl::lookup::device::operation;
use glimmer_accel_rtl::lookup::{Circuit, Pressure, Shape};
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;

/// Stores an item with the highest weight at an address. Stays in write mode.
pub fn store(circuit: &mut Circuit, key: &[u8], value: &[u8], address: usize) -> usize {
    store_if_room(circuit, key, value, address).expect("a slot")
}

fn store_if_room(circuit: &mut Circuit, key: &[u8], value: &[u8], address: usize) -> Option<usize> {
    circuit.switch_mode(Mode::Write);
    let slot = circuit.reserve(key, COUNT_MAX).unwrap()?;
    circuit.associate_address(slot, address).unwrap();
    circuit.associate_length(slot, value.len()).unwrap();
    circuit.write_value(slot, value).unwrap();
    Some(slot)
}

/// Bytes in which a shift shows.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Numbered keys of a length, at least 4.
pub fn numbered(bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    (0u32..).map(move |number| {
        let mut key = vec![b'n'; bytes - 4];
        key.extend(number.to_le_bytes());
        key
    })
}

pub fn equal_hashes_leave_one_slot(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let first = numbered(9).find(|key| {
        let [primary, secondary] = circuit.places(key);
        primary == secondary
    });
    let first = first.unwrap();
    let place = circuit.places(&first);
    let second = numbered(9)
        .find(|key| *key != first && circuit.places(key) == place)
        .unwrap();
    store(&mut circuit, &first, b"one", 0);
    assert_eq!(circuit.reserve(&second, COUNT_MAX), Ok(None));
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(&first).as_deref(), Some(&b"one"[..]));
    assert_eq!(circuit.look_up(&second), None);
    circuit.switch_mode(Mode::Write);
    assert_eq!(circuit.delete(&second), Ok(None));
    assert_eq!(circuit.delete(&first), Ok(Some(place[0])));
    assert_eq!(store(&mut circuit, &second, b"two", 3), place[0]);
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(&second).as_deref(), Some(&b"two"[..]));
    assert_eq!(circuit.look_up(&first), None);
}

/// GETs without end, and switches at every moment of them.
pub fn a_mode_switch_loses_no_get(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let mut rng = from_seed(seed);
    // Many keys of one length: a good part of them are found after another key was compared.
    let mut items = Vec::new();
    for (key, number) in numbered(12).zip(0..60) {
        let value = pattern(1 + number % 30);
        if store_if_room(&mut circuit, &key, &value, 30 * number).is_some() {
            items.push((key, value));
        }
    }
    circuit.switch_mode(Mode::Read);
    let mut expected = std::collections::VecDeque::new();
    for switch in 0..300 {
        if switch % 3 == 0 {
            let shares = [0.0, 0.0, 0.5];
            circuit.pressure = Pressure::of(shares[rng.random_range(0..3)]);
        }
        while expected.len() < 12 {
            let number = rng.random_range(0..items.len());
            expected.push_back((circuit.offer(&items[number].0), number));
        }
        let mut replies = Vec::new();
        for _ in 0..rng.random_range(0..200) {
            circuit.step();
            replies.extend(circuit.reply());
        }
        circuit.begin(operation::SWITCH_MODE, 1, 0);
        while circuit.result().is_none() {
            circuit.step();
            replies.extend(circuit.reply());
        }
        for reply in replies {
            let (tag, number) = expected.pop_front().expect("a request");
            assert_eq!(reply.tag, tag, "order");
            assert_eq!(reply.item.expect("a hit").value, items[number].1);
        }
        assert_eq!(circuit.outputs().lookup_idle, 1);
        assert!(
            circuit.all_is_sent() || expected.len() == waiting(&mut circuit),
            "none lost"
        );
        circuit.switch_mode(Mode::Read);
    }
}

/// How many requests were not taken. They are offered again, under the tags that they had.
fn waiting(circuit: &mut Circuit) -> usize {
    let waiting = circuit.withdraw();
    waiting
        .iter()
        .for_each(|(tag, key)| circuit.offer_again(*tag, key));
    waiting.len()
}

pub fn a_delete_waits_for_the_value_that_streams(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let (key, value) = (b"streams".to_vec(), pattern(1400));
    store(&mut circuit, &key, &value, 77);
    circuit.switch_mode(Mode::Read);
    circuit.pressure.reply_bytes = 0.7;
    circuit.offer(&key);
    circuit.step_until("bytes", |circuit| circuit.outputs().val_valid == 1);
    circuit.switch_mode(Mode::Write);
    let reply = circuit.reply().expect("whole before the switch is done");
    assert_eq!(reply.item.expect("a hit").value, value);
    assert!(circuit.delete(&key).unwrap().is_some());
    store(&mut circuit, b"other", &[0xFF; 1400], 77);
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(&key), None);
    assert_eq!(circuit.look_up(b"other"), Some(vec![0xFF; 1400]));
}

pub fn lengths_at_their_bounds(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let longest = circuit.capabilities().value_bytes_max;
    for key_bytes in [1, 2, 7, 8, 9, 250, 255] {
        let key = pattern(key_bytes);
        for value_bytes in [1, 2, 1399, longest] {
            // At the beginning, at an odd address, and at the very end.
            for address in [0, 1, 6, shape.value_bytes - value_bytes] {
                if address + value_bytes > shape.value_bytes {
                    continue;
                }
                let value = pattern(value_bytes);
                store(&mut circuit, &key, &value, address);
                circuit.switch_mode(Mode::Read);
                assert!(
                    circuit.look_up(&key) == Some(value),
                    "{key_bytes}, {value_bytes}"
                );
            }
        }
        circuit.switch_mode(Mode::Write);
        circuit.delete(&key).unwrap();
    }
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(b""), None, "an empty key is a miss");
}

/// Each value begins where the one before ends, at every alignment.
pub fn values_lie_side_by_side(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let (mut address, mut items) = (3, Vec::new());
    for (key, number) in numbered(5).zip(0..60) {
        let value: Vec<u8> = pattern(number + 40).split_off(number);
        let value = value[..1 + number % 37].to_vec();
        if store_if_room(&mut circuit, &key, &value, address).is_some() {
            address += value.len();
            items.push((key, value));
        }
    }
    circuit.switch_mode(Mode::Read);
    for (key, value) in &items {
        assert_eq!(circuit.look_up(key).as_ref(), Some(value));
    }
}

pub fn a_value_stays_within_the_memory(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let end = shape.value_bytes;
    let wrong = [
        (end - 1, 2),
        (end, 1),
        (end + 1, 1),
        (1 << 40, 1),
        (0, 65_536),
        (usize::MAX, 1),
    ];
    for (address, bytes) in wrong {
        circuit.switch_mode(Mode::Write);
        let slot = circuit.reserve(b"key", COUNT_MAX).unwrap().unwrap();
        circuit.associate_address(slot, address).unwrap();
        circuit.associate_length(slot, bytes).unwrap();
        let value = vec![1; bytes];
        assert_eq!(
            circuit.write_value(slot, &value),
            Err(DeviceError::Value),
            "{address}"
        );
        circuit.switch_mode(Mode::Read);
        assert_eq!(circuit.look_up(b"key"), None, "{address}, {bytes}");
    }
    store(&mut circuit, b"key", b"ab", end - 2);
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(b"key").as_deref(), Some(&b"ab"[..]));
}

/// Hits in a stream while the sweep is under way, and a second reset before it has ended.
pub fn counts_are_exact_during_the_sweep(tools: &Tools, shape: Shape, seed: u64) {
    let shape = Shape {
        slots: 1024,
        ..shape
    };
    let mut circuit = Circuit::new(tools, shape, seed);
    let mut rng = from_seed(seed);
    let mut items = Vec::new();
    for key in numbered(4).take(200) {
        circuit.switch_mode(Mode::Write);
        if let Some(slot) = circuit.reserve(&key, COUNT_MAX).unwrap() {
            circuit.associate_length(slot, 1).unwrap();
            items.retain(|(_, other)| *other != slot);
            items.push((key, slot));
        }
    }
    for round in 0..8 {
        circuit.switch_mode(Mode::Write);
        circuit.reset_counts().unwrap();
        if round % 2 == 1 {
            circuit.reset_counts().unwrap();
        }
        circuit.switch_mode(Mode::Read);
        let mut counts = vec![0u8; shape.slots];
        let hits = [20, 60, 120, 400][round / 2];
        for _ in 0..hits {
            let (key, slot) = &items[rng.random_range(0..items.len())];
            circuit.offer(key);
            counts[*slot] = (counts[*slot] + 1).min(COUNT_MAX);
        }
        for _ in 0..hits {
            assert!(circuit.wait_for_reply().item.is_some());
        }
        for (slot, &count) in counts.iter().enumerate() {
            assert_eq!(circuit.count(slot), Some(count), "slot {slot}, {hits} hits");
        }
    }
}

pub fn counts_saturate(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let slot = store(&mut circuit, b"key", b"value", 0);
    circuit.reset_counts().unwrap();
    circuit.switch_mode(Mode::Read);
    for hits in 1..=3 * COUNT_MAX {
        assert!(circuit.look_up(b"key").is_some());
        assert_eq!(circuit.count(slot), Some(hits.min(COUNT_MAX)));
    }
}

/// A key and its beginning in one slot are two keys.
pub fn lengths_are_compared(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    let long = numbered(24).find(|key| {
        let (whole, beginning) = (circuit.places(key), circuit.places(&key[..23]));
        beginning.contains(&whole[0])
    });
    let long = long.unwrap();
    store(&mut circuit, &long, b"value", 0);
    circuit.switch_mode(Mode::Read);
    assert_eq!(circuit.look_up(&long[..23]), None);
    assert!(circuit.look_up(&long).is_some());
}

/// Everything that the ports refuse, and what the paper leaves out.
pub fn refusals_and_properties(tools: &Tools, shape: Shape, seed: u64) {
    let mut circuit = Circuit::new(tools, shape, seed);
    assert_eq!(
        circuit.execute(operation::RESERVE, 0, 5),
        operation::READ_MODE
    );
    assert_eq!(circuit.execute(operation::CAS, 0, 5), operation::READ_MODE);
    assert_eq!(circuit.execute(9, 0, 5), operation::BAD_OPERATION);
    let slot = store(&mut circuit, b"key", b"value", 0);
    assert_eq!(
        circuit.execute(operation::RESERVE, 0, 0x3F00),
        operation::BAD_KEY
    );
    assert_eq!(
        circuit.associate_cas(shape.slots, 1),
        Err(DeviceError::Slot)
    );
    circuit
        .associate_length_and_flags(slot, 5, 0xdead_beef)
        .unwrap();
    circuit.associate_cas(slot, u64::MAX - 1).unwrap();
    circuit.switch_mode(Mode::Read);
    circuit.offer(b"key");
    let item = circuit.wait_for_reply().item.unwrap();
    assert_eq!((item.flags, item.cas), (0xdead_beef, u64::MAX - 1));
    circuit.switch_mode(Mode::Write);
    circuit.delete(b"key").unwrap();
    store(&mut circuit, b"key", b"value", 0);
    circuit.switch_mode(Mode::Read);
    circuit.offer(b"key");
    let item = circuit.wait_for_reply().item.unwrap();
    assert_eq!(
        (item.flags, item.cas),
        (0, 0),
        "those of the deleted item are gone"
    );
}

/// A situation: tools, shape, seed.
pub type Situation = fn(&Tools, Shape, u64);

const SITUATIONS: [(&str, Situation); 10] = [
    ("equal hashes", equal_hashes_leave_one_slot),
    ("mode switch", a_mode_switch_loses_no_get),
    ("delete", a_delete_waits_for_the_value_that_streams),
    ("lengths", lengths_at_their_bounds),
    ("neighbours", values_lie_side_by_side),
    ("memory", a_value_stays_within_the_memory),
    ("sweep", counts_are_exact_during_the_sweep),
    ("saturation", counts_saturate),
    ("prefix", lengths_are_compared),
    ("refusals", refusals_and_properties),
];

#[test]
fn every_situation_in_both_widths() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| {
        for width in [1, 8] {
            for (name, situation) in SITUATIONS {
                println!("{name}, {width} bytes wide");
                situation(&tools, Shape::small(width), seed);
            }
        }
    });
}
