//! The header of every datagram.
//!
//! ```text
//!        0       1       2       3       4               8              12              16
//!       +-------+-------+-------+-------+---------------+---------------+---------------+
//!       | magic |version| kind  | count |   directory   |   sequence    |   timestamp   |
//!       +-------+-------+-------+-------+---------------+---------------+---------------+
//!    16 |            client             |             token             | requests only
//!       +-------------------------------+-------------------------------+
//! ```
//!
//! A reply repeats sequence and timestamp and has no client and token. Its `directory` is the
//! server's current version.

use super::{MAGIC, VERSION, u32_at, u64_at};

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `count` requests, then padding. Answered by as many replies.
    Requests = 0x01,
    /// A request for the directory, with padding. Answered by the directory if the request is at
    /// least as long.
    Directory = 0x02,
    /// A fragment of a request. Answered by [`Kind::Progress`] if `count` is not zero, and by the
    /// reply once the request is complete.
    Fragment = 0x03,
    /// Replies in the order of the requests, then padding.
    Replies = 0x81,
    /// The directory.
    DirectoryReply = 0x82,
    /// A fragment of a reply.
    FragmentReply = 0x83,
    /// The progress of a fragmented request: the position of the first missing byte, in four bytes.
    Progress = 0x84,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0x01 => Kind::Requests,
            0x02 => Kind::Directory,
            0x03 => Kind::Fragment,
            0x81 => Kind::Replies,
            0x82 => Kind::DirectoryReply,
            0x83 => Kind::FragmentReply,
            0x84 => Kind::Progress,
            _ => return None,
        })
    }

    /// Whether datagrams of this kind go from the client to the server.
    pub fn is_request(self) -> bool {
        (self as u8) < 0x80
    }
}

/// The header of a datagram from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// What the datagram carries.
    pub kind: Kind,
    /// The number of requests. In a fragment: whether an answer is wanted.
    pub count: u8,
    /// Version of the directory from which the client chose this port; zero if it has none.
    pub directory: u32,
    /// Chosen by the client and repeated in the reply.
    pub sequence: u32,
    /// The client's clock, in any unit. Repeated in the reply.
    pub timestamp: u32,
    /// The client's random number. Mutations are numbered per client.
    pub client: u64,
    /// The address validation token from the directory; zero if the client has none.
    pub token: u64,
}

impl RequestHeader {
    /// Length of the header in bytes.
    pub const BYTES: usize = 32;
    /// Position of the count. Within a segment batch, headers differ only in count and sequence.
    const COUNT_AT: usize = 3;
    const SEQUENCE_AT: usize = 8;

    /// Parses the header of a datagram. `None` if the datagram is not a client's datagram of this
    /// version.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<RequestHeader> {
        let head: &[u8; Self::BYTES] = datagram.first_chunk()?;
        let kind = Kind::from_byte(head[2]).filter(|kind| kind.is_request())?;
        if head[0] != MAGIC || head[1] != VERSION {
            return None;
        }
        Some(RequestHeader {
            kind,
            count: head[3],
            directory: u32_at(head, 4)?,
            sequence: u32_at(head, 8)?,
            timestamp: u32_at(head, 12)?,
            client: u64_at(head, 16)?,
            token: u64_at(head, 24)?,
        })
    }

    /// The encoded header.
    #[inline]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&[MAGIC, VERSION, self.kind as u8, self.count]);
        bytes[4..8].copy_from_slice(&self.directory.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.timestamp.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.client.to_le_bytes());
        bytes[24..].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }

    /// Turns an encoded header into that of another datagram in the same segment batch.
    #[inline]
    pub fn renumber(bytes: &mut [u8; Self::BYTES], count: u8, sequence: u32) {
        bytes[Self::COUNT_AT] = count;
        bytes[Self::SEQUENCE_AT..][..4].copy_from_slice(&sequence.to_le_bytes());
    }
}

/// The header of a datagram from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// What the datagram carries.
    pub kind: Kind,
    /// The number of replies.
    pub count: u8,
    /// Version of the server's directory.
    pub directory: u32,
    /// As in the request.
    pub sequence: u32,
    /// As in the request.
    pub timestamp: u32,
}

impl ReplyHeader {
    /// Length of the header in bytes.
    pub const BYTES: usize = 16;

    /// The header of the answer to a request, from a server whose directory has this version.
    #[inline]
    pub fn to(request: &RequestHeader, kind: Kind, count: u8, directory: u32) -> ReplyHeader {
        ReplyHeader {
            kind,
            count,
            directory,
            sequence: request.sequence,
            timestamp: request.timestamp,
        }
    }

    /// Parses the header of a datagram. `None` if the datagram is not a server's datagram of this
    /// version.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<ReplyHeader> {
        let head: &[u8; Self::BYTES] = datagram.first_chunk()?;
        let kind = Kind::from_byte(head[2]).filter(|kind| !kind.is_request())?;
        if head[0] != MAGIC || head[1] != VERSION {
            return None;
        }
        Some(ReplyHeader {
            kind,
            count: head[3],
            directory: u32_at(head, 4)?,
            sequence: u32_at(head, 8)?,
            timestamp: u32_at(head, 12)?,
        })
    }

    /// The encoded header.
    #[inline]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        self.write(&mut bytes);
        bytes
    }

    /// Writes the header in place, in whole words. A header assembled elsewhere from single bytes
    /// would stall the copy (store forwarding).
    #[inline(always)]
    pub fn write(&self, out: &mut [u8; Self::BYTES]) {
        let kinds = u32::from_le_bytes([MAGIC, VERSION, self.kind as u8, self.count]);
        let first = u64::from(kinds) | u64::from(self.directory) << 32;
        let second = u64::from(self.sequence) | u64::from(self.timestamp) << 32;
        out[..8].copy_from_slice(&first.to_le_bytes());
        out[8..].copy_from_slice(&second.to_le_bytes());
    }
}
