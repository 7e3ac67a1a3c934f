//! What every datagram begins with.
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
//! A reply repeats sequence and timestamp and leaves out client and token. Its `directory` is the server's own version.

use super::{MAGIC, VERSION, u32_at, u64_at};

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// As many requests as `count` says, and then padding; answered by as many replies.
    Requests = 0x01,
    /// The question for the directory, and padding; answered by the directory, if the question is as long.
    Directory = 0x02,
    /// A fragment of a request; answered by [`Kind::Progress`] if `count` is not zero, and by the reply when the request is complete.
    Fragment = 0x03,
    /// Replies to requests, in their order, and then padding.
    Replies = 0x81,
    /// The directory.
    DirectoryReply = 0x82,
    /// A fragment of a reply.
    FragmentReply = 0x83,
    /// How much of a request in fragments has arrived: its first byte that has not, in four bytes.
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

/// The beginning of a datagram from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// What follows.
    pub kind: Kind,
    /// How many requests follow, or, of a fragment, whether an answer is wanted.
    pub count: u8,
    /// Version of the directory by which the client chose this port; zero if it has none.
    pub directory: u32,
    /// Chosen by the client and repeated by the reply.
    pub sequence: u32,
    /// The client's clock, in whatever unit; repeated by the reply.
    pub timestamp: u32,
    /// The client, by a number that it drew at random. Mutations are counted by it.
    pub client: u64,
    /// What the directory gave the client to show that it owns its address; zero if it has none.
    pub token: u64,
}

impl RequestHeader {
    /// Bytes of it.
    pub const BYTES: usize = 32;
    /// Where its bytes have what differs between the datagrams of a train.
    const COUNT_AT: usize = 3;
    const SEQUENCE_AT: usize = 8;

    /// Reads it from the front of a datagram; none if this is no datagram of a client's in this version.
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

    /// Its bytes.
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

    /// Makes the bytes of a header those of another datagram's of the same train.
    #[inline]
    pub fn renumber(bytes: &mut [u8; Self::BYTES], count: u8, sequence: u32) {
        bytes[Self::COUNT_AT] = count;
        bytes[Self::SEQUENCE_AT..][..4].copy_from_slice(&sequence.to_le_bytes());
    }
}

/// The beginning of a datagram from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// What follows.
    pub kind: Kind,
    /// How many replies follow.
    pub count: u8,
    /// Version of the server's directory.
    pub directory: u32,
    /// As in the request.
    pub sequence: u32,
    /// As in the request.
    pub timestamp: u32,
}

impl ReplyHeader {
    /// Bytes of it.
    pub const BYTES: usize = 16;

    /// What answers a request, in a server whose directory has this version.
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

    /// Reads it from the front of a datagram; none if this is no datagram of a server's in this version.
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

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        self.write(&mut bytes);
        bytes
    }

    /// Writes it to where it is to be, in whole words: bytes that are put together elsewhere would have to be waited for when they are copied.
    #[inline(always)]
    pub fn write(&self, out: &mut [u8; Self::BYTES]) {
        let kinds = u32::from_le_bytes([MAGIC, VERSION, self.kind as u8, self.count]);
        let first = u64::from(kinds) | u64::from(self.directory) << 32;
        let second = u64::from(self.sequence) | u64::from(self.timestamp) << 32;
        out[..8].copy_from_slice(&first.to_le_bytes());
        out[8..].copy_from_slice(&second.to_le_bytes());
    }
}
