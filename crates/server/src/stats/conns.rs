//! `stats conns`: every socket.

use super::Desk;
use super::lines::Lines;
use glimmer_base::Moment;

pub(super) fn write(desk: &Desk, now: Moment, lines: &mut Lines<'_>) {
    for guest in desk.guests() {
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
}
