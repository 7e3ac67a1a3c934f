//! The coherent accelerator under the paper's operations, for one thread. It has no write mode, and
//! every slot has room for a value of its own.

use super::LookUp;
use crate::device::{COUNT_MAX, Capabilities, Device, DeviceError, Mode};
use glimmer_base::Seed;
use glimmer_base::sync::Arc;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_hotset::layout::dimensions::{KEY_MAX, VALUE_MAX};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Piece, Tally};
use glimmer_hotset::{Filled, Guard, Memory, Reader, Token, hash, places};

/// Any seed: one process has both sides.
const SEED: Seed = Seed(0x5EED);

/// See the module's text.
#[derive(Debug)]
pub struct Model {
    guard: Guard,
    reader: Reader,
    slots: Vec<Reserved>,
}

/// What the operations have said about a slot.
#[derive(Clone, Debug, Default)]
struct Reserved {
    key: Vec<u8>,
    token: Option<Token>,
    length: usize,
    flags: u32,
    cas: u64,
    /// Its count is this much above the hits that were counted, modulo 2^64.
    offset: u64,
}

impl Model {
    /// A model of this number of slots, all of them empty.
    pub fn new(slots: usize, seed: u64) -> Model {
        Model::over(Arc::new(Memory::new(slots, 1, seed)))
    }

    /// A model of the slots in this memory, all of them empty. Another body may answer from it.
    pub fn over(memory: Arc<Memory>) -> Model {
        Model {
            guard: Guard::new(memory.clone()),
            slots: vec![Reserved::default(); memory.slots().len()],
            reader: Reader::new(memory, 0),
        }
    }

    fn hits(&self, slot: usize) -> u64 {
        let memory = self.guard.memory();
        let rows = (0..memory.readers()).map(|row| memory.counts(row)[slot].load(Relaxed));
        rows.fold(0, u64::wrapping_add)
    }

    fn saturated(&self, slot: usize) -> u8 {
        let count = self.hits(slot).wrapping_add(self.slots[slot].offset);
        count.min(COUNT_MAX.into()) as u8
    }

    fn owned(&mut self, slot: usize) -> Result<&mut Reserved, DeviceError> {
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.key.is_empty());
        slot.ok_or(DeviceError::Slot)
    }

    fn check_key(key: &[u8]) -> Result<(), DeviceError> {
        match key.len() {
            1..=KEY_MAX => Ok(()),
            _ => Err(DeviceError::Key),
        }
    }
}

impl Device for Model {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            slots: self.slots.len(),
            key_bytes_max: KEY_MAX,
            value_bytes_max: VALUE_MAX,
            value_memory_bytes: None,
            has_write_mode: false,
            has_readable_counts: true,
            is_coherent: true,
        }
    }

    fn switch_mode(&mut self, _mode: Mode) {}

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        Model::check_key(key)?;
        let keyhash = SEED.keyhash(key);
        let slot = self.guard.slot_of(keyhash);
        self.guard.evict(keyhash);
        if let Some(slot) = slot {
            let offset = self.hits(slot).wrapping_neg();
            self.slots[slot] = Reserved {
                offset,
                ..Reserved::default()
            };
        }
        Ok(slot)
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        Model::check_key(key)?;
        let keyhash = SEED.keyhash(key);
        if let Some(slot) = self.guard.slot_of(keyhash) {
            return Ok(Some(slot));
        }
        let standing = |slot| self.saturated(slot).into();
        let reserved = self.guard.reserve(keyhash, key, weight.into(), standing);
        Ok(reserved.ok().map(|token| {
            let slot = token.slot();
            let offset = u64::from(weight.min(COUNT_MAX)).wrapping_sub(self.hits(slot));
            self.slots[slot] = Reserved {
                key: key.to_vec(),
                token: Some(token),
                offset,
                ..Reserved::default()
            };
            slot
        }))
    }

    fn associate_address(&mut self, slot: usize, _address: usize) -> Result<(), DeviceError> {
        self.owned(slot).map(|_| ())
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
        let place = self.slots.get_mut(slot).filter(|slot| !slot.key.is_empty());
        let place = place.ok_or(DeviceError::Slot)?;
        let value = memory.get(..place.length).ok_or(DeviceError::Value)?;
        let retract = || self.guard.retract(SEED.keyhash(&place.key));
        let token = place
            .token
            .take()
            .or_else(retract)
            .ok_or(DeviceError::Slot)?;
        if value.is_empty() {
            return Ok(());
        }
        let item = HotItem {
            key: &place.key,
            value,
            flags: place.flags,
            cas: place.cas,
            deadline_ns: NEVER_NS,
        };
        match self.guard.refill(token, self.guard.epoch(), &item) {
            Filled::Live(_) => Ok(()),
            Filled::Unfit(_) => Err(DeviceError::Value),
            _ => Err(DeviceError::Slot),
        }
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        for slot in 0..self.slots.len() {
            self.slots[slot].offset = self.hits(slot).wrapping_neg();
        }
        Ok(())
    }

    fn count(&self, slot: usize) -> Option<u8> {
        (slot < self.slots.len()).then(|| self.saturated(slot))
    }
}

impl LookUp for Model {
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let hit = self.reader.find(key, 0).ok()?;
        let mut value = vec![0; hit.peek().bytes(Piece::Value)];
        hit.peek().copy(Piece::Value, &mut value);
        hit.finish(Tally::HitGet).then_some(value)
    }

    fn places(&self, key: &[u8]) -> [usize; 2] {
        places(
            hash(self.guard.memory().control().seed(), key),
            self.slots.len(),
        )
    }
}
