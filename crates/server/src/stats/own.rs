//! `stats glimmer`: statistics that memcached does not have.

use super::lines::Lines;
use super::{Snapshot, count};

pub(super) fn write(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let (admin, now) = (snapshot.admin, &snapshot.now);
    lines.put("mode", admin.config.mode);
    lines.put("access", admin.config.table_access());
    lines.put("table", admin.config.table);
    lines.put("evict", admin.config.eviction());
    lines.put("partitions", admin.plan.partitions);
    lines.put("log_bytes", now.table.log_bytes);
    lines.put("buffer_bytes", now.node.buffer_bytes);
    lines.put(
        "index_evictions",
        count!(snapshot, table.store.index_evictions),
    );
    lines.put("index_spare_buckets_used", now.table.store.spares_used);
    lines.put(
        "stale_entries_removed",
        count!(snapshot, table.store.stale_removed),
    );
    lines.put("stores_refused", count!(snapshot, table.store.refused));
    lines.put("items_moved", count!(snapshot, table.store.moved));
    for (name, figure) in [
        (
            "index_buckets_added",
            count!(snapshot, table.store.buckets_added),
        ),
        (
            "index_buckets_merged",
            count!(snapshot, table.store.buckets_merged),
        ),
    ] {
        lines.put(name, figure);
    }
    lines.put("reinsertions", count!(snapshot, table.store.reinsertions));
    lines.put(
        "in_place_updates",
        count!(snapshot, table.store.in_place_updates),
    );
    lines.put(
        "optimistic_retries",
        count!(snapshot, table.requests.optimistic_retries),
    );
    let (requests, batches) = (
        count!(snapshot, node.requests),
        count!(snapshot, node.batches),
    );
    lines.put("requests", requests);
    lines.put("batches", batches);
    if batches > 0 {
        lines.put(
            "batch_mean",
            format!("{:.2}", requests as f64 / batches as f64),
        );
    }
    lines.put("requests_crossed", count!(snapshot, node.requests_crossed));
    lines.put(
        "forwarded_batches",
        count!(snapshot, node.forwarded_batches_sent),
    );
    lines.put("values_refused", count!(snapshot, node.values_refused));
    lines.put("stalled_kicks", count!(snapshot, node.stalled_kicks));
    lines.put("turns", count!(snapshot, node.turns));
    for (name, figure) in [
        (
            "datagrams_received",
            count!(snapshot, node.datagrams_received),
        ),
        ("datagrams_sent", count!(snapshot, node.datagrams_sent)),
        (
            "datagrams_dropped",
            count!(snapshot, node.datagrams_dropped),
        ),
        ("datagrams_unsent", count!(snapshot, node.datagrams_unsent)),
        (
            "datagrams_overflowed",
            count!(snapshot, node.datagrams_overflowed),
        ),
        ("accept_failures", count!(snapshot, node.accept_failures)),
        ("log_lines_lost", admin.log.lost()),
    ] {
        lines.put(name, figure);
    }
}
