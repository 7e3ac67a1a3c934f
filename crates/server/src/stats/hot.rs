//! `stats accelerator` and `stats hotkeys`, additions to memcached's statistics. Like `stats
//! workers`, they count since the start and not since the last reset.

use super::ServerAdmin;
use super::lines::Lines;
use glimmer_base::{Moment, shown};
use glimmer_hotset::HotKey;

pub(super) fn write_accelerator(admin: &ServerAdmin, now: Moment, lines: &mut Lines<'_>) {
    let config = &admin.config;
    lines.put("body", config.accelerate.body());
    let Some(accelerator) = admin.accelerator() else {
        return;
    };
    admin.look_at_interface(now);
    let figures = accelerator.figures(now.ms);
    let interface = config.accelerate.interface();
    lines.put("interface", interface.unwrap_or("none"));
    match admin.mode {
        Some(mode) => lines.put("mode", mode),
        None => lines.put("mode", "none"),
    }
    lines.put("policy", config.accelerate_policy);
    let body = &figures.body;
    lines.put("slots", body.slots);
    lines.put("live", body.live);
    lines.put("hits", body.hits);
    for (event, count) in &body.events {
        lines.put(event.name(), count);
    }
    for (name, count) in &body.own {
        lines.put(name, count);
    }
    for (name, count) in [
        ("offers_taken", figures.offers_taken),
        ("offers_refused", figures.offers_refused),
        ("retracts", figures.retracts),
        ("refreshes", figures.refreshes),
        ("evicted", figures.evicted),
        ("quarantined", body.quarantined as u64),
        ("quarantines", figures.quarantines),
        ("credited", figures.credited),
        ("change_ns", figures.prices.change_ns()),
        ("hit_ns", figures.prices.hit_ns()),
    ] {
        lines.put(name, count);
    }
    let reasons: Vec<&str> = body.paused.iter().map(|it| it.name()).collect();
    let reasons = match reasons.is_empty() {
        true => "no".to_owned(),
        false => reasons.join(","),
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
