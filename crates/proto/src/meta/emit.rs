//! The parts of a meta command's reply: a code, the requested flags in the order of the request,
//! and a line end.

use super::{Flags, base64};
use crate::outcome::room_for;

/// Appends the two-letter code of the reply.
#[inline]
pub fn code(out: &mut Vec<u8>, code: &'static str) {
    debug_assert_eq!(code.len(), 2);
    out.extend_from_slice(code.as_bytes());
}

/// Appends `VA <bytes>`. The flags, a line end, a value of `bytes` bytes and another line end must
/// follow. Reserves room for all of that, including a key of `key_bytes` bytes among
/// the flags.
#[inline]
pub fn value_head(out: &mut Vec<u8>, flags: Flags<'_>, key_bytes: usize, bytes: usize) {
    /// The longest numbers of `s`, `t`, `c`, `f`, `l` and `h`, the flags without numbers, and two
    /// line ends.
    const FIXED_BYTES: usize = 3 + 20 + 6 * 22 + 6 + 4;
    out.reserve(FIXED_BYTES + flags.text.len() + key_bytes * 4 / 3 + 8 + room_for(bytes));
    out.extend_from_slice(b"VA ");
    digits(out, bytes as u64);
}

/// Appends a flag and a number.
#[inline]
pub fn number(out: &mut Vec<u8>, flag: u8, number: u64) {
    out.extend_from_slice(&[b' ', flag]);
    digits(out, number);
}

/// Appends `t` and the remaining time, or -1 for an item that does not expire.
#[inline]
pub fn ttl(out: &mut Vec<u8>, remaining: Option<u64>) {
    match remaining {
        None => out.extend_from_slice(b" t-1"),
        Some(remaining) => number(out, b't', remaining),
    }
}

/// Appends a flag with its token from the request.
#[inline]
pub fn echo(out: &mut Vec<u8>, flag: u8, token: &[u8]) {
    out.extend_from_slice(&[b' ', flag]);
    out.extend_from_slice(token);
}

/// Appends `k` and the key. A binary key is in base64 and followed by `b`.
#[inline]
pub fn key(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    out.extend_from_slice(b" k");
    if is_binary {
        base64::encode(key, out);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
}

/// Appends opaque and key, if they were requested, and the line end. A reply without an item
/// repeats nothing else.
pub fn repeat(out: &mut Vec<u8>, flags: Flags<'_>, key_bytes: &[u8]) {
    for (flag, token) in flags.iter() {
        match flag {
            b'O' => echo(out, flag, token),
            b'k' => key(out, key_bytes, flags.base64_key),
            _ => {}
        }
    }
    line_end(out);
}

/// Appends a line end.
#[inline]
pub fn line_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn digits(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Flags<'_> {
        Flags {
            text: text.as_bytes(),
            base64_key: text.contains('b'),
        }
    }

    #[test]
    fn replies() {
        let mut out = Vec::new();
        value_head(&mut out, flags("v t c k Oabc"), 3, 5);
        let capacity = out.capacity();
        ttl(&mut out, None);
        ttl(&mut out, Some(u64::MAX));
        number(&mut out, b'c', u64::MAX);
        key(&mut out, b"foo", true);
        echo(&mut out, b'O', b"abc");
        line_end(&mut out);
        out.extend_from_slice(b"value\r\n");
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            "VA 5 t-1 t18446744073709551615 c18446744073709551615 kZm9v b Oabc\r\nvalue\r\n"
        );
        assert_eq!(out.capacity(), capacity, "one allocation is enough");
    }

    #[test]
    fn what_is_repeated() {
        for (text, expected) in [
            ("v", "\r\n"),
            ("k q O1", " kfoo O1\r\n"),
            ("O1 b k", " O1 kZm9v b\r\n"),
        ] {
            let mut out = Vec::new();
            repeat(&mut out, flags(text), b"foo");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
