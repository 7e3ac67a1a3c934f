//! Every length of key and value, and values that do not overlap.

use super::{Make, Random};
use crate::device::{COUNT_MAX, Capabilities, Device, DeviceError, Mode};
use crate::models::{Loaded, Loader, LookUp};
use glimmer_base::limits::HOT_VALUE_BYTES_MAX;

pub(super) fn all(make: Make<'_>) {
    every_length(make);
    values_do_not_overlap(make);
}

fn every_length(make: Make<'_>) {
    let mut loader = Loader::new(Boxed(make()));
    let capabilities = loader.device().capabilities();
    let value_bytes_max = capabilities.value_bytes_max.min(HOT_VALUE_BYTES_MAX);
    let text: Vec<u8> = (0..value_bytes_max)
        .map(|place| (place * 31 % 251) as u8)
        .collect();
    let keys: Vec<u8> = (0..capabilities.key_bytes_max)
        .map(|place| b'a' + (place % 26) as u8)
        .collect();
    for key_bytes in 1..=keys.len() {
        // All lengths of values for some keys, and a few for each.
        let step = if key_bytes % 64 == 1 { 1 } else { 131 };
        let few = (1..=value_bytes_max).step_by(step);
        for value_bytes in few.chain([value_bytes_max - 1, value_bytes_max]) {
            let (key, value) = (&keys[..key_bytes], &text[..value_bytes]);
            let loaded = loader.push([(key, value, COUNT_MAX)]).unwrap();
            assert!(matches!(loaded[..], [Loaded::Into(_)]), "{loaded:?}");
            let found = loader.device().0.look_up(key);
            assert_eq!(found.as_deref(), Some(value), "{key_bytes}, {value_bytes}");
        }
        assert!(loader.remove(&keys[..key_bytes]).unwrap());
        assert_eq!(loader.device().0.look_up(&keys[..key_bytes]), None);
    }
}

fn values_do_not_overlap(make: Make<'_>) {
    let mut loader = Loader::new(Boxed(make()));
    let mut random = Random::new(11);
    let mut held: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for number in 0..4000u32 {
        let key = number.to_le_bytes().to_vec();
        let value = vec![number as u8; 1 + random.below(HOT_VALUE_BYTES_MAX)];
        let weight = random.below(64) as u8;
        match loader.push([(&key[..], &value[..], weight)]).unwrap()[..] {
            [Loaded::Into(_)] => held.push((key, value)),
            [Loaded::NoMemory] => {
                // Nothing of it stays, and a part of the rest makes room.
                assert_eq!(loader.device().0.look_up(&key), None);
                for (key, _) in held.drain(..held.len() / 4) {
                    loader.remove(&key).unwrap();
                }
            }
            [Loaded::Outweighed] => {}
            ref other => panic!("{other:?}"),
        }
    }
    let mut found = 0;
    for (key, value) in &held {
        if let Some(theirs) = loader.device().0.look_up(key) {
            assert_eq!(theirs, *value);
            found += 1;
        }
    }
    let slots = loader.device().capabilities().slots;
    assert!(found > slots / 4, "{found} of {slots}");
}

/// A boxed device as a device.
#[derive(Debug)]
struct Boxed(Box<dyn LookUp>);

impl Device for Boxed {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn switch_mode(&mut self, mode: Mode) {
        self.0.switch_mode(mode);
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        self.0.delete(key)
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.0.reserve(key, weight)
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        self.0.associate_address(slot, address)
    }

    fn associate_length(&mut self, slot: usize, bytes: usize) -> Result<(), DeviceError> {
        self.0.associate_length(slot, bytes)
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        self.0.associate_length_and_flags(slot, bytes, flags)
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.0.associate_cas(slot, cas)
    }

    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        self.0.write_value(slot, memory)
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.0.reset_counts()
    }

    fn count(&self, slot: usize) -> Option<u8> {
        self.0.count(slot)
    }
}
