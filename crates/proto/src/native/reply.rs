//! The reply to one request.
//!
//! ```text
//!      0       1       2       3       4               8
//!     +-------+-------+-------+-------+---------------+
//!     |status | shape |   0   |   0   |   value_len   |
//!     +-------+-------+-------+-------+---------------+
//!   8 | flags, if shape has bit 0 (4) | CAS unique, bit 1 (8) | number, bit 2 (8) | value |
//!     +-------------------------------+-----------------------+-------------------+-------+
//! ```
//!
//! Key, opcode and keyhash are not repeated: the client finds them by the sequence number. Client
//! flags of zero are omitted.

use super::fragment::{DATA_BYTES, WINDOW};
use super::{Wanted, u32_at, u64_at};

/// Length in bytes of a reply without fields and value.
pub const RECORD_BYTES: usize = 8;
/// Length in bytes of all fields.
pub const FIELDS_BYTES_MAX: usize = 20;

const FLAGS: u8 = 1;
const CAS: u8 = 2;
const NUMBER: u8 = 4;

/// The status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// `GET`: the reply has the item.
    Found = 0x01,
    /// There is no item.
    NotFound = 0x02,
    /// Stored.
    Stored = 0x03,
    /// `ADD`: there is an item. `CAS`: the item has a different CAS unique.
    Exists = 0x04,
    /// Removed.
    Deleted = 0x05,
    /// The item has its new expiry time.
    Touched = 0x06,
    /// `INCREMENT`, `DECREMENT`: the reply has the new number.
    Counted = 0x07,
    /// `NOOP`: the server is there.
    Alive = 0x08,
    /// The value to be incremented or decremented is not a number.
    NotANumber = 0x10,
    /// The server has no memory for the item.
    OutOfMemory = 0x11,
    /// The item is larger than the limit.
    TooLarge = 0x12,
    /// The request is malformed, and the rest of the datagram was not read.
    Malformed = 0x20,
    /// The keyhash does not belong to the key, or another core owns the key: the client has a wrong
    /// directory.
    WrongPartition = 0x21,
    /// The directory has changed since the version named in the request.
    NewDirectory = 0x22,
    /// A reader was disturbed by too many writers. Ask the core that owns the partition.
    AskOwner = 0x23,
    /// The client must first validate its address, with the token from the directory.
    NoToken = 0x24,
    /// The server cannot accept the request now.
    Overloaded = 0x25,
    /// The reply did not fit beside the others in its datagram. Send the request alone. It may have
    /// been executed.
    AskAlone = 0x26,
    /// Not executed, because a newer mutation of the key by this client has been executed.
    Superseded = 0x27,
    /// The mutation is older than those the server remembers, or its number was used for a
    /// different mutation. It may have been executed.
    Forgotten = 0x28,
    /// Not executed, because the server has no room to remember another client's mutations.
    TooManyWriters = 0x29,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 21] = [
        Status::Found,
        Status::NotFound,
        Status::Stored,
        Status::Exists,
        Status::Deleted,
        Status::Touched,
        Status::Counted,
        Status::Alive,
        Status::NotANumber,
        Status::OutOfMemory,
        Status::TooLarge,
        Status::Malformed,
        Status::WrongPartition,
        Status::NewDirectory,
        Status::AskOwner,
        Status::NoToken,
        Status::Overloaded,
        Status::AskAlone,
        Status::Superseded,
        Status::Forgotten,
        Status::TooManyWriters,
    ];

    /// Decodes a status.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Status> {
        Some(match byte {
            0x01 => Status::Found,
            0x02 => Status::NotFound,
            0x03 => Status::Stored,
            0x04 => Status::Exists,
            0x05 => Status::Deleted,
            0x06 => Status::Touched,
            0x07 => Status::Counted,
            0x08 => Status::Alive,
            0x10 => Status::NotANumber,
            0x11 => Status::OutOfMemory,
            0x12 => Status::TooLarge,
            0x20 => Status::Malformed,
            0x21 => Status::WrongPartition,
            0x22 => Status::NewDirectory,
            0x23 => Status::AskOwner,
            0x24 => Status::NoToken,
            0x25 => Status::Overloaded,
            0x26 => Status::AskAlone,
            0x27 => Status::Superseded,
            0x28 => Status::Forgotten,
            0x29 => Status::TooManyWriters,
            _ => return None,
        })
    }

    /// Whether the request was certainly executed. After any other status, the same bytes may be
    /// sent again.
    pub fn is_executed(self) -> bool {
        (self as u8) < Status::Malformed as u8
    }
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The status of the request.
    pub status: Status,
    /// The item's 32-bit flags; zero if they are not shown.
    pub flags: u32,
    /// The item's CAS unique, if it was requested.
    pub cas: Option<u64>,
    /// The new number after an increment or decrement.
    pub number: Option<u64>,
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Reply<'a> {
    /// A reply that consists of a status.
    pub fn bare(status: Status) -> Reply<'a> {
        Reply {
            status,
            flags: 0,
            cas: None,
            number: None,
            value: &[],
        }
    }

    /// Parses the reply at the front of `bytes`. Also returns its length. `None` if it is malformed
    /// or truncated.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<(Reply<'a>, usize)> {
        let head: &[u8; RECORD_BYTES] = bytes.first_chunk()?;
        let status = Status::from_byte(head[0])?;
        let shape = head[1];
        if shape & !(FLAGS | CAS | NUMBER) != 0 || head[2] != 0 || head[3] != 0 {
            return None;
        }
        let mut at = RECORD_BYTES;
        let mut reply = Reply::bare(status);
        if shape & FLAGS != 0 {
            reply.flags = u32_at(bytes, at)?;
            at += 4;
        }
        if shape & CAS != 0 {
            reply.cas = Some(u64_at(bytes, at)?);
            at += 8;
        }
        if shape & NUMBER != 0 {
            reply.number = Some(u64_at(bytes, at)?);
            at += 8;
        }
        let end = at.checked_add(u32_at(head, 4)? as usize)?;
        reply.value = bytes.get(at..end)?;
        Some((reply, end))
    }

    /// Appends the reply.
    pub fn write(&self, out: &mut Vec<u8>) {
        head(
            out,
            self.status,
            self.flags,
            self.cas,
            self.number,
            self.value.len(),
        );
        out.extend_from_slice(self.value);
    }
}

