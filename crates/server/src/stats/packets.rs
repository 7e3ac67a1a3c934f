//! `stats packets`, an addition to memcached's statistics: what carries datagrams, and what happens
//! to those that go past the kernel's stack. It counts since the start and not since the last
//! reset.

use super::ServerAdmin;
use super::lines::Lines;
use std::sync::atomic::Ordering::Relaxed;

/// Says in the log that the interface is down or has gone, and that it is up again.
pub(super) fn tell_of_interface(admin: &ServerAdmin) {
    let packets = &admin.config.packets;
    let is_away = packets.is_away();
    if admin.was_away.swap(is_away, Relaxed) == is_away {
        return;
    }
    let interface = packets.interface().unwrap_or_default();
    let transport = packets.name();
    match is_away {
        true => tracing::warn!(
            "--packet-transport {transport}: {interface} is down or has gone, and datagrams go \
             through the kernel's stack until it is up again; if it was deleted, restart the \
             server when it is back"
        ),
        false => tracing::warn!("--packet-transport {transport}: {interface} is up again"),
    }
}

pub(super) fn write(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let packets = &admin.config.packets;
    lines.put("transport", packets.name());
    let Some(bypass) = packets.figures() else {
        return;
    };
    lines.put("interface", &bypass.interface);
    lines.put("mode", &bypass.mode);
    for (name, figure) in [
        ("queues", bypass.queues as u64),
        ("away", bypass.is_away.into()),
        ("received", bypass.received),
        ("sent", bypass.sent),
        ("elsewhere", bypass.elsewhere),
        ("kernel_received", bypass.kernel_received),
        ("kernel_sent", bypass.kernel_sent),
        ("dropped:ring_full", bypass.dropped_full),
        ("dropped:no_frame", bypass.dropped_no_frame),
    ] {
        lines.put(name, figure);
    }
    for (reason, count) in &bypass.refused {
        lines.put(&format!("refused:{reason}"), count);
    }
    for (kind, count) in &bypass.answered {
        lines.put(&format!("answered:{kind}"), count);
    }
    if let Some(unresolved) = bypass.unresolved {
        lines.put("dropped:unresolved", unresolved);
    }
    for (name, figure) in [
        ("rx_waiting", bypass.rx_waiting),
        ("tx_waiting", bypass.tx_waiting),
        ("fill_waiting", bypass.fill_waiting),
        ("frames_free", bypass.frames_free),
    ] {
        lines.put(name, figure);
    }
    for (class, count) in bypass.bursts.iter().enumerate() {
        lines.put(&format!("bursts:{}", 1 << class), count);
    }
    lines.put("steering", bypass.steering.as_deref().unwrap_or("none"));
}
