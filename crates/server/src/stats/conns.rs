//! `stats conns`: every socket.

use super::Desk;
use super::lines::Lines;
use glimmer_base::Moment;
use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_node::GuestView;
use std::os::fd::RawFd;

/// Sockets that are looked at under one lock.
const SOCKETS_AT_ONCE: usize = 64;

/// Writes a piece, from descriptor `from` on. Returns where the next piece begins, if there is one.
/// A connection that is opened or closed between two pieces may be in one or in none.
pub(super) fn write(desk: &Desk, from: u64, now: Moment, lines: &mut Lines<'_>) -> Option<u64> {
    let begin = lines.0.len();
    let mut next = RawFd::try_from(from).unwrap_or(RawFd::MAX);
    loop {
        let guests = desk.guests(next, SOCKETS_AT_ONCE);
        let is_last = guests.len() < SOCKETS_AT_ONCE;
        for guest in guests {
            if lines.0.len() - begin >= REPORT_BYTES_HIGH {
                return Some(guest.fd as u64);
            }
            next = guest.fd + 1;
            write_one(&guest, now, lines);
        }
        if is_last {
            return None;
        }
    }
}

fn write_one(guest: &GuestView, now: Moment, lines: &mut Lines<'_>) {
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        lines.put(&format!("{}:{name}", guest.fd), value);
    };
    if guest.is_udp {
        put("UDP", &"UDP");
    }
    put("addr", &guest.address);
    if let Some(address) = &guest.listen_address {
        put("listen_addr", address);
    }
    put("state", &guest.activity);
    let idle_ms = now.ms.saturating_sub(guest.active_ms);
    put("secs_since_last_cmd", &(idle_ms / 1000));
}
