//! `SCAN` and `KEYS`: which keys a client wants to be shown.

use super::call::Call;
use super::lines;
use super::names::upper;
use super::words::Words;
use crate::control::{Control, Scan};
use crate::integer;
use crate::text::Step;
use glimmer_base::limits::RESP_PATTERN_BYTES_MAX;

/// Keys that are looked at for a `SCAN` without `COUNT`, as in Redis.
const COUNT_DEFAULT: u32 = 10;

/// `KEYS pattern`.
pub(super) fn keys<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let scan = Scan {
        pattern: call.arguments[1],
        page: None,
    };
    show(call, scan)
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub(super) fn scan<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let Some(cursor) = cursor(call.arguments[1]) else {
        return call.refuse(lines::BAD_CURSOR);
    };
    let (mut pattern, mut count, mut shows_strings) = (&b"*"[..], COUNT_DEFAULT, true);
    let mut options = call.arguments[2..].iter();
    while let Some(option) = options.next() {
        let mut buffer = [0; 8];
        let option = upper(option, &mut buffer);
        let Some(value) = options.next() else {
            return call.refuse(lines::SYNTAX);
        };
        match option {
            b"MATCH" => pattern = value,
            b"COUNT" => match integer::signed_64(value) {
                Some(number @ 1..) => count = u32::try_from(number).unwrap_or(u32::MAX),
                Some(_) => return call.refuse(lines::SYNTAX),
                None => return call.refuse(lines::NOT_AN_INTEGER),
            },
            b"TYPE" => shows_strings = value.eq_ignore_ascii_case(b"string"),
            _ => return call.refuse(lines::SYNTAX),
        }
    }
    if !shows_strings {
        // There is no other type.
        return call.answer(Words::NoKeys, &[]);
    }
    let page = Some((cursor, count));
    show(call, Scan { pattern, page })
}

fn show<'a>(call: &Call<'_, 'a>, scan: Scan<'a>) -> Step<'a> {
    match scan.pattern.len() <= RESP_PATTERN_BYTES_MAX {
        true => call.control(Control::Scan(scan), Words::Keys),
        false => call.refuse(lines::LONG_PATTERN),
    }
}

/// A cursor is a number of 64 bits without a sign.
fn cursor(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
