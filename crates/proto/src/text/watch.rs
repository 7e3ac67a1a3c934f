//! `watch`: the events that a client watches.

use super::lines;
use super::tokens;

/// Reads of items.
pub const FETCHERS: u32 = 1;
/// Stores of items.
pub const MUTATIONS: u32 = 1 << 1;
/// Evictions.
pub const EVICTIONS: u32 = 1 << 2;
/// Connections that open and close.
pub const CONNEVENTS: u32 = 1 << 3;
/// Deletions.
pub const DELETIONS: u32 = 1 << 4;

/// Whatever changes an item, as JSON: `mutations json`.
pub const CHANGES: u32 = 1 << 5;

/// Parses the text after `watch`: the events, or [`FETCHERS`] if none is named. Events of memcached
/// that this server does not have are accepted and never reported. The word `json` goes with
/// `mutations` alone.
pub(super) fn interests(rest: &[u8]) -> Result<u32, &'static str> {
    let mut interests = 0;
    let mut rest = rest;
    let (mut is_empty, mut is_json) = (true, false);
    while let Some((word, tail)) = tokens::first(rest) {
        is_empty = false;
        if word == b"json" {
            is_json = true;
            rest = tail;
            continue;
        }
        interests |= match word {
            b"fetchers" => FETCHERS,
            b"mutations" => MUTATIONS,
            b"evictions" => EVICTIONS,
            b"connevents" => CONNEVENTS,
            b"deletions" => DELETIONS,
            b"rawcmds" | b"sysevents" | b"proxyreqs" | b"proxyevents" | b"proxyuser" => 0,
            _ => return Err(lines::ERROR),
        };
        rest = tail;
    }
    match (is_json, interests) {
        (true, MUTATIONS) => Ok(CHANGES),
        (true, _) => Err(lines::ERROR),
        (false, _) => Ok(if is_empty { FETCHERS } else { interests }),
    }
}
