//! Commands that store one large value.

use super::call::is_key;
use super::frame::Arguments;
use super::names::upper;
use super::scale::Scale;
use crate::Announced;
use crate::integer;
use crate::text::Limits;
use glimmer_base::limits::RESP_ARGUMENTS_KEPT_MAX;

/// Arguments at most of a command whose value is announced. All of them are at hand together.
const ARGUMENTS_MAX: u32 = RESP_ARGUMENTS_KEPT_MAX as u32;

/// The next argument of a command of `count` arguments, if it is a large value that is stored under
/// one key. The arguments before it are there.
#[cold]
pub(super) fn next_value<'a>(
    limits: Limits,
    before: &Arguments<'a>,
    count: u32,
    value_at: usize,
    value_bytes: usize,
) -> Option<Announced<'a>> {
    let [name, key, between @ ..] = before.as_slice() else {
        return None;
    };
    let fits = |unit_ms, number| {
        let scale = Scale {
            unit_ms,
            is_absolute: false,
        };
        scale.positive(number).is_ok()
    };
    let value_bytes_max = limits.value_bytes_max(key.len(), 0);
    let lies_within = |from| {
        let from = integer::signed_64(from).and_then(|from| usize::try_from(from).ok());
        from.is_some_and(|from| from.saturating_add(value_bytes) <= value_bytes_max)
    };
    let mut buffer = [0; 8];
    let name = upper(name, &mut buffer);
    let is_stored = match (name, between, count) {
        (b"SET", [], 3..=ARGUMENTS_MAX) | (b"SETNX" | b"GETSET" | b"APPEND", [], 3) => true,
        (b"SETEX", [seconds], 4) => fits(1000, seconds),
        (b"PSETEX", [milliseconds], 4) => fits(1, milliseconds),
        (b"SETRANGE", [from], 4) => lies_within(from),
        _ => false,
    };
    if !is_stored || !is_key(key) || value_bytes > value_bytes_max {
        return None;
    }
    let announced = Announced {
        key,
        has_base64_key: false,
        value_at,
        value_bytes,
    };
    announced.large()
}
