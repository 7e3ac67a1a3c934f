//! `stats conns`: all sockets.

use super::ServerAdmin;
use super::lines::Lines;
use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_base::{Moment, shown};
use glimmer_node::SocketView;
use std::collections::BTreeMap;
use std::os::fd::RawFd;

/// Sockets that are read under one lock.
const SOCKETS_AT_ONCE: usize = 64;

/// Writes one part of the reply, starting with descriptor `from`. Returns where the next part
/// starts, if there is one. A connection that is opened or closed between two parts may be missing.
pub(super) fn write(
    admin: &ServerAdmin,
    from: u64,
    now: Moment,
    lines: &mut Lines<'_>,
) -> Option<u64> {
    let begin = lines.0.len();
    let mut next = RawFd::try_from(from).unwrap_or(RawFd::MAX);
    loop {
        let sockets = admin.sockets(next, SOCKETS_AT_ONCE);
        let is_last = sockets.len() < SOCKETS_AT_ONCE;
        for socket in sockets {
            if lines.0.len() - begin >= REPORT_BYTES_HIGH {
                return Some(socket.fd as u64);
            }
            next = socket.fd + 1;
            write_one(&socket, now, lines);
        }
        if is_last {
            return None;
        }
    }
}

/// Writes how many connections are in each state, by the listener that they came
/// in at: a port of TCP or `unix`. The states are those of `stats conns`.
pub(super) fn write_states(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let Some(node) = admin.node() else { return };
    let mut counts = BTreeMap::new();
    let mut next = Some(0);
    while let Some(from) = next {
        next = node.count_connections(from, SOCKETS_AT_ONCE, &mut counts);
    }
    for ((listener, state), count) in counts {
        lines.put(&format!("{listener}:{state}"), count);
    }
}

fn write_one(socket: &SocketView, now: Moment, lines: &mut Lines<'_>) {
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        lines.put(&format!("{}:{name}", socket.fd), value);
    };
    if socket.is_udp {
        put("UDP", &"UDP");
    }
    put("addr", &socket.address);
    if let Some(address) = &socket.listen_address {
        put("listen_addr", address);
    }
    if let Some(name) = &socket.client {
        put("tls_client", &shown::visible(name.as_bytes()));
    }
    put("state", &socket.activity);
    let idle_ms = now.ms.saturating_sub(socket.active_ms);
    put("secs_since_last_cmd", &(idle_ms / 1000));
}
