//! Fragments of messages that are longer than a datagram. A message is one request, or the reply to
//! a request that was alone in its datagram.
//!
//! ```text
//!      0               4               8                              16
//!     +---------------+---------------+-------------------------------+
//!     | message bytes |    offset     |            digest             |  data to the end
//!     +---------------+---------------+-------------------------------+
//! ```
//!
//! A receiver accepts fragments in any order within [`WINDOW`] of the first missing one; others are
//! dropped and sent again. The digest (XXH3 of the whole message, seed 0) shows whether fragments
//! belong to the same message: a value may change between two fragments of it.

use super::{DATAGRAM_BYTES_MAX, u32_at, u64_at};
use glimmer_base::Seed;

/// Bytes between the datagram's header and a fragment's data.
pub const HEAD_BYTES: usize = 16;
/// Bytes of data in a fragment, in both directions. Only the last fragment of a message has fewer.
pub const DATA_BYTES: usize = DATAGRAM_BYTES_MAX - super::RequestHeader::BYTES - HEAD_BYTES;
/// Fragments that are sent before the sender waits for an answer, in both directions.
pub const WINDOW: usize = 32;

/// A fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Length of the whole message in bytes.
    pub message_bytes: u32,
    /// The position of the data in the message.
    pub offset: u32,
    /// Hash of the whole message.
    pub digest: u64,
    /// 1 to [`DATA_BYTES`] bytes.
    pub data: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Parses the content of a datagram after its header. `None` if the fragment lies outside its
    /// message or has the wrong length for its position.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Fragment<'a>> {
        let (head, data) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let fragment = Fragment {
            message_bytes: u32_at(head, 0)?,
            offset: u32_at(head, 4)?,
            digest: u64_at(head, 8)?,
            data,
        };
        let rest = fragment.message_bytes.checked_sub(fragment.offset)? as usize;
        let fits = !data.is_empty() && data.len() == rest.min(DATA_BYTES);
        let is_aligned = (fragment.offset as usize).is_multiple_of(DATA_BYTES);
        (fits && is_aligned).then_some(fragment)
    }

    /// The fragment of a message at `offset`, which is a multiple of [`DATA_BYTES`] inside the
    /// message.
    pub fn of(message: &'a [u8], digest: u64, offset: usize) -> Fragment<'a> {
        Fragment {
            message_bytes: message.len() as u32,
            offset: offset as u32,
            digest,
            data: &message[offset..message.len().min(offset + DATA_BYTES)],
        }
    }

    /// Appends the fragment.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message_bytes.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        out.extend_from_slice(self.data);
    }
}

/// The hash that identifies the fragments of one message.
pub fn digest(message: &[u8]) -> u64 {
    Seed(0).keyhash(message).0
}

/// A message under reassembly. Its memory grows as bytes arrive, so a sender that only claims a
/// length costs nothing.
#[derive(Debug, Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    message_bytes: u32,
    digest: u64,
    /// All bytes before this one have arrived.
    next: usize,
    /// Bitmap of the fragments after `next` that have arrived.
    ahead: u32,
}

/// The effect of a fragment on an [`Assembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It had arrived before, or is too far ahead.
    OutOfOrder,
    /// It belongs to a different message.
    Foreign,
    /// The message is not complete yet.
    More,
    /// The message is complete and its digest is correct.
    Complete,
    /// The message is complete and its digest is wrong. The assembly starts again.
    Corrupt,
}

impl Assembly {
    /// An empty assembly for the message of `fragment`.
    pub fn new(fragment: &Fragment<'_>) -> Assembly {
        Assembly {
            message_bytes: fragment.message_bytes,
            digest: fragment.digest,
            ..Assembly::default()
        }
    }

    /// Adds a fragment.
    pub fn join(&mut self, fragment: &Fragment<'_>) -> Joined {
        if (fragment.message_bytes, fragment.digest) != (self.message_bytes, self.digest) {
            return Joined::Foreign;
        }
        let offset = fragment.offset as usize;
        let ahead = offset
            .checked_sub(self.next)
            .map(|bytes| bytes / DATA_BYTES);
        let Some(ahead) = ahead.filter(|&ahead| ahead < WINDOW && self.ahead & 1 << ahead == 0)
        else {
            return Joined::OutOfOrder;
        };
        let end = offset + fragment.data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(fragment.data);
        self.ahead |= 1 << ahead;
        let here = self.ahead.trailing_ones();
        self.ahead = self.ahead.checked_shr(here).unwrap_or(0);
        self.next = (self.next + here as usize * DATA_BYTES).min(self.message_bytes());
        if self.next < self.message_bytes() {
            Joined::More
        } else if digest(&self.bytes) == self.digest {
            Joined::Complete
        } else {
            (self.next, self.ahead) = (0, 0);
            self.bytes.clear();
            Joined::Corrupt
        }
    }

    /// The position of the first missing byte.
    pub fn next(&self) -> u32 {
        self.next as u32
    }

    /// Length of the whole message in bytes.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes as usize
    }

    /// The bytes that have arrived without a gap.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.next]
    }

    /// The complete message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

const _: () = assert!(
    WINDOW == u32::BITS as usize,
    "a bit for each fragment of a window"
);
