//! Replies, appended to the buffer that came with the request.

use super::{Header, MAGIC_REPLY};
use crate::outcome::room_for;

/// The two-byte status of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// The command was executed.
    Success = 0x00,
    /// The key has no item.
    KeyNotFound = 0x01,
    /// The key has an item, or its item has a different CAS unique.
    KeyExists = 0x02,
    /// The value is larger than the item limit.
    TooLarge = 0x03,
    /// The packet is malformed.
    InvalidArguments = 0x04,
    /// The condition of an `append` or `prepend` did not hold.
    NotStored = 0x05,
    /// The value to be incremented or decremented is not a number.
    NonNumeric = 0x06,
    /// The client may not do this, or has not authenticated.
    AuthError = 0x20,
    /// Authentication needs one more step.
    AuthContinue = 0x21,
    /// Unknown command.
    UnknownCommand = 0x81,
    /// The server has no memory.
    OutOfMemory = 0x82,
    /// Not by this transport.
    NotSupported = 0x83,
    /// Too often.
    Busy = 0x85,
    /// Not now: the user or the address is over its limit.
    TemporaryFailure = 0x86,
}

impl Status {
    /// memcached's error text, sent as the body of an error reply.
    pub fn text(self) -> &'static str {
        match self {
            Status::Success | Status::AuthContinue => "",
            Status::KeyNotFound => "Not found",
            Status::KeyExists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::InvalidArguments => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::NonNumeric => "Non-numeric server-side value for incr or decr",
            Status::AuthError => "Auth failure.",
            Status::UnknownCommand => "Unknown command",
            Status::OutOfMemory => "Out of memory allocating item",
            Status::NotSupported => "Not available over UDP",
            Status::Busy => "Too many statistics over UDP",
            Status::TemporaryFailure => "Over the limit of this user or address",
        }
    }
}

/// Appends a header. Extras, key and value of the given lengths must follow. Reserves
/// room for them as well, so that a short reply costs at most one allocation.
#[inline]
pub fn head(
    out: &mut Vec<u8>,
    header: Header,
    status: Status,
    (extras, key, value): (usize, usize, usize),
    cas: u64,
) {
    let body = extras + key + value;
    out.reserve(24 + extras + key + room_for(value));
    let mut bytes = [0; 24];
    bytes[0] = MAGIC_REPLY;
    bytes[1] = header.opcode;
    bytes[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    bytes[4] = extras as u8;
    bytes[6..8].copy_from_slice(&(status as u16).to_be_bytes());
    bytes[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    bytes[12..16].copy_from_slice(&header.opaque);
    bytes[16..24].copy_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// Appends the head of a retrieved item, up to its value of `value` bytes. The key is included if
/// it is given.
///
/// Not inlined: the code of a hit emits every protocol, and this head would slow down the others.
#[inline(never)]
pub fn item_head(
    out: &mut Vec<u8>,
    header: Header,
    key: &[u8],
    flags: u32,
    value: usize,
    cas: u64,
) {
    let key = if header.shows_key() { key } else { &[] };
    head(out, header, Status::Success, (4, key.len(), value), cas);
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(key);
}

/// Appends a success without a body.
#[inline]
pub fn success(out: &mut Vec<u8>, header: Header, cas: u64) {
    head(out, header, Status::Success, (0, 0, 0), cas);
}

/// Appends a success with a value.
pub fn success_with(out: &mut Vec<u8>, header: Header, value: &[u8]) {
    head(out, header, Status::Success, (0, 0, value.len()), 0);
    out.extend_from_slice(value);
}

/// Appends the new number after an increment or decrement.
#[inline]
pub fn number(out: &mut Vec<u8>, header: Header, number: u64, cas: u64) {
    head(out, header, Status::Success, (0, 0, 8), cas);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends an error with memcached's error text.
pub fn error(out: &mut Vec<u8>, header: Header, status: Status) {
    let text = status.text().as_bytes();
    head(out, header, status, (0, 0, text.len()), 0);
    out.extend_from_slice(text);
}

/// Appends the reply to a read that found no item: the key if the command shows it, otherwise an
/// error.
#[inline]
pub fn miss(out: &mut Vec<u8>, header: Header, key: &[u8]) {
    if header.shows_key() {
        head(out, header, Status::KeyNotFound, (0, key.len(), 0), 0);
        out.extend_from_slice(key);
    } else {
        error(out, header, Status::KeyNotFound);
    }
}

/// Appends one statistic. An empty name and value end the list.
pub fn stat(out: &mut Vec<u8>, header: Header, name: &[u8], value: &[u8]) {
    head(
        out,
        header,
        Status::Success,
        (0, name.len(), value.len()),
        0,
    );
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::opcode;

    const fn header(opcode: u8) -> Header {
        Header {
            opcode,
            opaque: [0xde, 0xad, 0xbe, 0xef],
        }
    }

    fn emitted(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// The example in the protocol's document: `get Hello` is answered with `World` and flags
    /// 0xdeadbeef.
    #[test]
    fn an_item() {
        let expected = b"\x81\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x09\xde\xad\xbe\xef\
                         \x00\x00\x00\x00\x00\x00\x00\x01\
            \xde\xad\xbe\xefWorld";
        let mut out =
            emitted(|out| item_head(out, header(opcode::GET), b"Hello", 0xdead_beef, 5, 1));
        let capacity = out.capacity();
        out.extend_from_slice(b"World");
        assert_eq!(out, expected);
        assert_eq!(out.capacity(), capacity, "the value has room");
        let keyed = emitted(|out| item_head(out, header(opcode::GETKQ), b"Hello", 0, 5, 1));
        assert_eq!((keyed[3], keyed[11]), (5, 14));
        assert!(keyed.ends_with(b"\0\0\0\0Hello"));
    }

    #[test]
    fn misses_show_the_key_where_hits_do() {
        let plain = emitted(|out| miss(out, header(opcode::GET), b"Hello"));
        assert_eq!((plain[7], &plain[24..]), (1, &b"Not found"[..]));
        let keyed = emitted(|out| miss(out, header(opcode::GATK), b"Hello"));
        assert_eq!((keyed[3], keyed[7], &keyed[24..]), (5, 1, &b"Hello"[..]));
    }

    #[test]
    fn numbers_and_errors() {
        let count = emitted(|out| number(out, header(opcode::INCREMENT), 7, 5));
        assert_eq!(&count[16..], b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x07");
        let error = emitted(|out| error(out, header(0x77), Status::UnknownCommand));
        assert_eq!((error[1], error[6], error[7]), (0x77, 0, 0x81));
        assert_eq!(&error[24..], b"Unknown command");
    }
}
