//! Random streams of lookups with operations between, against the software model, under random
//! back-pressure on every port.

use crate::directed;
use glimmer_accel_device::device::{COUNT_MAX, Device, Mode};
use glimmer_accel_device::models::{self, LookUp};
use glimmer_accel_rtl::lookup::device::operation;
use glimmer_accel_rtl::lookup::{Circuit, Pressure, Shape};
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{HashMap, VecDeque};

const LOOKUPS: usize = 100_000;

/// A circuit, its model, and what is under way.
struct Pair {
    circuit: Circuit,
    model: models::Circuit,
    rng: SmallRng,
    keys: Vec<Vec<u8>>,
    /// Flags and CAS of slots.
    properties: HashMap<usize, (u32, u64)>,
    /// What was offered and not answered yet.
    offered: VecDeque<(u8, Vec<u8>)>,
    answered: usize,
    hits: usize,
}

impl Pair {
    fn new(tools: &Tools, shape: Shape, seed: u64) -> Pair {
        let mut rng = from_seed(seed);
        let keys = (0..3 * shape.slots).map(|_| key(&mut rng)).collect();
        let mut circuit = Circuit::new(tools, shape, rng.random());
        // The model's memory begins with zeros, the circuit's with anything.
        let half = shape.value_bytes / 2;
        for address in [0, half] {
            directed::store(&mut circuit, b"zeros", &vec![0; half], address);
        }
        circuit.delete(b"zeros").unwrap();
        circuit.switch_mode(Mode::Read);
        Pair {
            circuit,
            model: shape.model(),
            keys,
            rng,
            properties: HashMap::new(),
            offered: VecDeque::new(),
            answered: 0,
            hits: 0,
        }
    }

    fn any_key(&mut self) -> Vec<u8> {
        // The first keys are asked for most.
        let range = if self.rng.random() {
            16
        } else {
            self.keys.len()
        };
        self.keys[self.rng.random_range(0..range)].clone()
    }

    fn offer(&mut self) {
        let key = self.any_key();
        let tag = self.circuit.offer(&key);
        self.offered.push_back((tag, key));
    }

    fn step(&mut self) {
        self.circuit.step();
        while let Some(reply) = self.circuit.reply() {
            let (tag, key) = self.offered.pop_front().expect("a reply has a request");
            assert_eq!(reply.tag, tag, "replies come in order");
            let places = self.model.places(&key);
            let expected = self.model.look_up(&key);
            let item = reply.item;
            let value = item.as_ref().map(|item| &item.value);
            assert!(value == expected.as_ref(), "the value of {key:?}");
            if let Some(item) = item {
                let properties = places.map(|slot| self.properties.get(&slot).copied());
                assert!(
                    properties.contains(&Some((item.flags, item.cas))),
                    "{places:?}"
                );
                self.hits += 1;
            }
            self.answered += 1;
        }
    }

    fn run_until(&mut self, holds: impl Fn(&mut Pair) -> bool) {
        let stuck = self.circuit.cycle() + 1_000_000;
        while !holds(self) {
            assert!(self.circuit.cycle() < stuck, "stuck");
            self.step();
        }
    }

    /// Goes to write mode in the midst of the stream, changes something, and goes back.
    fn change(&mut self) {
        self.circuit.begin(operation::SWITCH_MODE, 1, 0);
        let result = loop {
            self.step();
            if let Some(result) = self.circuit.result() {
                break result;
            }
        };
        assert_eq!(result, 0);
        // What was taken has been answered, under the state before.
        let waiting = self.circuit.withdraw();
        assert!(self.circuit.all_is_sent());
        assert_eq!(VecDeque::from(waiting.clone()), self.offered, "none lost");
        self.model.switch_mode(Mode::Write);
        for _ in 0..self.rng.random_range(0..6) {
            self.operate();
        }
        for slot in 0..self.circuit.shape().slots {
            assert_eq!(
                self.circuit.count(slot),
                self.model.count(slot),
                "count of {slot}"
            );
        }
        self.model.switch_mode(Mode::Read);
        self.circuit.switch_mode(Mode::Read);
        // A traffic manager may pass the requests on instead, as it does with half of them here.
        self.offered.clear();
        for (_, key) in waiting {
            if self.rng.random() {
                let tag = self.circuit.offer(&key);
                self.offered.push_back((tag, key));
            }
        }
    }

