//! `stats settings`: the settings of the server, with memcached's names in memcached's order.
//! Settings of features that do not exist here have the value that means "off" in memcached.

use super::ServerAdmin;
use super::items::CHUNK_BYTES;
use super::lines::Lines;
use crate::config::{Config, SliceBytes, UNIX_MODE_DEFAULT};
use crate::encryption::TlsConfig;
use glimmer_base::limits::WATCH_BYTES_MAX;
use glimmer_proto::{Accepts, AdminCommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of the client flags of an item.
const CLIENT_FLAGS_BYTES: usize = size_of::<u32>();
/// A name that was not given.
const UNNAMED: &str = "(null)";

pub(super) fn write(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    network(admin, lines);
    workers(admin, lines);
    slabs(admin, lines);
    crawler(admin, lines);
    segments(lines);
    buffers(admin, lines);
    storage(lines);
    tls(&admin.config.tls, lines);
    own(admin, lines);
}

fn network(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let config = &admin.config;
    lines.put("maxbytes", config.memory_bytes);
    lines.put("maxconns", admin.connections_max());
    let port = |addresses: &[SocketAddr]| addresses.first().map_or(0, SocketAddr::port);
    lines.put("tcpport", port(&admin.tcp()));
    lines.put("udpport", port(admin.udp()));
    lines.put("inter", config.interfaces.as_deref().unwrap_or("NULL"));
    lines.put("verbosity", admin.verbosity.load(Ordering::Relaxed));
    lines.put("oldest", admin.flush_s());
    lines.put("evictions", if admin.evicts() { "on" } else { "off" });
    let unix = config.unix.as_ref();
    match unix {
        Some(unix) => lines.put("domain_socket", unix.path.display()),
        None => lines.put("domain_socket", "NULL"),
    }
    let umask = unix.map_or(UNIX_MODE_DEFAULT, |unix| unix.mode);
    lines.put("umask", format_args!("{umask:o}"));
    lines.put_yes_or_no(
        "shutdown_command",
        config.permits.has(AdminCommand::Shutdown),
    );
}

fn workers(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let config = &admin.config;
    // All item sizes are multiples of the same unit.
    lines.put("growth_factor", "1.00");
    lines.put("chunk_size", CHUNK_BYTES);
    lines.put("num_threads", config.workers);
    lines.put("num_threads_per_udp", config.workers);
    lines.put("stat_key_prefix", char::from(config.prefix_delimiter));
    lines.put_yes_or_no("detail_enabled", admin.has_detail());
    lines.put("reqs_per_event", config.turn_requests);
    lines.put_yes_or_no("cas_enabled", config.cas);
    lines.put("tcp_backlog", config.backlog);
    let protocol = match config.protocol {
        Accepts::Any => "auto-negotiate",
        protocol => protocol.name(),
    };
    lines.put("binding_protocol", protocol);
    lines.put_yes_or_no("auth_enabled_sasl", config.sasl);
    match config.auth_file.as_ref().or(config.users.as_ref()) {
        Some(path) => lines.put("auth_enabled_ascii", path.display()),
        None => lines.put("auth_enabled_ascii", "no"),
    }
    lines.put("item_size_max", admin.plan.item_bytes_max);
    lines.put_yes_or_no("maxconns_fast", config.rejects_beyond_max);
    lines.put("hashpower_init", 0);
}

/// There is one slab class, so memory does not move between classes, and items are not divided into
/// chunks.
fn slabs(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    lines.put_yes_or_no("slab_reassign", false);
    lines.put("slab_automove", 0);
    lines.put("slab_automove_ratio", "0.00");
    lines.put("slab_automove_window", 0);
    lines.put("slab_chunk_max", admin.plan.item_bytes_max);
}

fn crawler(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    lines.put_yes_or_no("lru_crawler", admin.has_crawler());
    lines.put("lru_crawler_sleep", 0);
    lines.put("lru_crawler_tocrawl", 0);
    lines.put("tail_repair_time", 0);
    lines.put_yes_or_no(
        "flush_enabled",
        admin.config.permits.has(AdminCommand::FlushAll),
    );
    lines.put_yes_or_no(
        "dump_enabled",
        admin.config.permits.has(AdminCommand::Metadump),
    );
    // See `KeyHasher`.
    lines.put("hash_algorithm", "nh-aes128");
}

/// There is no segmented LRU with its own thread.
fn segments(lines: &mut Lines<'_>) {
    lines.put_yes_or_no("lru_maintainer_thread", false);
    lines.put_yes_or_no("lru_segmented", false);
    lines.put("hot_lru_pct", 0);
    lines.put("warm_lru_pct", 0);
    lines.put("hot_max_factor", "0.00");
    lines.put("warm_max_factor", "0.00");
    lines.put_yes_or_no("temp_lru", false);
    lines.put("temporary_ttl", 0);
}

fn buffers(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let config = &admin.config;
    let idle_timeout_s = config.idle_timeout.map_or(0, |timeout| timeout.as_secs());
    lines.put("idle_timeout", idle_timeout_s);
    lines.put("watcher_logbuf_size", WATCH_BYTES_MAX);
    // Workers write directly into the watchers' buffers.
    lines.put("worker_logbuf_size", 0);
    let buffer_bytes = config.workers * admin.plan.buffer_bytes_per_worker;
    lines.put("read_buf_mem_limit", buffer_bytes);
    lines.put_yes_or_no("track_sizes", false);
    lines.put_yes_or_no("inline_ascii_response", false);
}

/// Items are kept only in memory.
fn storage(lines: &mut Lines<'_>) {
    for name in [
        "ext_item_size",
        "ext_item_age",
        "ext_low_ttl",
        "ext_recache_rate",
        "ext_wbuf_size",
        "ext_compact_under",
        "ext_drop_under",
        "ext_max_sleep",
    ] {
        lines.put(name, 0);
    }
    lines.put("ext_max_frag", "0.00");
    lines.put("slab_automove_freeratio", "0.000");
    lines.put_yes_or_no("ext_drop_unread", false);
}

/// As a build of memcached with TLS shows it, whether that is in use or not.
fn tls(tls: &TlsConfig, lines: &mut Lines<'_>) {
    let path = |path: &Option<PathBuf>, none: &str| {
        path.as_ref()
            .map_or(none.into(), |path| path.display().to_string())
    };
    lines.put_yes_or_no("ssl_enabled", tls.is_enabled);
    lines.put("ssl_chain_cert", path(&tls.chain, UNNAMED));
    lines.put("ssl_key", path(&tls.key, UNNAMED));
    lines.put("ssl_verify_mode", tls.verify.openssl_flags());
    lines.put("ssl_keyformat", tls.key_format as u8);
    lines.put("ssl_ciphers", tls.ciphers.as_deref().unwrap_or("NULL"));
    lines.put("ssl_ca_cert", path(&tls.roots, "NULL"));
    lines.put("ssl_wbuf_size", tls.write_buffer_kib << 10);
    lines.put_yes_or_no("ssl_session_cache", tls.counts_sessions);
    lines.put_yes_or_no("ssl_kernel_tls", false);
    lines.put("ssl_min_version", tls.min_version.name());
}

fn own(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let config = &admin.config;
    lines.put("num_napi_ids", 0);
    let file = config.memory_file.as_deref();
    let file = file.map_or(UNNAMED.into(), std::path::Path::to_string_lossy);
    lines.put("memory_file", file);
    lines.put("client_flags_size", CLIENT_FLAGS_BYTES);
    lines.put("glimmer_version", env!("CARGO_PKG_VERSION"));
    lines.put("glimmer_mode", config.mode);
    let seconds = |time: Option<Duration>| time.map_or(0, |time| time.as_secs());
    lines.put("glimmer_tcp_keepalive", seconds(config.liveness.keepalive));
    let user_timeout = seconds(config.liveness.user_timeout);
    lines.put("glimmer_tcp_user_timeout", user_timeout);
    let access = match config.workers {
        1 => config.access,
        _ => admin.access(),
    };
    lines.put("glimmer_access", access);
    lines.put("glimmer_dispatch", admin.dispatch());
    lines.put("glimmer_table", config.table);
    lines.put("glimmer_evict", config.eviction());
    lines.put("glimmer_evict_for", config.evict_for);
    lines.put("glimmer_lru_threshold", config.lru_threshold);
    lines.put("glimmer_hugepages", config.hugepages);
    let is_denied = |command: &&AdminCommand| !config.permits.has(**command);
    let denied: Vec<_> = AdminCommand::ALL.iter().filter(is_denied).collect();
    let denied: Vec<_> = denied.iter().map(|command| command.name()).collect();
    lines.put("glimmer_disabled_commands", denied.join(","));
    lines.put_yes_or_no("glimmer_pin", config.pin);
    lines.put("glimmer_item_size_hint", config.item_bytes_hint);
    let users = config.users.as_deref();
    let users = users.map_or(UNNAMED.into(), std::path::Path::to_string_lossy);
    lines.put("glimmer_users", users);
    let quotas = admin.tenants().address_quotas();
    lines.put("glimmer_address_connections", quotas.connections);
    lines.put("glimmer_address_requests", quotas.requests);
    lines.put("glimmer_address_bytes", quotas.bytes);
    beyond_memcached(config, lines);
}

/// What is fixed at the start, and memcached does not have.
fn beyond_memcached(config: &Config, lines: &mut Lines<'_>) {
    let port = config.native.first().map_or(0, SocketAddr::port);
    lines.put("glimmer_native_port", port);
    lines.put_yes_or_no("glimmer_native_single_port", config.native_single_port);
    lines.put_yes_or_no("glimmer_native_check_keyhash", config.native_checks_reads);
    let pages: Vec<_> = config.http.iter().map(SocketAddr::to_string).collect();
    match &pages[..] {
        [] => lines.put("glimmer_http", UNNAMED),
        pages => lines.put("glimmer_http", pages.join(",")),
    }
    lines.put("glimmer_accelerate", &config.accelerate);
    lines.put("glimmer_accelerate_slots", config.accelerate_slots);
    lines.put("glimmer_accelerate_policy", config.accelerate_policy);
    lines.put("glimmer_busy_poll", config.busy_poll);
    lines.put("glimmer_slice_bytes", SliceBytes(config.slice_bytes));
    lines.put_yes_or_no("glimmer_lock_memory", config.lock_memory);
    let snapshot = config.snapshot.as_deref();
    let snapshot = snapshot.map_or(UNNAMED.into(), std::path::Path::to_string_lossy);
    lines.put("glimmer_snapshot", snapshot);
}
