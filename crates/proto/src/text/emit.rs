//! Replies that carry data, appended to the buffer that came with the request.

use super::lines;
use crate::outcome::room_for;
use std::fmt::Display;
use std::io::Write;

/// Appends one of the fixed [`lines`].
#[inline]
pub fn line(out: &mut Vec<u8>, line: &'static str) {
    out.extend_from_slice(line.as_bytes());
}

/// Appends `VALUE <key> <flags> <len>[ <cas>]`. The value of `len` bytes and [`value_tail`] must
/// follow. Reserves room for them as well, so that a short reply costs at most one
/// allocation.
#[inline(always)]
pub fn value_head(out: &mut Vec<u8>, key: &[u8], flags: u32, len: usize, cas: Option<u64>) {
    /// `VALUE `, the three longest numbers, spaces and line ends, and `END`.
    const FIXED_BYTES: usize = 6 + (1 + 10) + (1 + 20) + (1 + 20) + 2 + 2 + lines::END.len();
    out.reserve(FIXED_BYTES + key.len() + room_for(len));
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    if flags == 0 && len < SHORT_VALUE_BYTES && cas.is_none() {
        return short_length(out, b" 0 ", len);
    }
    numbers(out, flags, len, cas);
}

/// The rest of [`value_head`] after the key.
#[inline(never)]
fn numbers(out: &mut Vec<u8>, flags: u32, len: usize, cas: Option<u64>) {
    if flags == 0 {
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        digits(out, flags);
        out.push(b' ');
    }
    digits(out, len);
    if let Some(cas) = cas {
        out.push(b' ');
        digits(out, cas);
    }
    out.extend_from_slice(b"\r\n");
}

/// Values of fewer bytes have a length of three digits at most.
pub(crate) const SHORT_VALUE_BYTES: usize = 1000;

/// Appends three bytes, a length of at most three digits, and a line end: at most eight bytes. They
/// are composed in a register and stored at once.
#[inline(always)]
pub(crate) fn short_length(out: &mut Vec<u8>, before: &[u8; 3], len: usize) {
    debug_assert!(len < SHORT_VALUE_BYTES);
    const LINE_END: u64 = u64::from_le_bytes(*b"\r\n\0\0\0\0\0\0");
    let [first, second, third] = *before;
    let before = u64::from_le_bytes([first, second, third, 0, 0, 0, 0, 0]);
    let digit = |number: u64| u64::from(b'0') + number % 10;
    let len = len as u64;
    let (digits, count) = match len {
        0..10 => (digit(len), 1),
        10..100 => (digit(len / 10) | digit(len) << 8, 2),
        _ => (
            digit(len / 100) | digit(len / 10) << 8 | digit(len) << 16,
            3,
        ),
    };
    let all = before | digits << 24 | LINE_END << (24 + 8 * count);
    out.extend_from_slice(&all.to_le_bytes());
    out.truncate(out.len() - 3 + count);
}

/// Appends the line end after a value, and `END` after the last value of a command.
#[inline]
pub fn value_tail(out: &mut Vec<u8>, last: bool) {
    // Two copies of known lengths are fewer instructions than one of either length.
    match last {
        true => out.extend_from_slice(b"\r\nEND\r\n"),
        false => out.extend_from_slice(b"\r\n"),
    }
}

/// Appends the reply to `incr` and `decr`.
#[inline]
pub fn number(out: &mut Vec<u8>, n: u64) {
    digits(out, n);
    out.extend_from_slice(b"\r\n");
}

/// Appends `STAT <name> <value>`.
pub fn stat(out: &mut Vec<u8>, name: &str, value: &dyn Display) {
    write!(out, "STAT {name} {value}\r\n").expect("a vector takes every byte");
}

#[inline]
fn digits(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        write(&mut out);
        String::from_utf8(out)
            .unwrap()
            .strip_prefix("before ")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn values() {
        assert_eq!(
            emitted(|o| value_head(o, b"k", 0, 5, None)),
            "VALUE k 0 5\r\n"
        );
        for len in (0..=1_100).chain([9_999, 10_000, 1 << 20]) {
            assert_eq!(
                emitted(|o| value_head(o, b"k", 0, len, None)),
                format!("VALUE k 0 {len}\r\n")
            );
        }
        assert_eq!(
            emitted(|o| value_head(o, &[b'x'; 250], u32::MAX, 1 << 20, Some(u64::MAX))),
            format!(
                "VALUE {} 4294967295 1048576 18446744073709551615\r\n",
                "x".repeat(250)
            )
        );
        assert_eq!(emitted(|o| value_tail(o, false)), "\r\n");
        assert_eq!(emitted(|o| value_tail(o, true)), "\r\nEND\r\n");
    }

    #[test]
    fn a_whole_value_needs_no_further_room() {
        let mut out = Vec::new();
        value_head(&mut out, b"key", u32::MAX, 1000, Some(u64::MAX));
        let capacity = out.capacity();
        out.extend_from_slice(&[0; 1000]);
        value_tail(&mut out, true);
        assert_eq!(out.capacity(), capacity);
    }

    #[test]
    fn numbers_figures_and_lines() {
        assert_eq!(emitted(|o| number(o, 0)), "0\r\n");
        assert_eq!(emitted(|o| number(o, u64::MAX)), "18446744073709551615\r\n");
        assert_eq!(emitted(|o| stat(o, "pid", &7)), "STAT pid 7\r\n");
        assert_eq!(
            emitted(|o| stat(o, "version", &"1.6")),
            "STAT version 1.6\r\n"
        );
        assert_eq!(emitted(|o| line(o, lines::STORED)), "STORED\r\n");
    }
}
