//! The native protocol: requests in datagrams that go straight to the core that owns their key (MICA §4.2). `docs/native-protocol.md` is the
//! specification; the files here are its sections.
//!
//! | file | idea |
//! | --- | --- |
//! | [`header`] | what every datagram begins with, in both directions |
//! | [`reach`] | how far back a client may yet send a mutation again |
//! | [`request`] | one request: its opcode, its keyhash, its key and value |
//! | [`reply`] | what became of one request, without what the client knows |
//! | `outcome` | outcomes in the words of the native protocol |
//! | [`fragment`] | messages that are longer than a datagram |
//! | [`directory`] | which port to send a request to |
//!
//! Everything is little-endian. Reading borrows from the datagram and never allocates; bytes from the network are taken for anything.

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

/// First byte of every datagram.
pub const MAGIC: u8 = 0xB1;
/// Version of the protocol, the second byte.
pub const VERSION: u8 = 1;
/// Bytes of a datagram at most, header included, so that it crosses an Ethernet in one frame, whatever lies around it.
pub const DATAGRAM_BYTES_MAX: usize = 1400;
/// Requests of one datagram at most.
pub const REQUESTS_MAX: usize = 32;

/// How the answer to a native request is written; see [`crate::Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The reply shows the item's CAS unique.
    pub shows_cas: bool,
    /// How much of the reply to a read is wanted.
    pub extent: Extent,
}

/// How much of the reply to a read is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// A reply of at most this many bytes is written whole. A longer one is *long*, and is written
    /// as [`reply::Long`].
    pub short_bytes_max: u32,
    /// What is wanted of a long one.
    pub long: Wanted,
}

/// What is wanted of a long reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing but that it is long.
    Nothing,
    /// What one window of fragments carries, from the fragment with this byte on; from the first
    /// one on if the reply ends before that byte.
    Window(u32),
    /// All of it.
    All,
}

impl Extent {
    /// Everything, and no reply is long.
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
    "a refusal of every request of a datagram is no longer than the datagram, so that it may go to anybody"
);
