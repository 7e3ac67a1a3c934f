//! `stats accelerator` and `stats hotkeys`, additions to memcached's statistics. Like `stats
//! workers`, they count since the start and not since the last reset.

use super::ServerAdmin;
use super::lines::Lines;
use glimmer_base::{Moment, shown};
use glimmer_node::HotKey;

pub(super) fn write_accelerator(admin: &ServerAdmin, now: Moment, lines: &mut Lines<'_>) {
    let config = &admin.config;
    lines.put("body", config.accelerate.body());
    let Some(accelerator) = admin.accelerator() else {
        return;
    };
    let figures = accelerator.figures(now.ms);
    let interface = config.accelerate.interface();
    lines.put("interface", interface.unwrap_or("none"));
    match admin.mode {
        Some(mode) => lines.put("mode", mode),
        None => lines.put("mode", "none"),
    }
    lines.put("policy", config.accelerate_policy);
    lines.put("slots", figures.slots);
    lines.put("live", figures.live);
    lines.put("hits", figures.hits);
    for event in &figures.events {
        lines.put(event.name, event.count);
    }
    if let Some(device) = figures.device {
        lines.put("cycles", device.cycles);
        lines.put("bypassed_write_mode", device.bypassed);
        lines.put("defer_high_water", device.defer_high_water);
    }
    for (name, count) in [
        ("offers_taken", figures.offers_taken),
        ("offers_refused", figures.offers_refused),
        ("retracts", figures.retracts),
        ("refreshes", figures.refreshes),
        ("evicted", figures.evicted),
        ("quarantined", figures.quarantined as u64),
        ("quarantines", figures.quarantines),
        ("credited", figures.credited),
        ("change_ns", figures.prices.change_ns()),
        ("hit_ns", figures.prices.hit_ns()),
    ] {
        lines.put(name, count);
    }
    let reasons = match figures.paused.is_empty() {
        true => "no".to_owned(),
        false => figures.paused.join(","),
    };
    lines.put("paused", reasons);
}

pub(super) fn write_keys(admin: &ServerAdmin, now: Moment, lines: &mut Lines<'_>) {
    for HotKey {
        key,
        value_bytes,
        reads_per_s,
        ..
    } in admin.hot_keys(now)
    {
        let key = shown::visible(&key);
        lines.put(&key, format_args!("{reads_per_s:.0}/s {value_bytes} B"));
    }
}
