//! Writes outcomes as replies to meta commands: a code, the requested flags in the order of the
//! request, and a value if `v` is among them.

use super::flags::{MILLISECONDS, exptime};
use super::{Command, Flags, base64, emit};
use crate::outcome::{Counted, Emit, Found, ItemState, ItemView, Outcome};
use crate::text::emit::SHORT_VALUE_BYTES;
use crate::text::{self, lines, number};
use crate::{Request, Verb};
use glimmer_base::{Expiry, Moment};
use std::io::Write;

/// `me` reports the same class for every item, as `stats items` does.
const CLASS: u32 = 1;

impl Emit for Flags<'_> {
    #[inline(always)]
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>) {
        match (outcome, command(request)) {
            (Outcome::Value(found), Command::Debug) => debug(out, request.key, found),
            (Outcome::Value(found), _) => value(out, request.key, *self, found),
            // Most commands that change items have no flags that their replies repeat.
            (Outcome::Stored { .. } | Outcome::Deleted, _) if self.text.is_empty() => {
                text::emit::line(out, lines::HD);
            }
            (other, command) => without_item(out, request, *self, other, command),
        }
    }

    #[inline(always)]
    fn emit_read<I: ItemView>(
        &self,
        request: &Request<'_>,
        found: Found<I>,
        out: &mut Vec<u8>,
    ) -> bool {
        if found.item.changes_with_read(found.now) {
            return false;
        }
        value(out, request.key, *self, found);
        true
    }
}

/// The command of a request. A request with a refused value was an `ms`.
#[inline(always)]
fn command(request: &Request<'_>) -> Command {
    match request.verb {
        Verb::Get => Command::Get,
        Verb::Meta { command, .. } => command,
        _ => Command::Store,
    }
}

#[inline(never)]
fn without_item<I: ItemView>(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    flags: Flags<'_>,
    outcome: Outcome<I>,
    command: Command,
) {
    let (key, is_quiet) = (request.key, flags.has(b'q'));
    let code = match (outcome, command) {
        (Outcome::Miss, Command::Debug) => return out.extend_from_slice(b"EN\r\n"),
        (Outcome::Miss, _) if is_quiet => return,
        (Outcome::Miss, _) => "EN",
        (Outcome::Stored { .. } | Outcome::Deleted | Outcome::Counted(_), _) if is_quiet => {
            return;
        }
        (Outcome::Stored { cas, value_bytes }, _) => {
            return stored(out, (key, flags), "HD", cas, value_bytes);
        }
        (Outcome::Counted(counted), _) => return number(out, key, flags, &counted),
        (Outcome::NotANumber | Outcome::Overflow, _) => {
            return text::emit::line(out, lines::NON_NUMERIC);
        }
        (Outcome::TooLarge, _) => return text::emit::line(out, lines::TOO_LARGE),
        (Outcome::OutOfMemory, _) => {
            return text::emit::line(out, text::no_memory(request));
        }
        (Outcome::NotStored, _) => "NS",
        (Outcome::Exists, _) => "EX",
        (Outcome::NotFound, _) => "NF",
        (Outcome::Value(_) | Outcome::Deleted | Outcome::Touched { .. }, _) => "HD",
    };
    if command == Command::Store {
        return stored(out, (key, flags), code, 0, value_sent(request));
    }
    emit::code(out, code);
    emit::repeat(out, flags, key);
}

/// Length in bytes of the value in the request.
fn value_sent(request: &Request<'_>) -> usize {
    match request.verb {
        Verb::Meta { value, .. } => value.len(),
        _ => 0,
    }
}

/// Appends the whole reply to an `mg` that found an item. The order of the flags matters: a `t`
/// before `T` shows the remaining time before the change. This is a separate function so that reads
/// in other protocols do not pay for it.
#[inline(never)]
fn value<I: ItemView>(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>, found: Found<I>) {
    let Found { item, now, details } = found;
    let (value_bytes, mut expiry) = (item.value_bytes(), item.expiry());
    if flags.text == b"v" && value_bytes < SHORT_VALUE_BYTES {
        return value_alone(out, found);
    }
    let shows_value = head(out, key, flags, value_bytes, item.cas());
    for (flag, token) in flags.iter() {
        match flag {
            b's' => emit::number(out, flag, value_bytes as u64),
            b't' => emit::ttl(out, ttl(expiry, flags, now)),
            b'c' => emit::number(out, flag, item.cas()),
            b'f' => emit::number(out, flag, item.flags().into()),
            b'O' => emit::echo(out, flag, token),
            b'k' => {
                // Only a request in base64 can name a key that is no word.
                let is_encoded = match flags.base64_key {
                    true => is_encoded(item.state(), key),
                    false => item.state().has_binary_key,
                };
                emit::key(out, key, is_encoded);
            }
            b'h' => emit::number(out, flag, details.was_fetched.into()),
            b'l' => emit::number(out, flag, details.idle_s),
            _ => expiry = expiry_after(expiry, (flag, token), (flags, details.is_new), now),
        }
    }
    state(out, item.state(), details.wins);
    emit::line_end(out);
    if shows_value {
        item.append_value(out);
        emit::line_end(out);
    }
}

/// [`value`] for the most frequent flags, which ask for the value only, and a short value.
#[inline(always)]
fn value_alone<I: ItemView>(out: &mut Vec<u8>, found: Found<I>) {
    let Found { item, details, .. } = found;
    let value_bytes = item.value_bytes();
    out.reserve(value_bytes + 24);
    text::emit::short_length(out, b"VA ", value_bytes);
    if item.state().is_marked() || details.wins {
        out.truncate(out.len() - 2);
        state(out, item.state(), details.wins);
        emit::line_end(out);
    }
    item.append_value(out);
    emit::line_end(out);
}

