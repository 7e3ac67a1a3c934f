//! The most frequent requests in the form in which clients send them: `get` and `gets` with one
//! key, `set` with its value, and `mg`.
//!
//! A caller that parses one request after another tries these functions first. They are inlined, so
//! that the parts of the request stay in registers. [`Parser::next`](super::Parser::next) parses
//! the same requests, and every other line; a fuzz target checks that both agree.

use super::Reply;
use super::line::Limits;
use super::tokens::{self, LINE_END};
use crate::meta::plain as meta;
use crate::{Form, Request, StoreMode, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// The request at the front of `input` and the bytes it uses. `None` for any other line.
#[inline(always)]
pub(super) fn request<'a>(limits: &Limits, input: &'a [u8]) -> Option<(usize, Request<'a>)> {
    if let Some(rest) = input.strip_prefix(b"get ") {
        get("get ", rest)
    } else if let Some(rest) = input.strip_prefix(b"set ") {
        set(limits, rest)
    } else if let Some(rest) = input.strip_prefix(b"mg ") {
        meta::get(rest)
    } else {
        get("gets ", input.strip_prefix(b"gets ")?)
    }
}

/// One key, then the line end. `rest` is the text after the command's name.
#[inline(always)]
fn get<'a>(name: &'static str, rest: &'a [u8]) -> Option<(usize, Request<'a>)> {
    let (key, tail) = key(rest)?;
    if !tail.starts_with(LINE_END) {
        return None;
    }
    let form = Form::Text(Reply {
        cas: name == "gets ",
        last: true,
        quiet: false,
    });
    let request = Request {
        key,
        verb: Verb::Get,
        form,
    };
    Some((name.len() + key.len() + LINE_END.len(), request))
}

/// A key, three numbers of plain digits after single spaces, at most `noreply` after them, and a
/// value that fits and has arrived. `rest` is the text after `set `.
#[inline(always)]
fn set<'a>(limits: &Limits, rest: &'a [u8]) -> Option<(usize, Request<'a>)> {
    let (key, tail) = key(rest)?;
    let (flags, tail) = digits_after_space(tail)?;
    let (exptime, tail) = digits_after_space(tail)?;
    let (value_bytes, tail) = digits_after_space(tail)?;
    let (flags, exptime) = (u32::try_from(flags).ok()?, i32::try_from(exptime).ok()?);
    let value_bytes = value_bytes as usize;
    let (quiet, tail) = match tail.strip_prefix(LINE_END) {
        Some(tail) => (false, tail),
        None => (true, tail.strip_prefix(b" noreply\r\n")?),
    };
    if value_bytes > limits.value_bytes_max(key.len(), flags) {
        return None;
    }
    let (value, tail) = tail.split_at_checked(value_bytes)?;
    let tail = tail.strip_prefix(LINE_END)?;
    let verb = Verb::Store {
        mode: StoreMode::Set,
        flags,
        exptime: exptime.into(),
        value,
    };
    let form = Form::Text(Reply::to_one(quiet));
    let used = "set ".len() + (rest.len() - tail.len());
    Some((used, Request { key, verb, form }))
}

/// A key and what follows it. At most one byte more than a key is searched, so that a long line
/// that arrives byte by byte is not searched again and again.
#[inline(always)]
fn key(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let bytes = tokens::plain_len(&rest[..rest.len().min(KEY_BYTES_MAX + 1)]);
    if bytes == 0 || bytes > KEY_BYTES_MAX {
        return None;
    }
    Some(rest.split_at(bytes))
}

/// One space and one to ten digits: the number, and what follows it.
#[inline(always)]
fn digits_after_space(bytes: &[u8]) -> Option<(u64, &[u8])> {
    const DIGITS_MAX: usize = 10;
    let (b' ', bytes) = bytes.split_first()? else {
        return None;
    };
    let (first, mut rest) = bytes.split_first()?;
    let mut value = digit(*first)?;
    for _ in 0..DIGITS_MAX {
        let (byte, tail) = rest.split_first()?;
        let Some(digit) = digit(*byte) else {
            return Some((value, rest));
        };
        value = value * 10 + digit;
        rest = tail;
    }
    None
}

/// The value of a decimal digit.
#[inline(always)]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}
