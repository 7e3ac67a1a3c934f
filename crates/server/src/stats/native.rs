//! `stats native`: the directory of the native protocol, and what its clients did.

use super::lines::Lines;
use super::{Snapshot, count};
use glimmer_proto::native::VERSION;

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let desk = snapshot.desk;
    let Some(native) = desk.native.get() else {
        return lines.put_yes_or_no("enabled", false);
    };
    lines.put_yes_or_no("enabled", true);
    lines.put("version", VERSION);
    lines.put("mode", desk.config.mode);
    lines.put("access", desk.config.access);
    lines.put("partitions", desk.plan.partitions);
    lines.put("cores", desk.config.workers);
    lines.put("item_size_max", desk.plan.item_bytes_max);
    for (ip, ports) in native {
        for (core, port) in ports.iter().enumerate() {
            lines.put(&format!("port:{ip}:{core}"), port);
        }
    }
    for (name, figure) in [
        ("requests", count!(snapshot, node.native_requests)),
        ("misdirected", count!(snapshot, node.native_misdirected)),
        ("unproven", count!(snapshot, node.native_unproven)),
        ("repeated", count!(snapshot, node.native_repeated)),
        ("superseded", count!(snapshot, node.native_superseded)),
        ("replies_in_place", count!(snapshot, node.native_in_place)),
    ] {
        lines.put(name, figure);
    }
}
