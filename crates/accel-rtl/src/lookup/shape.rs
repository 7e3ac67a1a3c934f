//! The parameters of a circuit, and the software model of a circuit with them.

use crate::tops::LOOKUP;
use crate::verilate::Variant;
use glimmer_accel_device::models;

/// The parameters of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes in a beat: 1 or 8.
    pub width: usize,
    /// Number of slots.
    pub slots: usize,
    /// Bytes of the memory for values.
    pub value_bytes: usize,
    /// A planted bug.
    pub bug: Option<&'static str>,
}

impl Shape {
    /// The paper's, one byte wide or eight.
    pub fn of_the_paper(width: usize) -> Shape {
        Shape {
            width,
            slots: 1024,
            value_bytes: 512 << 10,
            bug: None,
        }
    }

    /// One that is quick to build and to fill.
    pub fn small(width: usize) -> Shape {
        Shape {
            width,
            slots: 64,
            value_bytes: 64 << 10,
            bug: None,
        }
    }

    /// The software model of such a circuit: the oracle.
    pub fn model(self) -> models::Circuit {
        if self.width == 1 {
            models::Circuit::new(self.slots, self.value_bytes)
        } else {
            models::Circuit::with_hash(self.slots, self.value_bytes, crc32c)
        }
    }

    pub(super) fn variant(&self) -> Variant {
        let variant = Variant::new(LOOKUP)
            .with("W", self.width as u64)
            .with("SLOTS", self.slots as u64)
            .with("VALUE_BYTES", self.value_bytes as u64);
        match self.bug {
            Some(bug) => variant.with_bug(bug),
            None => variant,
        }
    }
}

/// The hash of the wide circuit (`crc32c.sv`): CRC-32C of the key, filled up with zeros to whole
/// words, with the length in the initial value.
fn crc32c(key: &[u8]) -> [u16; 2] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = 0xffff_ff00 | u32::from(!(key.len() as u8));
    let padding = key.len().next_multiple_of(8) - key.len();
    for &byte in key.iter().chain(&[0; 8][..padding]) {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
        }
    }
    [crc as u16, (crc >> 16) as u16]
}
