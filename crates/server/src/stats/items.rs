//! `stats items` and `stats slabs`. There are no slab classes: all items belong to one class.

use super::lines::Lines;
use super::{Snapshot, count};
use glimmer_proto::text::dump::CLASS;

/// Item sizes are multiples of this, so it corresponds to memcached's chunk.
pub(super) const CHUNK_BYTES: u64 = 8;
/// The size of memcached's pages.
const PAGE_BYTES: u64 = 1 << 20;

pub(super) fn write_items(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let (table, since) = (&snapshot.now.table, &snapshot.at_reset.table);
    // As in memcached, a class without items has no lines.
    if table.store.items == 0 {
        return;
    }
    let mut put = |name: &str, figure: u64| {
        lines.put(&format!("items:{CLASS}:{name}"), figure);
    };
    // The values of a memcached with an unsegmented LRU: all items are cold.
    put("number", table.store.items);
    put("number_hot", 0);
    put("number_warm", 0);
    put("number_cold", table.store.items);
    put("age_hot", 0);
    put("age_warm", 0);
    let now_s = snapshot.moment.ms / 1000;
    let age = table
        .ages
        .oldest_s
        .map(|second| now_s.saturating_sub(second));
    put("age", age.unwrap_or(0));
    put("mem_requested", table.store.bytes);
    let evicted = count!(snapshot, table.store.evictions);
    put("evicted", evicted);
    put(
        "evicted_nonzero",
        count!(snapshot, table.store.evicted_mortal),
    );
    let evicted_time = table.ages.evicted_after_s.filter(|_| evicted > 0);
    put("evicted_time", evicted_time.unwrap_or(0));
    put(
        "outofmemory",
        count!(snapshot, table.requests.store_no_memory),
    );
    put("tailrepairs", 0);
    put("reclaimed", count!(snapshot, table.store.expired_reclaimed));
    put(
        "expired_unfetched",
        count!(snapshot, table.store.expired_unfetched),
    );
    put(
        "evicted_unfetched",
        count!(snapshot, table.store.evicted_unfetched),
    );
    put("evicted_active", 0);
    put(
        "crawler_reclaimed",
        count!(snapshot, node.crawler_reclaimed),
    );
    put(
        "crawler_items_checked",
        count!(snapshot, node.crawler_items_checked),
    );
    put("lrutail_reflocked", 0);
    put("moves_to_cold", 0);
    put("moves_to_warm", 0);
    put(
        "moves_within_lru",
        count!(snapshot, table.store.reinsertions),
    );
    put("direct_reclaims", 0);
    put("hits_to_hot", 0);
    put("hits_to_warm", 0);
    let hits = |requests: &glimmer_engine::Tally| requests.get_hits + requests.touch_hits;
    put(
        "hits_to_cold",
        hits(&table.requests).wrapping_sub(hits(&since.requests)),
    );
    put("hits_to_temp", 0);
    put(
        "glimmer_index_evicted",
        count!(snapshot, table.store.index_evictions),
    );
}

/// Memory for items is counted in pages, and the unit of item sizes as a chunk.
pub(super) fn write_slabs(snapshot: &Snapshot<'_>, lines: &mut Lines<'_>) {
    let table = &snapshot.now.table;
    let pages = table.log_bytes.div_ceil(PAGE_BYTES);
    let chunks_per_page = PAGE_BYTES / CHUNK_BYTES;
    let chunks = pages * chunks_per_page;
    let used = match is_full(snapshot) {
        true => chunks,
        false => (table.store.bytes / CHUNK_BYTES).min(chunks),
    };
    let mut put = |name: &str, figure: u64| lines.put(&format!("{CLASS}:{name}"), figure);
    put("chunk_size", CHUNK_BYTES);
    put("chunks_per_page", chunks_per_page);
    put("total_pages", pages);
    put("total_chunks", chunks);
    put("used_chunks", used);
    put("free_chunks", chunks - used);
    put("free_chunks_end", 0);
    macro_rules! requests {
        ($($name:ident)+) => {
            $(put(stringify!($name), count!(snapshot, table.requests.$name));)+
        };
    }
    requests!(get_hits cmd_set delete_hits incr_hits decr_hits cas_hits cas_badval touch_hits);
    lines.put("active_slabs", 1);
    lines.put("total_malloced", table.log_bytes + table.index_bytes);
}

/// Whether a new item takes the place of others. From then on, deleted and expired items also keep
/// their space until it is overwritten. In store mode they are freed at once.
fn is_full(snapshot: &Snapshot<'_>) -> bool {
    let store = &snapshot.now.table.store;
    let left = store.evictions + store.expired_reclaimed;
    snapshot.admin.evicts() && left > 0
}
