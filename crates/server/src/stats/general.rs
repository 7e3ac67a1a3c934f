//! `stats` without an argument: memcached's names in memcached's order, except those of its
//! optional features. Counters of mechanisms that do not exist here, such as slab moves, are 0.
//! Values that this server does not know are "unknown".

use super::lines::Lines;
use super::{Snapshot, count};
use crate::process::descriptors_reserved;
use glimmer_proto::text::lines::VERSION_NUMBER;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// A value that the system does not report.
const UNKNOWN: &str = "unknown";
/// Bytes of an index bucket.
const BUCKET_BYTES: u64 = 128;

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    process(snapshot, lines);
    connections(snapshot, lines);
    commands(snapshot, lines);
    server(snapshot, lines);
    slabs(lines);
    crawler(snapshot, lines);
    watchers(snapshot, lines);
    store(snapshot, lines);
    tls(snapshot, lines);
}

fn process(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let now = snapshot.moment;
    lines.put("pid", std::process::id());
    lines.put(
        "uptime",
        now.ms.saturating_sub(snapshot.admin.config.started_ms) / 1000,
    );
    lines.put("time", (now.epoch_unix_ms + now.ms) / 1000);
    lines.put("version", VERSION_NUMBER);
    lines.put("libevent", "none");
    lines.put("pointer_size", usize::BITS);
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    let time = |time: fn(&nix::sys::resource::Usage) -> TimeVal| match &usage {
        Ok(usage) => seconds(time(usage)),
        Err(_) => UNKNOWN.into(),
    };
    lines.put("rusage_user", time(|usage| usage.user_time()));
    lines.put("rusage_system", time(|usage| usage.system_time()));
}

pub(super) fn seconds(time: TimeVal) -> String {
    format!("{}.{:06}", time.tv_sec(), time.tv_usec())
}

fn connections(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let node = &snapshot.now.node;
    lines.put("max_connections", snapshot.admin.connections_max());
    lines.put("curr_connections", node.curr_connections);
    lines.put(
        "total_connections",
        count!(snapshot, node.total_connections),
    );
    if snapshot.admin.config.rejects_beyond_max {
        lines.put(
            "rejected_connections",
            count!(snapshot, node.rejected_connections),
        );
    }
    lines.put("connection_structures", node.curr_connections);
    // Replies are written into the same buffers as requests, and all of them count as read buffers.
    lines.put("response_obj_oom", count!(snapshot, node.stalled_kicks));
    lines.put("response_obj_count", 0);
    lines.put("response_obj_bytes", 0);
    lines.put("read_buf_count", node.buffers);
    lines.put("read_buf_bytes", node.buffer_bytes);
    lines.put("read_buf_bytes_free", node.buffer_bytes_free);
    lines.put("read_buf_oom", count!(snapshot, node.values_refused));
    lines.put(
        "reserved_fds",
        descriptors_reserved(snapshot.admin.config.workers),
    );
}

fn commands(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    macro_rules! requests {
        ($($name:ident)+) => {
            $(lines.put(stringify!($name), count!(snapshot, table.requests.$name));)+
        };
    }
    let get_hits = count!(snapshot, table.requests.get_hits);
    let get_misses = count!(snapshot, table.requests.get_misses);
    lines.put("cmd_get", get_hits + get_misses);
    requests!(cmd_set);
    lines.put("cmd_flush", count!(snapshot, node.cmd_flush));
    requests!(cmd_touch);
    requests!(cmd_meta);
    lines.put("get_hits", get_hits);
    lines.put("get_misses", get_misses);
    requests!(get_expired);
    requests!(get_flushed delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits);
    requests!(cas_misses cas_hits cas_badval touch_hits touch_misses);
    requests!(store_too_large store_no_memory);
    lines.put("auth_cmds", count!(snapshot, node.auth_cmds));
    lines.put("auth_errors", count!(snapshot, node.auth_errors));
    if snapshot.admin.config.idle_timeout.is_some() {
        lines.put("idle_kicks", count!(snapshot, node.idle_kicks));
    }
}

