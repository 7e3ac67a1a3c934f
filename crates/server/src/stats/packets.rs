//! `stats packets`, an addition to memcached's statistics: what carries datagrams, and what happens
//! to those that go past the kernel's stack. It counts since the start and not since the last
//! reset.

use super::ServerAdmin;
use super::lines::Lines;

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
