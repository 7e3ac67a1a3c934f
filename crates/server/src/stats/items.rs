//! `stats items` and `stats slabs`. There are no slab classes here: all items are of one class, number 1.

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
        "items:1:outofmemory",
        count!(snapshot, table.requests.store_no_memory),
    );
    lines.put(
        "items:1:reclaimed",
        count!(snapshot, table.store.expired_reclaimed),
    );
    lines.put(
        "items:1:crawler_reclaimed",
        count!(snapshot, node.crawler_reclaimed),
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

/// Sizes of items are multiples of this.
const CHUNK_BYTES: u64 = 8;
/// memcached's pages are as large.
const PAGE_BYTES: u64 = 1 << 20;

/// The class has no pages and no chunks of its own; an item counts as a chunk, and what items may lie in as pages.
pub(super) fn write_slabs(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    macro_rules! requests {
        ($($name:ident)+) => {
            $(lines.put(concat!("1:", stringify!($name)), count!(snapshot, table.requests.$name));)+
        };
    }
    lines.put("1:chunk_size", CHUNK_BYTES);
    lines.put(
        "1:total_pages",
        (snapshot.now.table.log_bytes / PAGE_BYTES).max(1),
    );
    lines.put("1:used_chunks", snapshot.now.table.store.items);
    requests!(get_hits cmd_set delete_hits incr_hits decr_hits cas_hits cas_badval touch_hits);
    lines.put("active_slabs", 1);
    lines.put(
        "total_malloced",
        snapshot.now.table.log_bytes + snapshot.now.table.index_bytes,
    );
}