/// memcached's names, and then this server's own.
fn tls(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let Some(tls) = snapshot.admin.tls() else {
        return;
    };
    if snapshot.admin.config.tls.counts_sessions {
        lines.put("ssl_new_sessions", tls.new_sessions);
    }
    lines.put("ssl_handshake_errors", tls.handshake_errors);
    lines.put("ssl_proto_errors", tls.protocol_errors);
    lines.put("time_since_server_cert_refresh", tls.since_renewal_s);
    lines.put("ssl_handshakes", tls.new_sessions + tls.resumed);
    lines.put("ssl_resumed_sessions", tls.resumed);
    lines.put(
        "ssl_handshake_timeouts",
        count!(snapshot, node.handshake_kicks),
    );
    lines.put("ssl_cert_refreshes", tls.renewals);
    lines.put("ssl_cert_refresh_errors", tls.renewal_errors);
    lines.put("ssl_cert_not_after", tls.not_after_unix_s);
    lines.put("ssl_memory_bytes", tls.bytes);
    lines.put("ssl_memory_limit", tls.bytes_max);
    lines.put("ssl_memory_kicks", tls.refusals);
}

fn server(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let config = &snapshot.admin.config;
    let node = &snapshot.now.node;
    let table = &snapshot.now.table;
    lines.put("bytes_read", count!(snapshot, node.bytes_read));
    lines.put("bytes_written", count!(snapshot, node.bytes_written));
    lines.put("limit_maxbytes", config.memory_bytes);
    let is_full = node.curr_connections >= snapshot.admin.connections_max() as u64;
    lines.put(
        "accepting_conns",
        u8::from(config.rejects_beyond_max || !is_full),
    );
    lines.put(
        "listen_disabled_num",
        count!(snapshot, node.listen_disabled),
    );
    lines.put(
        "time_in_listen_disabled_us",
        1000 * count!(snapshot, node.listen_disabled_ms),
    );
    lines.put("threads", config.workers);
    lines.put("conn_yields", count!(snapshot, node.conn_yields));
    // The power of two at or above the number of buckets in the index.
    lines.put(
        "hash_power_level",
        (table.index_bytes / BUCKET_BYTES).max(1).ilog2(),
    );
    lines.put("hash_bytes", table.index_bytes);
    lines.put("hash_is_expanding", 0);
}

/// Slabs never move, because there are none.
fn slabs(lines: &mut Lines<'_>) {
    for name in [
        "slab_reassign_rescues",
        "slab_reassign_chunk_rescues",
        "slab_reassign_evictions_nomem",
        "slab_reassign_inline_reclaim",
        "slab_reassign_busy_items",
        "slab_reassign_busy_deletes",
        "slab_reassign_busy_nomem",
    ] {
        lines.put(name, 0);
    }
    lines.put("slab_reassign_last_busy_status", "none");
    lines.put("slab_reassign_running", 0);
    lines.put("slabs_moved", 0);
}

/// The listings that memcached's crawler would do.
fn crawler(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    if let Some((is_running, starts)) = snapshot.admin.dumps() {
        lines.put("lru_crawler_running", u8::from(is_running));
        lines.put("lru_crawler_starts", starts);
    }
    lines.put("lru_maintainer_juggles", 0);
    lines.put("malloc_fails", 0);
}

fn watchers(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let watch = snapshot.admin.watch();
    // Workers write directly into the watchers' buffers, so nothing is lost on the way.
    lines.put("log_worker_dropped", 0);
    lines.put("log_worker_written", watch.written);
    lines.put("log_watcher_skipped", watch.skipped);
    lines.put("log_watcher_sent", watch.sent);
    lines.put("log_watchers", watch.watchers);
    // Connections are not assigned by NAPI id.
    lines.put("unexpected_napi_ids", 0);
    lines.put("round_robin_fallback", 0);
}

fn store(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let store = &snapshot.now.table.store;
    lines.put("bytes", store.bytes);
    lines.put("curr_items", store.items);
    lines.put("total_items", count!(snapshot, table.store.stored));
    lines.put("slab_global_page_pool", 0);
    lines.put(
        "expired_unfetched",
        count!(snapshot, table.store.expired_unfetched),
    );
    lines.put(
        "evicted_unfetched",
        count!(snapshot, table.store.evicted_unfetched),
    );
    lines.put("evicted_active", 0);
    lines.put("evictions", count!(snapshot, table.store.evictions));
    lines.put("reclaimed", count!(snapshot, table.store.expired_reclaimed));
    lines.put(
        "crawler_reclaimed",
        count!(snapshot, node.crawler_reclaimed),
    );
    lines.put(
        "crawler_items_checked",
        count!(snapshot, node.crawler_items_checked),
    );
    // The remaining counters belong to a segmented LRU with its own thread.
    lines.put("lrutail_reflocked", 0);
    lines.put("moves_to_cold", 0);
    lines.put("moves_to_warm", 0);
    lines.put(
        "moves_within_lru",
        count!(snapshot, table.store.reinsertions),
    );
    lines.put("direct_reclaims", 0);
    lines.put("lru_bumps_dropped", 0);
}
