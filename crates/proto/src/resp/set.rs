//! `SET`, its options and its relatives.

use super::call::{Call, upper};
use super::form::Shows;
use super::lines;
use super::scale::{BadLifetime, Scale};
use super::words::Words;
use crate::Verb;
use crate::request::{Condition, Lifetime, Write};
use crate::text::Step;

/// `SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`.
pub(super) fn set<'a>(call: &Call<'_, 'a>) -> Step<'a> {
    let mut write = Write {
        value: call.arguments[2],
        condition: Condition::Always,
        lifetime: Lifetime::Unlimited,
        shows_old: false,
    };
    let mut scaled = None;
    let mut options = call.arguments[3..].iter();
    while let Some(option) = options.next() {
        let mut buffer = [0; 8];
        let has_lifetime = scaled.is_some() || write.lifetime != Lifetime::Unlimited;
        match upper(option, &mut buffer) {
            b"NX" if write.condition != Condition::Present => write.condition = Condition::Absent,
            b"XX" if write.condition != Condition::Absent => write.condition = Condition::Present,
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
    store(call, write, shows)
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
        value: call.arguments[3],
        condition: Condition::Always,
        lifetime,
        shows_old: false,
    };
    store(call, write, Shows::Status)
}

/// `SETNX key value` and `GETSET key value`.
pub(super) fn plain<'a>(call: &Call<'_, 'a>, condition: Condition, shows: Shows) -> Step<'a> {
    let write = Write {
        value: call.arguments[2],
        condition,
        lifetime: Lifetime::Unlimited,
        shows_old: shows == Shows::Value,
    };
    store(call, write, shows)
}

fn store<'a>(call: &Call<'_, 'a>, write: Write<'a>, shows: Shows) -> Step<'a> {
    match call.fits(call.arguments[1], write.value) {
        true => call.request(Verb::Write(write), shows),
        false => call.refuse(lines::TOO_LARGE),
    }
}
