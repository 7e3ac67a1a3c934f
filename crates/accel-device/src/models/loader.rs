//! The program that brings keys into a device (§VI-A): it allocates the memory for values, knows
//! which slot has which value, and switches modes.

use crate::allocator::Allocator;
use crate::device::{Device, DeviceError, Mode};

/// See the module's text.
#[derive(Debug)]
pub struct Loader<D> {
    device: D,
    /// `None` if every slot has room of its own.
    allocator: Option<Allocator>,
    /// Where each slot's value lies.
    addresses: Vec<Option<usize>>,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It has this slot.
    Into(usize),
    /// Both of its slots have keys that count as much.
    Outweighed,
    /// There is no room for its value. The key is not in the device.
    NoMemory,
}

impl<D: Device> Loader<D> {
    /// The loader of a device whose slots are all empty.
    pub fn new(device: D) -> Loader<D> {
        let capabilities = device.capabilities();
        Loader {
            allocator: capabilities.value_memory_bytes.map(Allocator::new),
            addresses: vec![None; capabilities.slots],
            device,
        }
    }

    /// The device.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// Brings in a batch of keys with their values and weights, in one stay in write mode, and then
    /// resets the counts (§VI-B).
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn push<'a>(
        &mut self,
        batch: impl IntoIterator<Item = (&'a [u8], &'a [u8], u8)>,
    ) -> Result<Vec<Loaded>, DeviceError> {
        self.device.switch_mode(Mode::Write);
        let mut load = |(key, value, weight)| self.load(key, value, weight);
        let loaded = batch.into_iter().map(&mut load).collect();
        let reset = self.device.reset_counts();
        self.device.switch_mode(Mode::Read);
        reset.and(loaded)
    }

    /// Takes a key out. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, DeviceError> {
        self.device.switch_mode(Mode::Write);
        let deleted = self.device.delete(key);
        self.device.switch_mode(Mode::Read);
        let slot = deleted?;
        if let Some(slot) = slot {
            self.free(slot);
        }
        Ok(slot.is_some())
    }

    fn load(&mut self, key: &[u8], value: &[u8], weight: u8) -> Result<Loaded, DeviceError> {
        let Some(slot) = self.device.reserve(key, weight)? else {
            return Ok(Loaded::Outweighed);
        };
        // What the slot's former value takes is free for the new one.
        self.free(slot);
        if let Some(allocator) = &mut self.allocator {
            let Some(address) = allocator.allocate(value.len()) else {
                self.device.delete(key)?;
                return Ok(Loaded::NoMemory);
            };
            self.addresses[slot] = Some(address);
            self.device.associate_address(slot, address)?;
        }
        self.device.associate_length(slot, value.len())?;
        self.device.write_value(slot, value)?;
        Ok(Loaded::Into(slot))
    }

    fn free(&mut self, slot: usize) {
        if let (Some(allocator), Some(address)) = (&mut self.allocator, self.addresses[slot].take())
        {
            allocator.free(address);
        }
    }
}
