//! The circuit as a device: each operation with its answer.

use super::circuit::Circuit;
use super::shape::Shape;
use glimmer_accel_device::device::{
    Capabilities, Device, DeviceError, Mode, NO_SLOT, reserve_operand,
};
use glimmer_accel_device::models::LookUp;

/// Longest key: its length is a byte.
const KEY_BYTES_MAX: usize = 255;

/// Longest value: its length has 16 bits on the reply port.
const VALUE_BYTES_MAX: usize = u16::MAX as usize;

/// Operations by their number (`kv_pkg.sv`), and the words for a refusal.
pub mod operation {
    #![allow(missing_docs, reason = "see `device::Device` and kv_pkg.sv")]
    pub const SWITCH_MODE: u64 = 0;
    pub const DELETE: u64 = 1;
    pub const RESERVE: u64 = 2;
    pub const ADDRESS: u64 = 3;
    pub const LENGTH: u64 = 4;
    pub const WRITE_VALUE: u64 = 5;
    pub const RESET_COUNTS: u64 = 6;
    pub const CAS: u64 = 7;
    pub const READ_MODE: u64 = 0xffff_fffe;
    pub const BAD_KEY: u64 = 0xffff_fffd;
    pub const BAD_SLOT: u64 = 0xffff_fffc;
    pub const BAD_VALUE: u64 = 0xffff_fffb;
    pub const BAD_OPERATION: u64 = 0xffff_fffa;
}

/// Where keys and values lie in the CPU's memory. Odd, so that most of them cross lines.
const KEY_ADDRESS: u64 = 0x1_0035;
const VALUE_ADDRESS: u64 = 0x20_001d;

impl Circuit {
    fn operate(&mut self, number: u64, rs1: u64, rs2: u64) -> Result<u64, DeviceError> {
        match self.execute(number, rs1, rs2) {
            operation::READ_MODE => Err(DeviceError::ReadMode),
            operation::BAD_KEY => Err(DeviceError::Key),
            operation::BAD_SLOT => Err(DeviceError::Slot),
            operation::BAD_VALUE => Err(DeviceError::Value),
            operation::BAD_OPERATION => panic!("operation {number} is unknown"),
            result => Ok(result),
        }
    }

    fn with_key(
        &mut self,
        number: u64,
        key: &[u8],
        weight: u8,
    ) -> Result<Option<usize>, DeviceError> {
        let operand = reserve_operand(key.len(), weight).ok_or(DeviceError::Key)?;
        self.memory().write(KEY_ADDRESS, key);
        let slot = self.operate(number, KEY_ADDRESS, operand.into())?;
        Ok((slot != u64::from(NO_SLOT)).then_some(slot as usize))
    }
}

impl Device for Circuit {
    fn capabilities(&self) -> Capabilities {
        let Shape {
            slots, value_bytes, ..
        } = self.shape();
        Capabilities {
            slots,
            key_bytes_max: KEY_BYTES_MAX,
            value_bytes_max: value_bytes.min(VALUE_BYTES_MAX),
            value_memory_bytes: Some(value_bytes),
            has_write_mode: true,
            has_readable_counts: true,
            is_coherent: false,
        }
    }

    fn switch_mode(&mut self, mode: Mode) {
        let switched = self.operate(operation::SWITCH_MODE, mode as u64, 0);
        switched.expect("a switch of the mode is never refused");
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        let slot = self.with_key(operation::DELETE, key, 0)?;
        slot.inspect(|&slot| self.lengths[slot] = 0);
        Ok(slot)
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.with_key(operation::RESERVE, key, weight)
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        self.operate(operation::ADDRESS, slot as u64, address as u64)
            .map(|_| ())
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        let operand = u64::from(length) | u64::from(flags) << 32;
        self.operate(operation::LENGTH, slot as u64, operand)?;
        self.lengths[slot] = bytes;
        Ok(())
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.operate(operation::CAS, slot as u64, cas).map(|_| ())
    }

    /// The circuit cannot know where the program's memory ends, so this looks at it first.
    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        let length = self.lengths.get(slot).copied().unwrap_or(0);
        if self.outputs().write_mode == 1 && memory.len() < length {
            return Err(DeviceError::Value);
        }
        self.memory().write(VALUE_ADDRESS, memory);
        self.operate(operation::WRITE_VALUE, slot as u64, VALUE_ADDRESS)
            .map(|_| ())
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.operate(operation::RESET_COUNTS, 0, 0).map(|_| ())
    }

    fn count(&self, slot: usize) -> Option<u8> {
        (slot < self.shape().slots).then(|| self.peek_count(slot))
    }
}

impl LookUp for Circuit {
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        if self.outputs().write_mode == 1 {
            return None;
        }
        let tag = self.offer(key);
        let reply = self.wait_for_reply();
        assert_eq!(reply.tag, tag, "replies come in order");
        reply.item.map(|item| item.value)
    }

    fn places(&self, key: &[u8]) -> [usize; 2] {
        self.places.places(key)
    }
}
