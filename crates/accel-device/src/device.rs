//! The paper's interface to an accelerator: seven operations (§VI-A, Figure 13), and what replies
//! need besides: the item's flags and CAS unique.

pub use glimmer_hotset::policies::COUNT_MAX;
use std::fmt::Debug;

/// What the operations `delete` and `reserve` return in a register if there is no slot.
pub const NO_SLOT: u32 = u32::MAX;

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Number of slots.
    pub slots: usize,
    /// Longest key in bytes.
    pub key_bytes_max: usize,
    /// Longest value in bytes.
    pub value_bytes_max: usize,
    /// Bytes of the memory that all values share, which the software allocates. `None`: every slot
    /// has room for a value of its own, and addresses are ignored.
    pub value_memory_bytes: Option<usize>,
    /// Whether slots are changed in write mode alone, in which nothing is answered.
    pub has_write_mode: bool,
    /// Whether the software can read the counts of hits.
    pub has_readable_counts: bool,
    /// Whether a single slot can be retracted and refilled while others are answered from, so that
    /// the answers are always those of the store.
    pub is_coherent: bool,
}

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It answers.
    Read = 0,
    /// It is changed.
    Write = 1,
}

/// Why a device has not carried out an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// It is in read mode.
    ReadMode,
    /// The key is empty or too long.
    Key,
    /// There is no such slot, or it belongs to no key.
    Slot,
    /// The value would not lie within the memory for values, or is longer than a value may be.
    Value,
    /// Nobody is there any more who could carry it out. It answers nothing.
    Lost,
}

/// What a device has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Cycles of its clock.
    pub cycles: u64,
    /// Reads that it answered.
    pub hits: u64,
    /// Reads of keys that it does not have.
    pub misses: u64,
    /// Reads that came in write mode and went on to the server.
    pub bypassed: u64,
    /// Most bytes that its buffer of frames for the server held at once.
    pub defer_high_water: u64,
}

/// An accelerator with the paper's operations. The number of an operation is its `funct7`.
pub trait Device: Debug {
    /// What the device can do.
    fn capabilities(&self) -> Capabilities;

    /// 0: answers, or is changed. A device without a write mode ignores this. When it returns, what
    /// was being looked up has been answered.
    fn switch_mode(&mut self, mode: Mode);

    /// 1: takes a key out. Returns the slot that it had.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`] and [`DeviceError::Key`].
    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError>;

    /// 2: gives a key of this weight, at most [`COUNT_MAX`], a slot: the one that it has; or else
    /// an empty one of its two, the primary one first; or else the one with the lower count, the
    /// primary one if they are equal, if the count is below the weight; or else `None`. A
    /// key that comes in begins with its weight as its count.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`] and [`DeviceError::Key`].
    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError>;

    /// 3: where in the memory for values the slot's value begins.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`] and [`DeviceError::Slot`].
    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError>;

    /// 4: how long the slot's value is. A value of length zero is a miss.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`] and [`DeviceError::Slot`].
    fn associate_length(&mut self, slot: usize, bytes: usize) -> Result<(), DeviceError> {
        self.associate_length_and_flags(slot, bytes, 0)
    }

    /// 4, with the item's flags, which share the operation's second register.
    ///
    /// # Errors
    ///
    /// Those of [`Device::associate_length`].
    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError>;

    /// 7, which the paper does not have: the CAS unique of the slot's item.
    ///
    /// # Errors
    ///
    /// Those of [`Device::associate_length`].
    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError>;

    /// 5: copies the slot's value, as long as associated, from the beginning of `memory`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`], [`DeviceError::Slot`] and [`DeviceError::Value`].
    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError>;

    /// 6: sets the counts of all slots to zero.
    ///
    /// # Errors
    ///
    /// [`DeviceError::ReadMode`].
    fn reset_counts(&mut self) -> Result<(), DeviceError>;

    /// The count of a slot, if counts can be read.
    fn count(&self, slot: usize) -> Option<u8>;

    /// What the device has counted; `None` if it counts nothing that can be read.
    fn counters(&mut self) -> Option<DeviceCounters> {
        None
    }

    /// Whether the device has gone for good. It answers nothing then, and every operation fails
    /// with [`DeviceError::Lost`].
    fn is_lost(&self) -> bool {
        false
    }

    /// Gives the device up, for this reason: it has done what it may not do.
    fn give_up(&mut self, _reason: &str) {}
}

/// The second register of `reserve`: the key's length in bits 0 to 7, the weight in bits 8 to 13.
/// `None` if one of them does not fit.
pub fn reserve_operand(key_bytes: usize, weight: u8) -> Option<u32> {
    let key_bytes = u8::try_from(key_bytes).ok()?;
    (weight <= COUNT_MAX).then(|| u32::from(key_bytes) | u32::from(weight) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operand_of_reserve() {
        assert_eq!(reserve_operand(250, 63), Some(0x3FFA));
        assert_eq!(reserve_operand(256, 1), None);
        assert_eq!(reserve_operand(1, 64), None);
    }
}
