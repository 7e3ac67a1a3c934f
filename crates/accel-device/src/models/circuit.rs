//! A model of the paper's circuit (§IV-A): 256 bytes to a key, addresses and lengths of values by
//! slot, one memory for all values, and one saturating count to a slot.

use super::LookUp;
use crate::device::{COUNT_MAX, Capabilities, Device, DeviceError, Mode};
use crate::pearson::{TABLES, pearson};

const KEY_BYTES_MAX: usize = 255;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Circuit {
    slots: Vec<Slot>,
    values: Vec<u8>,
    mode: Mode,
    hash: Hash,
}

/// The primary and the secondary hash of a key that is not empty.
pub type Hash = fn(&[u8]) -> [u16; 2];

#[derive(Clone, Debug, Default)]
struct Slot {
    /// Empty if the slot is.
    key: Vec<u8>,
    address: usize,
    length: usize,
    flags: u32,
    cas: u64,
    count: u8,
}

/// An item as the circuit answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitItem {
    /// The value.
    pub value: Vec<u8>,
    /// The client's flags.
    pub flags: u32,
    /// The CAS unique.
    pub cas: u64,
}

impl Circuit {
    /// A circuit of this number of slots, a power of two of at most 65,536, and bytes for values.
    /// All slots are empty, and it is in read mode.
    ///
    /// # Panics
    ///
    /// If the number of slots is another one.
    pub fn new(slots: usize, value_bytes: usize) -> Circuit {
        Circuit::with_hash(slots, value_bytes, |key| {
            TABLES.map(|table| pearson(&table, key))
        })
    }

    /// The same with another hash than the paper's.
    ///
    /// # Panics
    ///
    /// As [`Circuit::new`].
    pub fn with_hash(slots: usize, value_bytes: usize, hash: Hash) -> Circuit {
        assert!(slots.is_power_of_two() && slots <= 1 << 16);
        Circuit {
            slots: vec![Slot::default(); slots],
            values: vec![0; value_bytes],
            mode: Mode::Read,
            hash,
        }
    }

    /// 1,024 slots and 512 KiB.
    pub fn of_the_paper() -> Circuit {
        Circuit::new(1024, 512 << 10)
    }

    /// The item of a key; `None` for a miss, and in write mode.
    pub fn look_up_item(&mut self, key: &[u8]) -> Option<CircuitItem> {
        if self.mode == Mode::Write || key.is_empty() {
            return None;
        }
        let slot = self.key_slot(key)?;
        let slot = &mut self.slots[slot];
        slot.count = (slot.count + 1).min(COUNT_MAX);
        let end = slot.address.checked_add(slot.length)?;
        let value = self.values.get(slot.address..end)?;
        (!value.is_empty()).then(|| CircuitItem {
            value: value.to_vec(),
            flags: slot.flags,
            cas: slot.cas,
        })
    }

    /// Whether it is in write mode.
    pub fn is_in_write_mode(&self) -> bool {
        self.mode == Mode::Write
    }

    fn writable(&self) -> Result<(), DeviceError> {
        match self.mode {
            Mode::Write => Ok(()),
            Mode::Read => Err(DeviceError::ReadMode),
        }
    }

    fn key_slot(&self, key: &[u8]) -> Option<usize> {
        let mut places = self.places(key).into_iter();
        places.find(|&slot| self.slots[slot].key == key)
    }

    fn owned(&mut self, slot: usize) -> Result<&mut Slot, DeviceError> {
        self.writable()?;
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.key.is_empty());
        slot.ok_or(DeviceError::Slot)
    }

    fn check_key(&self, key: &[u8]) -> Result<(), DeviceError> {
        self.writable()?;
        match key.len() {
            1..=KEY_BYTES_MAX => Ok(()),
            _ => Err(DeviceError::Key),
        }
    }
}

impl Device for Circuit {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            slots: self.slots.len(),
            key_bytes_max: KEY_BYTES_MAX,
            value_bytes_max: self.values.len(),
            value_memory_bytes: Some(self.values.len()),
            has_write_mode: true,
            has_readable_counts: true,
            is_coherent: false,
        }
    }

    fn switch_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        self.check_key(key)?;
        let slot = self.key_slot(key);
        if let Some(slot) = slot {
            self.slots[slot] = Slot::default();
        }
        Ok(slot)
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.check_key(key)?;
        if let Some(slot) = self.key_slot(key) {
            return Ok(Some(slot));
        }
        let [primary, secondary] = self.places(key);
        let count = |slot: usize| self.slots[slot].count;
        let is_empty = |slot: &usize| self.slots[*slot].key.is_empty();
        let empty = [primary, secondary].into_iter().find(is_empty);
        let lighter = if count(secondary) < count(primary) {
            secondary
        } else {
            primary
        };
        let slot = empty.or_else(|| (count(lighter) < weight).then_some(lighter));
        if let Some(slot) = slot {
            self.slots[slot] = Slot {
                key: key.to_vec(),
                count: weight.min(COUNT_MAX),
                ..Slot::default()
            };
        }
        Ok(slot)
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        self.owned(slot)?.address = address;
        Ok(())
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        let slot = self.owned(slot)?;
        (slot.length, slot.flags) = (bytes, flags);
        Ok(())
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.owned(slot)?.cas = cas;
        Ok(())
    }

    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        let &mut Slot {
            address, length, ..
        } = self.owned(slot)?;
        let end = address.checked_add(length).ok_or(DeviceError::Value)?;
        let place = self
            .values
            .get_mut(address..end)
            .ok_or(DeviceError::Value)?;
        place.copy_from_slice(memory.get(..length).ok_or(DeviceError::Value)?);
        Ok(())
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.writable()?;
        self.slots.iter_mut().for_each(|slot| slot.count = 0);
        Ok(())
    }

    fn count(&self, slot: usize) -> Option<u8> {
        self.slots.get(slot).map(|slot| slot.count)
    }
}

impl LookUp for Circuit {
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        self.look_up_item(key).map(|item| item.value)
    }

    fn places(&self, key: &[u8]) -> [usize; 2] {
        (self.hash)(key).map(|hash| usize::from(hash) & (self.slots.len() - 1))
    }
}
