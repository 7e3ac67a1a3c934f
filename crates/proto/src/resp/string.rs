//! Commands on strings that are less frequent than `GET` and `SET`.

use super::call::Call;
use super::form::Shows;
use super::lines;
use super::names::upper;
use super::scale::{BadLifetime, Scale};
use super::words::Words;
use crate::request::{ExpireWhen, Lifetime};
use crate::text::Step;
use crate::{Verb, integer};

/// `EXPIRE key number [NX | XX] [GT | LT]` and its relatives.
pub(super) fn expire<'a>(
    call: &Call<'_, 'a>,
    name: &'static str,
    unit_ms: i64,
    is_absolute: bool,
) -> Step<'a> {
    let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
    for option in &call.arguments[3..] {
        let mut buffer = [0; 8];
        match upper(option, &mut buffer) {
            b"NX" => nx = true,
            b"XX" => xx = true,
            b"GT" => gt = true,
            b"LT" => lt = true,
            _ => return call.answer(Words::UnsupportedOption, option),
        }
    }
    let when = match (nx, xx, gt, lt) {
        (true, ..) if xx || gt || lt => return call.refuse(lines::EXPIRE_NX),
        (_, _, true, true) => return call.refuse(lines::EXPIRE_GT_LT),
        (true, ..) => ExpireWhen::Unlimited,
        // An item that stays for ever has the latest time, so nothing is later.
        (_, _, true, _) => ExpireWhen::Later,
        (_, true, _, true) => ExpireWhen::LimitedAndEarlier,
        (_, _, _, true) => ExpireWhen::Earlier,
        (_, true, ..) => ExpireWhen::Limited,
        _ => ExpireWhen::Always,
    };
    let scale = Scale {
        unit_ms,
        is_absolute,
    };
    match scale.lifetime(call.arguments[2]) {
        Ok(lifetime) => call.request(Verb::Expire { lifetime, when }, Shows::Flag),
        Err(BadLifetime::NotAnInteger) => call.refuse(lines::NOT_AN_INTEGER),
        Err(BadLifetime::OutOfRange) => call.answer(Words::BadLifetime(name), &[]),
    }
}

/// `GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]`. As in Redis, `PERSIST` may be repeated.
pub(super) fn get_and_expire<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut buffer = [0; 8];
    let persists = |option: &&[u8]| option.eq_ignore_ascii_case(b"PERSIST");
    let lifetime = match call.arguments[2..] {
        [] => return call.request(Verb::Get, Shows::Value),
        ref options if options.iter().all(persists) && call.has_all() => Lifetime::Unlimited,
        [option, number] => {
            let Some(scale) = Scale::of(upper(option, &mut buffer)) else {
                return call.refuse(lines::SYNTAX);
            };
            match scale.positive(number) {
                Ok(lifetime) => lifetime,
                Err(BadLifetime::NotAnInteger) => return call.refuse(lines::NOT_AN_INTEGER),
                Err(BadLifetime::OutOfRange) => {
                    return call.answer(Words::BadLifetime("getex"), &[]);
                }
            }
        }
        _ => return call.refuse(lines::SYNTAX),
    };
    call.request(Verb::GetAndExpire { lifetime }, Shows::Value)
}

/// `APPEND key value`.
pub(super) fn append<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let value = call.arguments[2];
    match call.fits(call.arguments[1], value) {
        true => call.request(Verb::Append { value }, Shows::Length),
        false => call.refuse(lines::TOO_LARGE),
    }
}

/// `GETRANGE key first last`.
pub(super) fn range<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let number = |nth: usize| integer::signed_64(call.arguments[nth]);
    let (Some(from), Some(to)) = (number(2), number(3)) else {
        return call.refuse(lines::NOT_AN_INTEGER);
    };
    // No value is as long as 31 bits can say.
    let position = |number: i64| number.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let (from, to) = match to < from && from < 0 {
        // Nothing, also where both positions are before the value's beginning and would be moved
        // to its first byte.
        true => (1, 0),
        false => (position(from), position(to)),
    };
    call.request(Verb::Get, Shows::Range { from, to })
}

/// `SETRANGE key position value`.
pub(super) fn overlay<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let value = call.arguments[3];
    let Some(from) = integer::signed_64(call.arguments[2]) else {
        return call.refuse(lines::NOT_AN_INTEGER);
    };
    if from < 0 {
        return call.refuse(lines::BAD_OFFSET);
    }
    let value_bytes_max = call.limits.value_bytes_max(call.arguments[1].len(), 0);
    let end = (from as u64).saturating_add(value.len() as u64);
    if end > value_bytes_max as u64 && !value.is_empty() {
        return call.refuse(lines::TOO_LARGE);
    }
    let from = from as u32;
    call.request(Verb::Overlay { from, value }, Shows::Length)
}

/// `INCRBYFLOAT key number`.
pub(super) fn add_decimal<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let number = call.arguments[2];
    match crate::decimal::Decimal::read(number) {
        Some(_) => call.request(Verb::AddDecimal { number }, Shows::Decimal),
        None => call.refuse(lines::NOT_A_DECIMAL),
    }
}

/// `OBJECT subcommand key`.
pub(super) fn object<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut buffer = [0; 8];
    let subcommand = upper(call.arguments[1], &mut buffer);
    let shows = match (subcommand, call.count) {
        (b"ENCODING", 3) => Shows::Encoding,
        (b"REFCOUNT", 3) => Shows::References,
        (b"IDLETIME" | b"FREQ", 3) => return call.refuse(lines::NOT_KEPT),
        (b"ENCODING", _) => return call.answer(Words::WrongArity("object|encoding"), &[]),
        (b"IDLETIME", _) => return call.answer(Words::WrongArity("object|idletime"), &[]),
        (b"FREQ", _) => return call.answer(Words::WrongArity("object|freq"), &[]),
        (b"REFCOUNT", _) => return call.answer(Words::WrongArity("object|refcount"), &[]),
        _ => return call.other_subcommand("OBJECT"),
    };
    call.request_for(call.arguments[2], Verb::Get, shows)
}

/// `MEMORY USAGE key [SAMPLES count]`. A string has no parts of which samples would be taken.
pub(super) fn memory<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut buffer = [0; 8];
    let subcommand = upper(call.arguments[1], &mut buffer);
    match (subcommand, &call.arguments[2..]) {
        (b"USAGE", []) => call.answer(Words::WrongArity("memory|usage"), &[]),
        (b"USAGE", [key]) => call.request_for(key, Verb::Look, Shows::HeapBytes),
        (b"USAGE", [key, option, count]) if option.eq_ignore_ascii_case(b"SAMPLES") => {
            match integer::signed_64(count) {
                Some(0..) => call.request_for(key, Verb::Look, Shows::HeapBytes),
                Some(_) => call.refuse(lines::SYNTAX),
                None => call.refuse(lines::NOT_AN_INTEGER),
            }
        }
        (b"USAGE", _) => call.refuse(lines::SYNTAX),
        _ => call.other_subcommand("MEMORY"),
    }
}
