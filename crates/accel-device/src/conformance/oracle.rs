//! Random operations on a device and on a table that is as simple as possible.

use super::{Make, Random};
use crate::device::{COUNT_MAX, Mode};
use std::collections::HashMap;

/// What a slot has: key, value and count.
type Entry = (Vec<u8>, Vec<u8>, u8);

#[derive(Default)]
struct Oracle(HashMap<usize, Entry>);

impl Oracle {
    fn slot(&self, key: &[u8], places: [usize; 2]) -> Option<usize> {
        let has_key = |slot: &usize| self.0.get(slot).is_some_and(|entry| entry.0 == key);
        places.into_iter().find(has_key)
    }

    fn reserve(&mut self, key: &[u8], places: [usize; 2], weight: u8) -> Option<usize> {
        if let Some(slot) = self.slot(key, places) {
            return Some(slot);
        }
        let count = |slot: &usize| self.0.get(slot).map_or(-1, |entry| i16::from(entry.2));
        // The first of two equal ones; an empty slot counts less than any other.
        let [primary, secondary] = places;
        let lowest = if count(&secondary) < count(&primary) && count(&primary) >= 0 {
            secondary
        } else {
            primary
        };
        let wins = count(&lowest) < i16::from(weight);
        wins.then(|| {
            self.0.insert(lowest, (key.to_vec(), Vec::new(), weight));
            lowest
        })
    }
}

pub(super) fn random_operations(make: Make<'_>, seed: u64, steps: u32) {
    let (mut device, mut oracle, mut random) = (make(), Oracle::default(), Random::new(seed));
    // Few enough keys that most slots are fought over.
    let keys = 3 * device.capabilities().slots;
    for step in 0..steps {
        let key = format!("key {}", random.below(keys)).into_bytes();
        let places = device.places(&key);
        device.switch_mode(Mode::Write);
        match random.below(16) {
            0..6 => {
                let weight = random.below(usize::from(COUNT_MAX) + 1) as u8;
                let slot = device.reserve(&key, weight).unwrap();
                assert_eq!(
                    slot,
                    oracle.reserve(&key, places, weight),
                    "seed {seed}, step {step}"
                );
                if let Some(slot) = slot {
                    let value = step.to_le_bytes();
                    // Each slot has a place of its own for a value of this length.
                    device.associate_address(slot, slot * value.len()).unwrap();
                    device.associate_length(slot, value.len()).unwrap();
                    device.write_value(slot, &value).unwrap();
                    oracle.0.get_mut(&slot).expect("reserved").1 = value.to_vec();
                }
            }
            6..9 => {
                let slot = oracle.slot(&key, places);
                assert_eq!(device.delete(&key), Ok(slot), "seed {seed}, step {step}");
                slot.map(|slot| oracle.0.remove(&slot));
            }
            9 if step % 64 == 0 => {
                device.reset_counts().unwrap();
                oracle.0.values_mut().for_each(|entry| entry.2 = 0);
            }
            _ => {
                device.switch_mode(Mode::Read);
                for _ in 0..=random.below(20) {
                    let slot = oracle.slot(&key, places);
                    let entry = slot.and_then(|slot| oracle.0.get_mut(&slot));
                    let expected = entry.map(|(_, value, count)| {
                        *count = (*count + 1).min(COUNT_MAX);
                        value.clone()
                    });
                    assert_eq!(device.look_up(&key), expected, "seed {seed}, step {step}");
                }
            }
        }
    }
    assert!(!oracle.0.is_empty());
}
