//! `stats items` and `stats slabs`. There are no slab classes here: all items are of one class, number 1, and it has no slabs.

use super::lines::Lines;
use super::{Snapshot, count};

pub(super) fn write_items(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let table = &snapshot.now.table;
    // As in memcached, a class without items has no lines.
    if table.store.items == 0 {
        return;
    }
    lines.put("items:1:number", table.store.items);
    lines.put("items:1:mem_requested", table.store.bytes);
    lines.put("items:1:evicted", count!(snapshot, table.store.evictions));
    lines.put(
        "items:1:reclaimed",
        count!(snapshot, table.store.expired_reclaimed),
    );
    lines.put(
        "items:1:glimmer_index_evicted",
        count!(snapshot, table.store.index_evictions),
    );
    lines.put(
        "items:1:glimmer_reinserted",
        count!(snapshot, table.store.reinsertions),
    );
}

pub(super) fn write_slabs(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    lines.put("active_slabs", 0);
    lines.put(
        "total_malloced",
        snapshot.now.table.log_bytes + snapshot.now.table.index_bytes,
    );
}
