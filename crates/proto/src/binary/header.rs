//! The 24-byte header of every packet.

use super::opcode;

/// The fields of a request's header that its reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The command; see [`opcode`].
    pub opcode: u8,
    /// Four opaque bytes chosen by the client.
    pub opaque: [u8; 4],
}

impl Header {
    /// Whether the usual outcome has no reply; see [`opcode::is_quiet`].
    #[inline]
    pub fn is_quiet(self) -> bool {
        opcode::is_quiet(self.opcode)
    }

    /// Whether the reply repeats the key.
    #[inline]
    pub fn shows_key(self) -> bool {
        opcode::shows_key(self.opcode)
    }
}

/// Length of a header in bytes.
pub(super) const BYTES: usize = 24;

/// A request's header.
#[derive(Clone, Copy)]
pub(super) struct RequestHeader {
    pub header: Header,
    pub key_bytes: usize,
    pub extras_bytes: usize,
    /// Length of extras, key and value together.
    pub body_bytes: usize,
    pub cas: u64,
}

impl RequestHeader {
    #[inline(always)]
    pub fn read(bytes: &[u8; BYTES]) -> RequestHeader {
        let [_, opcode, key_high, key_low, extras, _, _, _, rest @ ..] = *bytes;
        let [b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = rest;
        RequestHeader {
            header: Header {
                opcode,
                opaque: [o0, o1, o2, o3],
            },
            key_bytes: u16::from_be_bytes([key_high, key_low]).into(),
            extras_bytes: extras.into(),
            body_bytes: u32::from_be_bytes([b0, b1, b2, b3]) as usize,
            cas: u64::from_be_bytes(cas),
        }
    }

    /// Length of the value in bytes. The header must be consistent.
    #[inline(always)]
    pub fn value_bytes(&self) -> usize {
        self.body_bytes - self.key_bytes - self.extras_bytes
    }
}
