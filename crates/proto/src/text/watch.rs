//! `watch`: what a client wants to be shown.

use super::lines;
use super::tokens;

/// Items that are asked for.
pub const FETCHERS: u32 = 1;
/// Items that are stored.
pub const MUTATIONS: u32 = 1 << 1;
/// Items that leave to make room.
pub const EVICTIONS: u32 = 1 << 2;
/// Connections that come and go.
pub const CONNEVENTS: u32 = 1 << 3;
/// Items that are deleted.
pub const DELETIONS: u32 = 1 << 4;

/// Reads what stands behind `watch`: interests, [`FETCHERS`] if there is none. What memcached shows and this server has not is
/// accepted, and nothing is shown for it.
pub(super) fn interests(rest: &[u8]) -> Result<u32, &'static str> {
    let mut interests = 0;
    let mut rest = rest;
    let mut is_empty = true;
    while let Some((word, behind)) = tokens::first(rest) {
        is_empty = false;
        interests |= match word {
            b"fetchers" => FETCHERS,
            b"mutations" => MUTATIONS,
            b"evictions" => EVICTIONS,
            b"connevents" => CONNEVENTS,
            b"deletions" => DELETIONS,
            b"rawcmds" | b"sysevents" | b"proxyreqs" | b"proxyevents" | b"proxyuser" => 0,
            _ => return Err(lines::ERROR),
        };
        rest = behind;
    }
    Ok(if is_empty { FETCHERS } else { interests })
}