/// Appends everything but the value. A value of `value_bytes` bytes must follow.
#[inline]
fn head(
    out: &mut Vec<u8>,
    status: Status,
    flags: u32,
    cas: Option<u64>,
    number: Option<u64>,
    value_bytes: usize,
) {
    if flags == 0 && cas.is_none() && number.is_none() {
        return out.extend_from_slice(&plain(status, value_bytes));
    }
    let mut bytes = [0; RECORD_BYTES + FIELDS_BYTES_MAX];
    let (mut at, mut shape) = (RECORD_BYTES, 0);
    if flags != 0 {
        shape |= FLAGS;
        bytes[at..at + 4].copy_from_slice(&flags.to_le_bytes());
        at += 4;
    }
    if let Some(cas) = cas {
        shape |= CAS;
        bytes[at..at + 8].copy_from_slice(&cas.to_le_bytes());
        at += 8;
    }
    if let Some(number) = number {
        shape |= NUMBER;
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        at += 8;
    }
    bytes[0] = status as u8;
    bytes[1] = shape;
    // The item limit (`limits::ITEM_BYTES_MAX`) is below the range of four bytes.
    bytes[4..8].copy_from_slice(&(value_bytes as u32).to_le_bytes());
    // A copy of constant length needs no call. The excess is cut off afterwards.
    let end = out.len() + at;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Length in bytes of a retrieved item's reply without its value.
#[inline]
pub fn found_head_bytes(flags: u32, cas: Option<u64>) -> usize {
    let flags_bytes = if flags == 0 { 0 } else { 4 };
    let cas_bytes = if cas.is_none() { 0 } else { 8 };
    RECORD_BYTES + flags_bytes + cas_bytes
}

/// The first byte of a [`Long`]. No status has this value.
const LONG: u8 = 0xFF;

/// What the engine writes instead of a reply that is longer than a datagram. It does not leave the
/// server, which makes fragments of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long<'a> {
    /// Length of the whole reply in bytes.
    pub message_bytes: u32,
    /// The item's CAS unique, whether or not the reply shows it. It identifies the value.
    pub unique: u64,
    /// The requested part.
    pub part: &'a [u8],
}

