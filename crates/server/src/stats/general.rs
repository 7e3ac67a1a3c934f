//! `stats` without a word behind it, in memcached's order.

use super::lines::Lines;
use super::{Snapshot, count};
use glimmer_base::Moment;
use glimmer_proto::text::lines::VERSION;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    process(snapshot, lines);
    connections(snapshot, lines);
    commands(snapshot, lines);
    store(snapshot, lines);
}

fn process(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let now = snapshot.moment;
    lines.put("pid", std::process::id());
    lines.put(
        "uptime",
        now.ms.saturating_sub(Moment::EPOCH_LEAD_MS) / 1000,
    );
    lines.put("time", (now.epoch_unix_ms + now.ms) / 1000);
    lines.put("version", VERSION.trim_start_matches("VERSION ").trim_end());
    lines.put("pointer_size", usize::BITS);
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
        lines.put("rusage_user", seconds(usage.user_time()));
        lines.put("rusage_system", seconds(usage.system_time()));
    }
}

fn seconds(time: TimeVal) -> String {
    format!("{}.{:06}", time.tv_sec(), time.tv_usec())
}

fn connections(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    lines.put("max_connections", snapshot.desk.config.connections_max);
    lines.put("curr_connections", snapshot.now.node.curr_connections);
    lines.put(
        "total_connections",
        count!(snapshot, node.total_connections),
    );
    lines.put(
        "rejected_connections",
        count!(snapshot, node.rejected_connections),
    );
}

fn commands(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let get_hits = count!(snapshot, table.requests.get_hits);
    let get_misses = count!(snapshot, table.requests.get_misses);
    lines.put("cmd_get", get_hits + get_misses);
    lines.put("cmd_set", count!(snapshot, table.requests.cmd_set));
    lines.put("cmd_flush", count!(snapshot, node.cmd_flush));
    lines.put("cmd_touch", count!(snapshot, table.requests.cmd_touch));
    lines.put("get_hits", get_hits);
    lines.put("get_misses", get_misses);
    lines.put(
        "delete_misses",
        count!(snapshot, table.requests.delete_misses),
    );
    lines.put("delete_hits", count!(snapshot, table.requests.delete_hits));
    lines.put("incr_misses", count!(snapshot, table.requests.incr_misses));
    lines.put("incr_hits", count!(snapshot, table.requests.incr_hits));
    lines.put("decr_misses", count!(snapshot, table.requests.decr_misses));
    lines.put("decr_hits", count!(snapshot, table.requests.decr_hits));
    lines.put("cas_misses", count!(snapshot, table.requests.cas_misses));
    lines.put("cas_hits", count!(snapshot, table.requests.cas_hits));
    lines.put("cas_badval", count!(snapshot, table.requests.cas_badval));
    lines.put("touch_hits", count!(snapshot, table.requests.touch_hits));
    lines.put(
        "touch_misses",
        count!(snapshot, table.requests.touch_misses),
    );
    if snapshot.desk.config.idle_timeout.is_some() {
        lines.put("idle_kicks", count!(snapshot, node.idle_kicks));
    }
    lines.put("bytes_read", count!(snapshot, node.bytes_read));
    lines.put("bytes_written", count!(snapshot, node.bytes_written));
}

fn store(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let table = &snapshot.now.table;
    lines.put("limit_maxbytes", snapshot.desk.config.memory_bytes);
    let rejects = snapshot.desk.config.rejects_beyond_max;
    let is_full = snapshot.now.node.curr_connections >= snapshot.desk.config.connections_max as u64;
    lines.put("accepting_conns", u8::from(rejects || !is_full));
    lines.put(
        "listen_disabled_num",
        count!(snapshot, node.listen_disabled),
    );
    lines.put("threads", snapshot.desk.config.workers);
    lines.put("conn_yields", count!(snapshot, node.conn_yields));
    lines.put("hash_bytes", table.index_bytes);
    lines.put("hash_is_expanding", 0);
    lines.put("bytes", table.store.bytes);
    lines.put("curr_items", table.store.items);
    lines.put("total_items", count!(snapshot, table.store.stored));
    lines.put("evictions", count!(snapshot, table.store.evictions));
    lines.put("reclaimed", count!(snapshot, table.store.expired_reclaimed));
}
