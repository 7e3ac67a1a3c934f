//! What a request costs, by the size of its value.

use crate::{SizeClass, Smoothed};

/// Bytes of a value in one network packet.
pub const PACKET_BYTES: u32 = 1400;

/// Bytes that cost as much as everything about a request that does not depend on its size.
const CONSTANT_BYTES: f64 = 1000.0;

/// How the cost of a request follows from the size of its value (Minos, §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// The packets of [`PACKET_BYTES`] that the value takes: those of the reply to a read, or of
    /// the request that writes.
    #[default]
    Packets,
    /// The bytes of the value.
    Bytes,
    /// The bytes and a constant.
    ConstantAndBytes,
}

impl Cost {
    /// The cost of a request for a value of this many bytes, in units of its own.
    pub fn of(self, bytes: f64) -> f64 {
        match self {
            Cost::Packets => (bytes / f64::from(PACKET_BYTES)).ceil().max(1.0),
            Cost::Bytes => bytes.max(1.0),
            Cost::ConstantAndBytes => CONSTANT_BYTES + bytes,
        }
    }

    /// The cost of all requests of a class together.
    pub fn of_class(self, histogram: &Smoothed, class: SizeClass) -> f64 {
        let mean = histogram.bytes_mean(class);
        mean.map_or(0.0, |mean| histogram.requests(class) * self.of(mean))
    }
}
