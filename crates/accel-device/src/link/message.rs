//! What the two sides say. The server asks, and the device answers each request in turn.

use super::frame::{Fields, Malformed, append};
use super::operation::{Operation, Registers};
use crate::device::{Capabilities, DeviceCounters};
use glimmer_base::limits::{HOT_SLOTS_MAX, LINK_MEMORY_BYTES_MAX};

/// The first field of both sides' first messages.
pub const MAGIC: [u8; 4] = *b"GLAC";
/// The version of the protocol. Both sides must have the same one.
pub const VERSION: u16 = 1;

const HELLO: u8 = 1;
const OPERATE: u8 = 2;
const COUNT: u8 = 3;

const HAS_VALUE_MEMORY: u8 = 1;
const HAS_WRITE_MODE: u8 = 2;
const IS_COHERENT: u8 = 4;

/// What the server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The first request: here is a server that speaks this version. All slots are to be empty.
    Hello {
        /// The version.
        version: u16,
    },
    /// Carry an operation out.
    Operate(Operation<'a>),
    /// Say what was counted.
    Count,
}

/// What the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To the first request: the device speaks another version.
    OtherVersion {
        /// The version that it speaks.
        version: u16,
    },
    /// To the first request: it is ready, all slots are empty, and this is what it can do.
    Ready(Capabilities),
    /// The result of an operation.
    Done {
        /// The result register.
        rd: u64,
    },
    /// What it has counted.
    Counts(DeviceCounters),
}

impl<'a> Request<'a> {
    /// Appends the request as a frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        append(out, |out| match self {
            Request::Hello { version } => {
                out.push(HELLO);
                out.extend(MAGIC);
                out.extend(version.to_le_bytes());
            }
            Request::Operate(operation) => {
                let registers = operation.registers();
                out.extend([OPERATE, registers.funct7]);
                out.extend(registers.rs1.to_le_bytes());
                out.extend(registers.rs2.to_le_bytes());
                out.extend(registers.memory);
            }
            Request::Count => out.push(COUNT),
        });
    }

    /// The request in a frame.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(frame: &'a [u8]) -> Result<Request<'a>, Malformed> {
        let mut fields = Fields(frame);
        let request = match fields.u8()? {
            HELLO => Request::Hello {
                version: version(&mut fields)?,
            },
            OPERATE => Request::Operate(Operation::read(&Registers {
                funct7: fields.u8()?,
                rs1: fields.u64()?,
                rs2: fields.u64()?,
                memory: fields.rest(),
            })?),
            COUNT => Request::Count,
            _ => return Err(Malformed::Kind),
        };
        fields.end().map(|()| request)
    }
}

impl Answer {
    /// Appends the answer as a frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        append(out, |out| match self {
            Answer::OtherVersion { version } => begin(out, *version),
            Answer::Ready(capabilities) => {
                begin(out, VERSION);
                append_capabilities(out, capabilities);
            }
            Answer::Done { rd } => {
                out.push(OPERATE);
                out.extend(rd.to_le_bytes());
            }
            Answer::Counts(counters) => {
                out.push(COUNT);
                for count in [
                    counters.cycles,
                    counters.hits,
                    counters.misses,
                    counters.bypassed,
                    counters.defer_high_water,
                ] {
                    out.extend(count.to_le_bytes());
                }
            }
        });
    }

    /// The answer in a frame.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(frame: &[u8]) -> Result<Answer, Malformed> {
        let mut fields = Fields(frame);
        let answer = match fields.u8()? {
            HELLO => match version(&mut fields)? {
                VERSION => Answer::Ready(read_capabilities(&mut fields)?),
                version => Answer::OtherVersion { version },
            },
            OPERATE => Answer::Done { rd: fields.u64()? },
            COUNT => Answer::Counts(DeviceCounters {
                cycles: fields.u64()?,
                hits: fields.u64()?,
                misses: fields.u64()?,
                bypassed: fields.u64()?,
                defer_high_water: fields.u64()?,
            }),
            _ => return Err(Malformed::Kind),
        };
        fields.end().map(|()| answer)
    }
}

fn begin(out: &mut Vec<u8>, version: u16) {
    out.push(HELLO);
    out.extend(MAGIC);
    out.extend(version.to_le_bytes());
}

fn version(fields: &mut Fields<'_>) -> Result<u16, Malformed> {
    match fields.take()? {
        MAGIC => fields.u16(),
        _ => Err(Malformed::Magic),
    }
}

fn append_capabilities(out: &mut Vec<u8>, it: &Capabilities) {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    out.extend((it.slots as u32).to_le_bytes());
    out.push(it.key_bytes_max as u8);
    // Longer values do not fit into a frame.
    let value_bytes_max = it.value_bytes_max.min(LINK_MEMORY_BYTES_MAX);
    out.extend((value_bytes_max as u32).to_le_bytes());
    out.extend((it.value_memory_bytes.unwrap_or(0) as u32).to_le_bytes());
    out.push(
        bit(it.value_memory_bytes.is_some(), HAS_VALUE_MEMORY)
            | bit(it.has_write_mode, HAS_WRITE_MODE)
            | bit(it.is_coherent, IS_COHERENT),
    );
}

/// Counts of slots are not carried, so the other side has none that can be read.
fn read_capabilities(fields: &mut Fields<'_>) -> Result<Capabilities, Malformed> {
    let between = |number: u32, least: usize, most: usize, name| match number as usize {
        number if (least..=most).contains(&number) => Ok(number),
        _ => Err(Malformed::Field(name)),
    };
    let slots = between(fields.u32()?, 1, HOT_SLOTS_MAX, "number of slots")?;
    let key_bytes_max = between(fields.u8()?.into(), 1, 255, "longest key")?;
    let (value_bytes, memory_bytes, bits) = (fields.u32()?, fields.u32()?, fields.u8()?);
    if bits & !(HAS_VALUE_MEMORY | HAS_WRITE_MODE | IS_COHERENT) != 0 {
        return Err(Malformed::Field("set of abilities"));
    }
    let has_memory = bits & HAS_VALUE_MEMORY != 0;
    if has_memory != (memory_bytes > 0) {
        return Err(Malformed::Field("memory for values"));
    }
    Ok(Capabilities {
        slots,
        key_bytes_max,
        value_bytes_max: between(value_bytes, 1, LINK_MEMORY_BYTES_MAX, "longest value")?,
        value_memory_bytes: has_memory.then_some(memory_bytes as usize),
        has_write_mode: bits & HAS_WRITE_MODE != 0,
        has_readable_counts: false,
        is_coherent: bits & IS_COHERENT != 0,
    })
}