impl<'a> Long<'a> {
    /// Bytes before the part.
    pub const HEAD_BYTES: usize = 16;

    /// Parses it. `None` for an ordinary reply.
    #[inline(always)]
    pub fn read(reply: &'a [u8]) -> Option<Long<'a>> {
        if reply.first() != Some(&LONG) {
            return None;
        }
        let (head, part) = reply.split_first_chunk::<{ Long::HEAD_BYTES }>()?;
        Some(Long {
            message_bytes: u32_at(head, 4)?,
            unique: u64_at(head, 8)?,
            part,
        })
    }

    /// Appends the bytes before the part.
    pub fn write_head(out: &mut Vec<u8>, message_bytes: usize, unique: u64) {
        out.extend_from_slice(&[LONG, 0, 0, 0]);
        out.extend_from_slice(&(message_bytes as u32).to_le_bytes());
        out.extend_from_slice(&unique.to_le_bytes());
    }

    /// The range of the requested bytes in the reply.
    pub fn range(wanted: Wanted, message_bytes: usize) -> (usize, usize) {
        match wanted {
            Wanted::Nothing => (0, 0),
            Wanted::All => (0, message_bytes),
            Wanted::Window(offset) => {
                let offset = offset as usize;
                let first = offset - offset % DATA_BYTES;
                let first = if first < message_bytes { first } else { 0 };
                (first, message_bytes.min(first + WINDOW * DATA_BYTES))
            }
        }
    }
}

/// Appends the head of a retrieved item. Its value of `value_bytes` bytes must follow.
#[inline]
pub fn found_head(out: &mut Vec<u8>, flags: u32, cas: Option<u64>, value_bytes: usize) {
    out.reserve(RECORD_BYTES + FIELDS_BYTES_MAX + value_bytes);
    head_of_found(out, flags, cas, value_bytes);
}

/// Like [`found_head`], for a caller that has reserved space and appends only a part of the value.
#[inline]
pub fn head_of_found(out: &mut Vec<u8>, flags: u32, cas: Option<u64>, value_bytes: usize) {
    head(out, Status::Found, flags, cas, None, value_bytes);
}

/// The head of a reply with a status and perhaps a value, but no fields.
#[inline(always)]
fn plain(status: Status, value_bytes: usize) -> [u8; RECORD_BYTES] {
    (u64::from(status as u8) | (value_bytes as u64) << 32).to_le_bytes()
}

/// An encoded reply that consists of a status.
#[inline]
pub fn status_bytes(status: Status) -> [u8; RECORD_BYTES] {
    plain(status, 0)
}

/// Appends a reply that consists of a status.
#[inline]
pub fn status(out: &mut Vec<u8>, status: Status) {
    out.extend_from_slice(&status_bytes(status));
}

/// Appends that a value was stored, with its CAS unique if it was requested.
#[inline]
pub fn stored(out: &mut Vec<u8>, cas: Option<u64>) {
    head(out, Status::Stored, 0, cas, None, 0);
}

/// Appends the new number, with its CAS unique if it was requested.
#[inline]
pub fn counted(out: &mut Vec<u8>, number: u64, cas: Option<u64>) {
    head(out, Status::Counted, 0, cas, Some(number), 0);
}

const _: () = assert!(
    RECORD_BYTES + FIELDS_BYTES_MAX < DATA_BYTES,
    "the head of a long reply is in its first fragment"
);
