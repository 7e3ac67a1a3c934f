//! `stats settings`: what the server was started with.

use super::Desk;
use super::lines::Lines;
use crate::config::{Mode, Protocol};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

pub(super) fn write(desk: &Desk, lines: &mut Lines<'_>) {
    let config = &desk.config;
    lines.put("maxbytes", config.memory_bytes);
    lines.put("maxconns", config.connections_max);
    let port = |addresses: &[SocketAddr]| addresses.first().map_or(0, SocketAddr::port);
    lines.put("tcpport", port(&desk.tcp()));
    lines.put("udpport", port(desk.udp()));
    lines.put("inter", config.interfaces.as_deref().unwrap_or("NULL"));
    lines.put("verbosity", desk.verbosity.load(Ordering::Relaxed));
    let evicts = config.mode == Mode::Cache;
    lines.put("evictions", if evicts { "on" } else { "off" });
    match &config.unix {
        Some(unix) => {
            lines.put("domain_socket", unix.path.display());
            lines.put("umask", format_args!("{:o}", unix.mode));
        }
        None => lines.put("domain_socket", "NULL"),
    }
    lines.put_yes_or_no("shutdown_command", config.shutdown_command);
    lines.put("num_threads", config.workers);
    lines.put("stat_key_prefix", char::from(config.prefix_delimiter));
    lines.put_yes_or_no("detail_enabled", desk.has_detail());
    lines.put("reqs_per_event", config.turn_requests);
    lines.put_yes_or_no("cas_enabled", config.cas);
    lines.put("tcp_backlog", config.backlog);
    let protocol = match config.protocol {
        Protocol::Auto => "auto-negotiate",
        Protocol::Ascii | Protocol::Binary => config.protocol.name(),
    };
    lines.put("binding_protocol", protocol);
    lines.put_yes_or_no("auth_enabled_sasl", config.sasl);
    match &config.auth_file {
        Some(path) => lines.put("auth_enabled_ascii", path.display()),
        None => lines.put("auth_enabled_ascii", "no"),
    }
    lines.put("item_size_max", desk.plan.item_bytes_max);
    lines.put_yes_or_no("maxconns_fast", config.rejects_beyond_max);
    lines.put_yes_or_no("lru_crawler", desk.has_crawler());
    lines.put_yes_or_no("flush_enabled", config.permits.flush);
    lines.put_yes_or_no("dump_enabled", config.permits.dump);
    let idle_timeout_s = config.idle_timeout.map_or(0, |timeout| timeout.as_secs());
    lines.put("idle_timeout", idle_timeout_s);
    lines.put("hash_algorithm", "xxh3");
    lines.put_yes_or_no("track_sizes", false);
    lines.put_yes_or_no("ssl_enabled", false);
    lines.put("glimmer_version", env!("CARGO_PKG_VERSION"));
    lines.put("glimmer_mode", config.mode);
    lines.put("glimmer_access", config.access);
    lines.put("glimmer_table", config.table);
    lines.put("glimmer_evict", config.eviction());
    lines.put("glimmer_lru_threshold", config.lru_threshold);
    lines.put("glimmer_hugepages", config.hugepages);
    lines.put_yes_or_no("glimmer_pin", config.pin);
    lines.put("glimmer_item_size_hint", config.item_bytes_hint);
}
