//! `stats settings`: what the server was started with.

use super::Desk;
use super::lines::Lines;
use std::sync::atomic::Ordering;

pub(super) fn write(desk: &Desk, lines: &mut Lines<'_>) {
    let config = &desk.config;
    lines.put("maxbytes", config.memory_bytes);
    lines.put("maxconns", config.connections_max);
    if let Some(address) = desk.addresses().first() {
        lines.put("tcpport", address.port());
    }
    lines.put("udpport", 0);
    let interfaces: Vec<String> = desk
        .addresses()
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    lines.put("inter", interfaces.join(","));
    lines.put("verbosity", desk.verbosity.load(Ordering::Relaxed));
    lines.put("evictions", "on");
    lines.put("domain_socket", "NULL");
    lines.put_yes_or_no("shutdown_command", false);
    lines.put("num_threads", config.workers);
    lines.put_yes_or_no("detail_enabled", false);
    lines.put_yes_or_no("cas_enabled", true);
    lines.put("tcp_backlog", crate::BACKLOG);
    lines.put("binding_protocol", "ascii");
    lines.put_yes_or_no("auth_enabled_sasl", false);
    lines.put_yes_or_no("auth_enabled_ascii", false);
    lines.put("item_size_max", desk.plan.item_bytes_max);
    lines.put_yes_or_no("maxconns_fast", true);
    lines.put_yes_or_no("lru_crawler", false);
    lines.put_yes_or_no("flush_enabled", true);
    lines.put_yes_or_no("dump_enabled", false);
    lines.put("hash_algorithm", "xxh3");
    lines.put_yes_or_no("track_sizes", false);
    lines.put_yes_or_no("ssl_enabled", false);
    lines.put("glimmer_version", env!("CARGO_PKG_VERSION"));
    lines.put("glimmer_access", config.access);
    lines.put("glimmer_evict", config.evict);
    lines.put("glimmer_lru_threshold", config.lru_threshold);
    lines.put("glimmer_hugepages", config.hugepages);
    lines.put_yes_or_no("glimmer_pin", config.pin);
    lines.put("glimmer_item_size_hint", config.item_bytes_hint);
}
