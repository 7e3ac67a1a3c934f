//! `SET`, its options and its relatives.

use super::call::Call;
use super::form::Shows;
use super::lines;
use super::names::upper;
use super::scale::{BadLifetime, Scale};
use super::words::Words;
use crate::Verb;
use crate::request::{Condition, Lifetime, Write};
use crate::text::Step;
use glimmer_base::limits::DRAFT_BYTES_MIN;

/// `SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`.
pub(super) fn set<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let value = call.arguments[2];
    if value.len() >= DRAFT_BYTES_MIN && compares(call.arguments) {
        return call.refuse(lines::TOO_LARGE_TO_COMPARE);
    }
    let mut write = Write::of(value);
    let mut scaled = None;
    let mut options = call.arguments[3..].iter();
    while let Some(option) = options.next() {
        let mut buffer = [0; 8];
        let has_lifetime = scaled.is_some() || write.lifetime != Lifetime::Unlimited;
        let has_other = |allowed| ![Condition::Always, allowed].contains(&write.condition);
        match upper(option, &mut buffer) {
            b"NX" if !has_other(Condition::Absent) => write.condition = Condition::Absent,
            b"XX" if !has_other(Condition::Present) => write.condition = Condition::Present,
            b"IFEQ" if write.condition == Condition::Always => {
                let Some(expected) = options.next() else {
                    return call.refuse(lines::SYNTAX);
                };
                if !equal(call, &mut write, value, expected) {
                    return call.refuse(lines::SYNTAX);
                }
            }
            b"GET" => write.shows_old = true,
            b"KEEPTTL" if scaled.is_none() => write.lifetime = Lifetime::Kept,
            option => match (Scale::of(option), options.next()) {
                (Some(scale), Some(number)) if !has_lifetime => scaled = Some((scale, *number)),
                _ => return call.refuse(lines::SYNTAX),
            },
        }
    }
    if let Some((scale, number)) = scaled {
        match scale.positive(number) {
            Ok(lifetime) => write.lifetime = lifetime,
            Err(BadLifetime::NotAnInteger) => return call.refuse(lines::NOT_AN_INTEGER),
            Err(BadLifetime::OutOfRange) => return call.answer(Words::BadLifetime("set"), &[]),
        }
    }
    let shows = match write.shows_old {
        true => Shows::Value,
        false => Shows::Status,
    };
    store(call, call.arguments[1], write, shows)
}

/// `SETEX key s value` and `PSETEX key ms value`.
pub(super) fn with_lifetime<'a>(call: &Call<'_, 'a>, name: &'static str, unit_ms: i64) -> Step<'a> {
    let scale = Scale {
        unit_ms,
        is_absolute: false,
    };
    let lifetime = match scale.positive(call.arguments[2]) {
        Ok(lifetime) => lifetime,
        Err(BadLifetime::NotAnInteger) => return call.refuse(lines::NOT_AN_INTEGER),
        Err(BadLifetime::OutOfRange) => return call.answer(Words::BadLifetime(name), &[]),
    };
    let write = Write {
        lifetime,
        ..Write::of(call.arguments[3])
    };
    store(call, call.arguments[1], write, Shows::Status)
}

/// `SETNX key value` and `GETSET key value`.
pub(super) fn plain<'a>(call: &Call<'_, 'a>, condition: Condition, shows: Shows) -> Step<'a> {
    let write = Write {
        condition,
        shows_old: shows == Shows::Value,
        ..Write::of(call.arguments[2])
    };
    store(call, call.arguments[1], write, shows)
}

/// Whether a command is a `SET` with `IFEQ`. The parser hands out both values together, and large
/// ones apart from their commands.
#[cold]
pub(super) fn compares(arguments: &[&[u8]]) -> bool {
    let options = arguments.get(3..).unwrap_or_default();
    let is_option = |option: &&[u8]| option.eq_ignore_ascii_case(b"IFEQ");
    arguments[0].eq_ignore_ascii_case(b"SET") && options.iter().any(is_option)
}

/// The lifetime that an option of `SET` and its number name.
pub(super) fn lifetime(option: &[u8], number: &[u8]) -> Option<Lifetime> {
    let mut buffer = [0; 8];
    Scale::of(upper(option, &mut buffer))?.positive(number).ok()
}

/// Has a write of `value`, an argument of the command, depend on the item's value, which is to be
/// `expected`, a later one of its arguments. Says whether it can: few bytes lie between the two,
/// unless a client sends options that mean nothing.
#[must_use]
pub(super) fn equal<'a>(
    call: &Call<'_, 'a>,
    write: &mut Write<'a>,
    value: &[u8],
    expected: &[u8],
) -> bool {
    let at = |part: &[u8]| part.as_ptr().addr() - call.whole.as_ptr().addr();
    let (begin, from) = (at(value), at(expected));
    let Ok(gap) = u16::try_from(from - begin - value.len()) else {
        return false;
    };
    write.bytes = &call.whole[begin..from + expected.len()];
    write.condition = Condition::Equal;
    (write.gap, write.value_bytes_or_flags) = (gap, value.len() as u32);
    true
}

/// A write of a value that an item can have.
pub(super) fn store<'a>(
    call: &Call<'_, 'a>,
    key: &'a [u8],
    write: Write<'a>,
    shows: Shows,
) -> Step<'a> {
    match call.fits(key, write.value()) {
        true => call.request_for(key, Verb::Write(write), shows),
        false => call.refuse(lines::TOO_LARGE),
    }
}
