//! The native protocol: requests in datagrams that go straight to the core that owns their key
//! (MICA §4.2). `docs/native-protocol.md` is the specification; the files here correspond to its
//! sections.
//!
//! | file | idea |
//! | --- | --- |
//! | [`header`] | the header of every datagram, in both directions |
//! | [`reach`] | how far back a client may still retransmit mutations |
//! | [`request`] | one request: its opcode, its keyhash, its key and value |
//! | [`reply`] | the reply to one request, without what the client knows |
//! | `outcome` | writes outcomes as native replies |
//! | [`fragment`] | messages that are longer than a datagram |
//! | [`directory`] | which port to send a request to |
//!
//! All integers are little-endian. Parsing borrows from the datagram, never allocates, and accepts
//! arbitrary bytes from the network without harm.

pub mod directory;
pub mod fragment;
pub mod header;
mod outcome;
pub mod reach;
pub mod reply;
pub mod request;

pub use directory::Directory;
pub use fragment::Fragment;
pub use header::{Kind, ReplyHeader, RequestHeader};
pub use reach::Reach;
pub use reply::{Reply, Status};
pub use request::{Opcode, Record};

/// The first byte of every datagram.
pub const MAGIC: u8 = 0xB1;
/// The version of the protocol, which is the second byte.
pub const VERSION: u8 = 1;
/// Longest datagram in bytes, including its header. It fits into one Ethernet frame under any
/// encapsulation.
pub const DATAGRAM_BYTES_MAX: usize = 1400;
/// Maximum number of requests in one datagram.
pub const REQUESTS_MAX: usize = 32;

/// How to write the reply to a native request; see [`crate::Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether the reply shows the item's CAS unique.
    pub shows_cas: bool,
    /// How much of the reply to a read to write.
    pub extent: Extent,
}

/// How much of the reply to a read to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Replies of at most this many bytes are written whole. Longer ones are *long* and are written
    /// as [`reply::Long`].
    pub short_bytes_max: u32,
    /// How much of a long reply to write.
    pub long: Wanted,
}

/// How much of a long reply to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Only that it is long.
    Nothing,
    /// One window of fragments, starting with the fragment at this byte, or with the first one if
    /// the reply is shorter.
    Window(u32),
    /// The whole reply.
    All,
}

impl Extent {
    /// Everything; no reply counts as long.
    pub const ALL: Extent = Extent {
        short_bytes_max: u32::MAX,
        long: Wanted::All,
    };
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

const _: () = assert!(
    REQUESTS_MAX <= glimmer_base::limits::BATCH_MAX,
    "the requests of a datagram are executed together"
);
const _: () = assert!(
    request::RECORD_BYTES >= reply::RECORD_BYTES && RequestHeader::BYTES >= ReplyHeader::BYTES,
    "a refusal of every request of a datagram is no longer than the datagram, \
     so that it may go to an unvalidated address"
);
