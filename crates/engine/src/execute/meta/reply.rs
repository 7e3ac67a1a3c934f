//! The parts of a reply that show an item.

use super::super::answer::{Stored, Told};
use super::{second, ttl_s};
use glimmer_base::{Expiry, Moment};
use glimmer_proto::meta::{Flags, emit};
use glimmer_proto::text::{lines, number};
use glimmer_store::heap::{Item, Marks};

/// Appends the whole reply to an `mg` that only reads. Two things are for the writer: an item that is stale and has nobody to make it anew
/// finds somebody here, and one of which the last access is noted has been accessed.
#[inline(always)]
pub fn read_value(
    out: &mut Vec<u8>,
    key: &[u8],
    flags: Flags<'_>,
    item: &Item<'_>,
    now: Moment,
) -> Told {
    let marks = item.marks();
    let is_noted = item.layout().extra && ![0, second(now)].contains(&item.accessed_s());
    if is_noted || marks.has(Marks::STALE) && !marks.has(Marks::WON) {
        return Told::ByWriter;
    }
    let value = item.value();
    let shows_value = head(out, key, flags, value.len(), item.cas());
    for (flag, token) in flags.iter() {
        shown(out, (flag, token), key, item, item.expiry(), now);
    }
    if marks != Marks::NONE {
        state(out, marks, false);
    }
    emit::line_end(out);
    if shows_value {
        value.append_to(out);
        emit::line_end(out);
    }
    Told::All
}

/// Appends the beginning of a reply to a hit; says whether a value belongs behind the line. A client that names the item's CAS unique (`C`)
/// has the value.
#[inline(always)]
pub fn head(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>, value_bytes: usize, cas: u64) -> bool {
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

/// Appends what a flag asks of an item that any reader can see.
#[inline(always)]
pub fn shown(
    out: &mut Vec<u8>,
    (flag, token): (u8, &[u8]),
    key: &[u8],
    item: &Item<'_>,
    expiry: Expiry,
    now: Moment,
) {
    match flag {
        b's' => emit::number(out, b's', item.value().len() as u64),
        b't' => emit::ttl(out, ttl_s(expiry, now)),
        b'c' => emit::number(out, b'c', item.cas()),
        b'f' => emit::number(out, b'f', item.flags().into()),
        b'O' => emit::echo(out, b'O', token),
        b'k' => emit::key(out, key, item.marks().has(Marks::BINARY_KEY)),
        _ => {}
    }
}

/// Appends what the client has to know about the item without asking: `Z` that another client makes it anew, `X` that it is stale, `W` that it
/// is this client's to make it anew.
pub fn state(out: &mut Vec<u8>, marks: Marks, won: bool) {
    if marks.has(Marks::WON) {
        out.extend_from_slice(b" Z");
    }
    if marks.has(Marks::STALE) {
        out.extend_from_slice(b" X");
    }
    if won {
        out.extend_from_slice(b" W");
    }
}

/// Appends the reply to an `mg` that found nothing.
pub fn no_value(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>) {
    if !flags.has(b'q') {
        emit::code(out, "EN");
        emit::repeat(out, flags, key);
    }
}

/// Appends the reply to an `ms`. `c` is zero where nothing was stored, as in memcached.
pub fn stored(out: &mut Vec<u8>, key: &[u8], flags: Flags<'_>, stored: Stored, value_bytes: usize) {
    let (code, cas) = match stored {
        Stored::Yes(_) if flags.has(b'q') => return,
        Stored::Yes(cas) => ("HD", cas),
        Stored::No => ("NS", 0),
        Stored::Exists => ("EX", 0),
        Stored::NotFound => ("NF", 0),
        Stored::TooLarge => return out.extend_from_slice(lines::TOO_LARGE.as_bytes()),
        Stored::OutOfMemory => {
            return out.extend_from_slice(lines::NO_MEMORY_STORING.as_bytes());
        }
    };
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