/// Appends the first part of a reply that shows an item. Returns whether a value follows the line.
/// A client that names the item's current CAS unique (`C`) has the value already.
#[inline(always)]
fn head(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>, value_bytes: usize, cas: u64) -> bool {
    let (mut shows_value, mut is_known) = (false, false);
    for (flag, token) in flags.iter() {
        match flag {
            b'v' => shows_value = true,
            b'C' => is_known = number::digits_64(token) == Some(cas),
            _ => {}
        }
    }
    shows_value &= !is_known;
    if shows_value {
        emit::value_head(out, flags, key.len(), value_bytes);
    } else {
        emit::code(out, "HD");
    }
    shows_value
}

/// Appends the flags that a client gets without asking: `Z` if another client recaches the value,
/// `X` if the value is stale, `W` if this client is to recache it.
#[inline(always)]
fn state(out: &mut Vec<u8>, state: ItemState, wins: bool) {
    if state.is_won {
        out.extend_from_slice(b" Z");
    }
    if state.is_stale {
        out.extend_from_slice(b" X");
    }
    if wins {
        out.extend_from_slice(b" W");
    }
}

/// Appends the reply to an `ms`. As in memcached, `c` is zero if nothing was stored.
fn stored(
    out: &mut Vec<u8>,
    (key, flags): (&[u8], Flags<'_>),
    code: &'static str,
    cas: u64,
    value_bytes: usize,
) {
    emit::code(out, code);
    for (flag, token) in flags.iter() {
        match flag {
            b'O' => emit::echo(out, flag, token),
            b'k' => emit::key(out, key, flags.base64_key),
            b'c' => emit::number(out, flag, cas),
            b's' => emit::number(out, flag, value_bytes as u64),
            _ => {}
        }
    }
    emit::line_end(out);
}

/// Appends the reply to a successful `ma`; for the flags see [`value`].
fn number(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>, counted: &Counted) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(counted.number).as_bytes();
    let shows_value = flags.has(b'v');
    if shows_value {
        emit::value_head(out, flags, key.len(), digits.len());
    } else {
        emit::code(out, "HD");
    }
    let Counted { cas, now, .. } = *counted;
    let mut expiry = counted.expiry;
    for (flag, token) in flags.iter() {
        match flag {
            b't' => emit::ttl(out, ttl(expiry, flags, now)),
            b'c' => emit::number(out, flag, cas),
            b'O' => emit::echo(out, flag, token),
            b'k' => emit::key(out, key, flags.base64_key),
            _ => expiry = expiry_after(expiry, (flag, token), (flags, counted.is_new), now),
        }
    }
    emit::line_end(out);
    if shows_value {
        out.extend_from_slice(digits);
        emit::line_end(out);
    }
}

/// Whether a reply shows the key of an item in base64: the item was created so, or by another
/// protocol with a key that is no word of a line.
fn is_encoded(state: ItemState, key: &[u8]) -> bool {
    state.has_binary_key || memchr::memchr2(b' ', b'\n', key).is_some()
}

/// Appends the reply to an `me` that found an item.
#[cold]
fn debug<I: ItemView>(out: &mut Vec<u8>, key: &[u8], found: Found<I>) {
    let Found { item, now, details } = found;
    out.extend_from_slice(b"ME ");
    if is_encoded(item.state(), key) {
        base64::encode(key, out);
    } else {
        out.extend_from_slice(key);
    }
    let ttl = ttl_s(item.expiry(), now).map_or(-1, |seconds| seconds as i64);
    write!(
        out,
        " exp={ttl} la={} cas={} fetch={} cls={CLASS} size={}\r\n",
        details.idle_s,
        item.cas(),
        if details.was_fetched { "yes" } else { "no" },
        item.heap_bytes(),
    )
    .expect("a vector takes every byte");
}

/// The expiry of an item after this flag was applied: `T` sets it, and `N` sets it if the request
/// created the item.
#[inline(always)]
fn expiry_after(
    expiry: Expiry,
    (flag, token): (u8, &[u8]),
    (flags, is_new): (Flags<'_>, bool),
    now: Moment,
) -> Expiry {
    if flag != b'T' && !(flag == b'N' && is_new) {
        return expiry;
    }
    match (exptime(token, flags), flags.has(MILLISECONDS)) {
        (None, _) => expiry,
        (Some(exptime), false) => Expiry::from_memcached(exptime, now),
        (Some(exptime), true) => Expiry::from_memcached_ms(exptime, now),
    }
}

/// Remaining time in the unit of the flags; none for an item that does not expire.
#[inline(always)]
fn ttl(expiry: Expiry, flags: Flags<'_>, now: Moment) -> Option<u64> {
    match flags.has(MILLISECONDS) {
        false => ttl_s(expiry, now),
        true => (expiry != Expiry::NEVER).then(|| expiry.ms().saturating_sub(now.ms)),
    }
}

/// Remaining time in whole seconds as memcached's clock counts it: a started second counts.
#[inline(always)]
fn ttl_s(expiry: Expiry, now: Moment) -> Option<u64> {
    (expiry != Expiry::NEVER).then(|| expiry.ms().saturating_sub(now.ms).div_ceil(1000))
}
