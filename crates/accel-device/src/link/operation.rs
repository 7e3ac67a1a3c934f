//! The device's operations as the circuit's registers (§VI-A, Figure 13): a number `funct7`, two
//! registers, and a result. An address in the CPU's memory is relative to the bytes that travel
//! with the operation, so it is zero: those bytes are all that the device may read.

use super::frame::Malformed;
use crate::device::{COUNT_MAX, Device, DeviceError, Mode, NO_SLOT, reserve_operand};
use glimmer_base::limits::{HOT_SLOTS_MAX, LINK_MEMORY_BYTES_MAX};

const SWITCH_MODE: u8 = 0;
const DELETE: u8 = 1;
const RESERVE: u8 = 2;
const ADDRESS: u8 = 3;
const LENGTH: u8 = 4;
const WRITE_VALUE: u8 = 5;
const RESET_COUNTS: u8 = 6;
const CAS: u8 = 7;

/// Results that say why an operation was refused.
const REFUSALS: [(u64, DeviceError); 4] = [
    (0xFFFF_FFFE, DeviceError::ReadMode),
    (0xFFFF_FFFD, DeviceError::Key),
    (0xFFFF_FFFC, DeviceError::Slot),
    (0xFFFF_FFFB, DeviceError::Value),
];

/// An operation as the circuit is given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers<'a> {
    /// Its number.
    pub funct7: u8,
    /// The first register.
    pub rs1: u64,
    /// The second register.
    pub rs2: u64,
    /// What the device reads of the CPU's memory.
    pub memory: &'a [u8],
}

