//! `stats native`: the directory of the native protocol, the counters of its clients, and the work
//! of each worker for them.

use super::lines::Lines;
use super::{Snapshot, count};
use glimmer_base::limits::{NATIVE_MUTATIONS_KEPT, NATIVE_TOKEN_S};
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, REQUESTS_MAX, VERSION};

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let admin = snapshot.admin;
    let Some(native) = admin.native.get() else {
        return lines.put_yes_or_no("enabled", false);
    };
    let rules = &native.rules;
    lines.put_yes_or_no("enabled", true);
    lines.put("version", VERSION);
    lines.put("directory", rules.directory_version);
    lines.put("mode", admin.config.mode);
    lines.put("access", admin.access());
    lines.put("direction", admin.config.native_direction);
    lines.put("partitions", rules.layout.map.partitions());
    lines.put("cores", rules.workers());
    lines.put_yes_or_no("check_keyhash", rules.checks_reads);
    lines.put("item_size_max", rules.item_bytes_max);
    lines.put("datagram_size_max", DATAGRAM_BYTES_MAX);
    lines.put("datagram_requests_max", REQUESTS_MAX);
    lines.put("mutation_window", NATIVE_MUTATIONS_KEPT);
    lines.put("token_seconds", NATIVE_TOKEN_S);
    for (ip, ports) in &native.ports {
        for (core, port) in ports.iter().enumerate() {
            lines.put(&format!("port:{ip}:{core}"), port);
        }
    }
    for (name, figure) in [
        ("datagrams", count!(snapshot, node.native_datagrams)),
        ("receives", count!(snapshot, node.native_receives)),
        ("handed_over", count!(snapshot, node.native_handed_over)),
        (
            "handed_over_batches",
            count!(snapshot, node.native_handover_batches),
        ),
        ("requests", count!(snapshot, node.native_requests)),
        ("misdirected", count!(snapshot, node.native_misdirected)),
        ("unproven", count!(snapshot, node.native_unproven)),
        ("repeated", count!(snapshot, node.native_repeated)),
        ("superseded", count!(snapshot, node.native_superseded)),
        ("replies_in_place", count!(snapshot, node.native_in_place)),
    ] {
        lines.put(name, figure);
    }
    // Like `stats workers`, since the start and not since the last reset.
    let tallies = admin.node.get().map(|node| node.figures.tallies());
    for (worker, tally) in tallies.into_iter().flatten().enumerate() {
        for (name, figure) in [
            ("requests", tally.native_requests),
            ("datagrams", tally.native_datagrams),
            ("receives", tally.native_receives),
            ("handed_over", tally.native_handed_over),
        ] {
            lines.put(&format!("worker:{worker}:{name}"), figure);
        }
    }
}