    fn operate(&mut self) {
        let key = self.any_key();
        match self.rng.random_range(0..16) {
            0..10 => self.insert(&key),
            10..14 => assert_eq!(self.circuit.delete(&key), self.model.delete(&key)),
            14 => {
                self.circuit.reset_counts().unwrap();
                self.model.reset_counts().unwrap();
            }
            _ => {
                let slot = self.rng.random_range(0..2 * self.circuit.shape().slots);
                let address = self
                    .rng
                    .random_range(0..2 * self.circuit.shape().value_bytes);
                assert_eq!(
                    self.circuit.associate_address(slot, address),
                    self.model.associate_address(slot, address)
                );
            }
        }
    }

    fn insert(&mut self, key: &[u8]) {
        let Shape { value_bytes, .. } = self.circuit.shape();
        let weight = self.rng.random_range(0..=COUNT_MAX);
        let slot = self.circuit.reserve(key, weight).unwrap();
        assert_eq!(slot, self.model.reserve(key, weight).unwrap());
        let Some(slot) = slot else {
            return;
        };
        // Values overlap, and some do not lie within the memory: the circuit does not mind.
        let address = self.rng.random_range(0..=value_bytes);
        let bytes = match self.rng.random_range(0..8) {
            0 => 1,
            1 => value_bytes - address.min(value_bytes - 1),
            2 => value_bytes - address + 1,
            _ => self.rng.random_range(0..300),
        };
        let bytes = bytes.min(2_000);
        let properties: (u32, u64) = self.rng.random();
        let value: Vec<u8> = (0..bytes).map(|_| self.rng.random()).collect();
        self.circuit.associate_address(slot, address).unwrap();
        self.circuit
            .associate_length_and_flags(slot, bytes, properties.0)
            .unwrap();
        self.circuit.associate_cas(slot, properties.1).unwrap();
        self.model.associate_address(slot, address).unwrap();
        self.model.associate_length(slot, bytes).unwrap();
        assert_eq!(
            self.circuit.write_value(slot, &value),
            self.model.write_value(slot, &value)
        );
        self.properties.insert(slot, properties);
    }
}

/// Half of all keys are short; many have one length and a common beginning.
fn key(rng: &mut SmallRng) -> Vec<u8> {
    let bytes = match rng.random_range(0..8) {
        0 => 1,
        1..5 => 9,
        5 => rng.random_range(1..=24),
        6 => rng.random_range(1..=255),
        _ => 255,
    };
    let mut key = vec![b'k'; bytes];
    let tail = bytes.saturating_sub(2);
    key[tail..].iter_mut().for_each(|byte| *byte = rng.random());
    key
}

/// As many lookups as that.
pub fn agrees(tools: &Tools, shape: Shape, seed: u64, lookups: usize) {
    let mut pair = Pair::new(tools, shape, seed);
    while pair.answered < lookups {
        let share = pair.rng.random_range(0..4);
        pair.circuit.pressure = Pressure {
            request: pressure(&mut pair.rng, share),
            reply_length: pressure(&mut pair.rng, share),
            reply_bytes: pressure(&mut pair.rng, share),
            result: pressure(&mut pair.rng, share),
            memory: pressure(&mut pair.rng, share),
        };
        for _ in 0..pair.rng.random_range(1..100) {
            pair.offer();
        }
        let left = pair.rng.random_range(0..=pair.offered.len());
        pair.run_until(|pair| pair.offered.len() <= left);
        pair.change();
    }
    pair.run_until(|pair| pair.offered.is_empty());
    println!(
        "{} lookups, {} hits, {} cycles",
        pair.answered,
        pair.hits,
        pair.circuit.cycle()
    );
    assert!(pair.hits > lookups / 10, "{} hits", pair.hits);
}

fn pressure(rng: &mut SmallRng, share: u32) -> f64 {
    if share == 0 {
        return 0.0;
    }
    rng.random_range(0.0..0.9)
}

fn try_width(width: usize) {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| {
        agrees(&tools, Shape::small(width), seed, LOOKUPS);
    });
}

#[test]
fn the_narrow_one() {
    try_width(1);
}

#[test]
fn the_wide_one() {
    try_width(8);
}