/// An operation whose registers have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "see `Device`")]
pub enum Operation<'a> {
    SwitchMode(Mode),
    Delete { key: &'a [u8] },
    Reserve { key: &'a [u8], weight: u8 },
    Address { slot: usize, address: u32 },
    Length { slot: usize, bytes: u32, flags: u32 },
    WriteValue { slot: usize, memory: &'a [u8] },
    ResetCounts,
    Cas { slot: usize, cas: u64 },
}

impl<'a> Operation<'a> {
    /// The registers.
    pub fn registers(&self) -> Registers<'a> {
        let (funct7, rs1, rs2, memory): (u8, u64, u64, &[u8]) = match *self {
            Operation::SwitchMode(mode) => (SWITCH_MODE, mode as u64, 0, &[]),
            Operation::Delete { key } => (DELETE, 0, key.len() as u64, key),
            Operation::Reserve { key, weight } => {
                let operand = key.len() as u64 | u64::from(weight) << 8;
                (RESERVE, 0, operand, key)
            }
            Operation::Address { slot, address } => (ADDRESS, slot as u64, address.into(), &[]),
            Operation::Length { slot, bytes, flags } => {
                let operand = u64::from(bytes) | u64::from(flags) << 32;
                (LENGTH, slot as u64, operand, &[])
            }
            Operation::WriteValue { slot, memory } => (WRITE_VALUE, slot as u64, 0, memory),
            Operation::ResetCounts => (RESET_COUNTS, 0, 0, &[]),
            Operation::Cas { slot, cas } => (CAS, slot as u64, cas, &[]),
        };
        Registers {
            funct7,
            rs1,
            rs2,
            memory,
        }
    }

    /// The operation with these registers.
    ///
    /// # Errors
    ///
    /// The field that is out of range.
    pub fn read(registers: &Registers<'a>) -> Result<Operation<'a>, Malformed> {
        let &Registers {
            funct7,
            rs1,
            rs2,
            memory,
        } = registers;
        let zero = |register: u64, name| match register {
            0 => Ok(()),
            _ => Err(Malformed::Field(name)),
        };
        let slot = || match usize::try_from(rs1) {
            Ok(slot) if slot < HOT_SLOTS_MAX => Ok(slot),
            _ => Err(Malformed::Field("slot")),
        };
        let key = || match memory.len() {
            1..=255 if memory.len() as u64 == rs2 & 0xFF => Ok(memory),
            _ => Err(Malformed::Field("key's length")),
        };
        if !matches!(funct7, DELETE | RESERVE | WRITE_VALUE) && !memory.is_empty() {
            return Err(Malformed::Field("memory"));
        }
        match funct7 {
            SWITCH_MODE => {
                zero(rs2, "second register")?;
                match rs1 {
                    0 => Ok(Operation::SwitchMode(Mode::Read)),
                    1 => Ok(Operation::SwitchMode(Mode::Write)),
                    _ => Err(Malformed::Field("mode")),
                }
            }
            DELETE => {
                zero(rs1, "address")?;
                zero(rs2 >> 8, "second register")?;
                Ok(Operation::Delete { key: key()? })
            }
            RESERVE => {
                zero(rs1, "address")?;
                match u8::try_from(rs2 >> 8) {
                    Ok(weight) if weight <= COUNT_MAX => Ok(Operation::Reserve {
                        key: key()?,
                        weight,
                    }),
                    _ => Err(Malformed::Field("weight")),
                }
            }
            ADDRESS => Ok(Operation::Address {
                slot: slot()?,
                address: u32::try_from(rs2).map_err(|_| Malformed::Field("value's address"))?,
            }),
            LENGTH => Ok(Operation::Length {
                slot: slot()?,
                bytes: rs2 as u32,
                flags: (rs2 >> 32) as u32,
            }),
            WRITE_VALUE => {
                zero(rs2, "address")?;
                if !(1..=LINK_MEMORY_BYTES_MAX).contains(&memory.len()) {
                    return Err(Malformed::Field("value's length"));
                }
                Ok(Operation::WriteValue {
                    slot: slot()?,
                    memory,
                })
            }
            RESET_COUNTS => {
                zero(rs1 | rs2, "register")?;
                Ok(Operation::ResetCounts)
            }
            CAS => Ok(Operation::Cas {
                slot: slot()?,
                cas: rs2,
            }),
            _ => Err(Malformed::Field("operation")),
        }
    }

    /// Whether this operation's result is a slot.
    pub(crate) fn has_slot(&self) -> bool {
        matches!(self, Operation::Delete { .. } | Operation::Reserve { .. })
    }
}

/// What an operation's result says was wrong, if it says so.
pub fn refusal(result: u64) -> Option<DeviceError> {
    let found = REFUSALS.iter().find(|(number, _)| *number == result);
    found.map(|(_, error)| *error)
}

/// Has a device in this process carry an operation out, and returns the result.
pub fn carry_out(operation: &Operation<'_>, device: &mut (impl Device + ?Sized)) -> u64 {
    let slot_of = |slot: Option<usize>| slot.map_or(u64::from(NO_SLOT), |slot| slot as u64);
    let done = match *operation {
        Operation::SwitchMode(mode) => {
            device.switch_mode(mode);
            Ok(0)
        }
        Operation::Delete { key } => device.delete(key).map(slot_of),
        Operation::Reserve { key, weight } => match reserve_operand(key.len(), weight) {
            Some(_) => device.reserve(key, weight).map(slot_of),
            None => Err(DeviceError::Key),
        },
        Operation::Address { slot, address } => {
            let done = device.associate_address(slot, address as usize);
            done.map(|()| 0)
        }
        Operation::Length { slot, bytes, flags } => {
            let done = device.associate_length_and_flags(slot, bytes as usize, flags);
            done.map(|()| 0)
        }
        Operation::WriteValue { slot, memory } => device.write_value(slot, memory).map(|()| 0),
        Operation::ResetCounts => device.reset_counts().map(|()| 0),
        Operation::Cas { slot, cas } => device.associate_cas(slot, cas).map(|()| 0),
    };
    done.unwrap_or_else(|error| {
        let found = REFUSALS.iter().find(|(_, refusal)| *refusal == error);
        found.map_or(REFUSALS[3].0, |(number, _)| *number)
    })
}
