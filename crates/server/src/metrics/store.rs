//! Items, memory, and what leaves it.

use super::family::{Family, In};
use crate::stats::Kind;

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::gauge("glimmer_items", In::Units,
        "Items in the cache",
        |source, out| out.put(source.figures.table().store.items)),
    Family::counter("glimmer_items_stored", In::Units,
        "Items stored",
        |source, out| out.put(source.figures.table().store.stored)),
    Family::gauge("glimmer_item_memory", In::Bytes,
        "Memory that items take, with their keys and headers",
        |source, out| out.put(source.figures.table().store.bytes)),
    Family::gauge("glimmer_dead_memory", In::Bytes,
        "Memory of deleted and replaced items that is used again before live items leave",
        |source, out| out.put(source.figures.table().store.dead_bytes)),
    Family::gauge("glimmer_uploads", In::Units,
        "Large values that are being received where they will lie in memory for items, and places \
        that keep commands of transactions there",
        |source, out| out.put(source.figures.table().uploads.count)),
    Family::gauge("glimmer_upload_memory", In::Bytes,
        "Bytes of these values and places, whether they have arrived or not",
        |source, out| out.put(source.figures.table().uploads.bytes)),
    Family::gauge("glimmer_memory_limit", In::Bytes,
        "The memory limit (-m)",
        |source, out| out.put(source.figures.config.memory_bytes)),
    Family::gauge("glimmer_memory", In::Bytes,
        "How the memory is spent: room for items, the index, buffers of connections that are in \
         use or free, the accelerator, and packets past the kernel's stack",
        |source, out| {
            let (table, node) = (source.figures.table(), source.figures.node());
            out.one("part", "items", table.log_bytes);
            out.one("part", "index", table.index_bytes);
            let used = node.buffer_bytes.saturating_sub(node.buffer_bytes_free);
            out.one("part", "connections", used);
            out.one("part", "connections_free", node.buffer_bytes_free);
            out.one("part", "accelerator", source.figures.plan.accelerator_bytes);
            out.one("part", "packets", source.figures.plan.packet_bytes);
        }),
    Family::gauge("glimmer_connection_memory_limit", In::Bytes,
        "Memory that the buffers of all connections may take",
        |source, out| {
            let figures = &source.figures;
            out.put(figures.config.workers * figures.plan.buffer_bytes_per_worker);
        }),
    Family::gauge("glimmer_item_size_limit", In::Bytes,
        "The largest item (-I)",
        |source, out| out.put(source.figures.plan.item_bytes_max)),
    Family::gauge("glimmer_partitions", In::Units,
        "Partitions of the store",
        |source, out| out.put(source.figures.plan.partitions)),
    Family::counter("glimmer_evictions", In::Units,
        "Live items that left to make room: in memory, or in a full bucket of the index",
        |source, out| {
            let of = &source.figures.table().store;
            let index = of.index_evictions;
            let memory = of.evictions.saturating_sub(index);
            out.one("reason", "memory", source.rising.evicted_from_memory.at_least(memory));
            out.one("reason", "index", index);
        }),
    Family::counter("glimmer_evictions_unfetched", In::Units,
        "Evicted items that no client had read since they were stored",
        |source, out| out.put(source.figures.table().store.evicted_unfetched)),
    Family::counter("glimmer_evictions_with_expiry", In::Units,
        "Evicted items that had an expiry time",
        |source, out| out.put(source.figures.table().store.evicted_mortal)),
    Family::gauge("glimmer_eviction_age", In::Seconds,
        "For how long the item that was evicted last had been in memory",
        |source, out| {
            if let Some(age) = source.figures.table().ages.evicted_after_s {
                out.put(age);
            }
        }),
    Family::gauge("glimmer_oldest_item_age", In::Seconds,
        "How long ago the oldest item in memory was stored",
        |source, out| {
            if let Some(second) = source.figures.table().ages.oldest_s {
                out.put((source.figures.now.ms / 1000).saturating_sub(second));
            }
        }),
    Family::counter("glimmer_reinsertions", In::Units,
        "Items that the eviction rule kept when their memory was wanted",
        |source, out| out.put(source.figures.table().store.reinsertions)),
    Family::counter("glimmer_expirations", In::Units,
        "Expired items whose memory was used again",
        |source, out| out.put(source.figures.table().store.expired_reclaimed)),
    Family::counter("glimmer_expirations_unfetched", In::Units,
        "Expired items that no client had read since they were stored",
        |source, out| out.put(source.figures.table().store.expired_unfetched)),
    Family::counter("glimmer_crawler_items_checked", In::Units,
        "Items that crawls have examined",
        |source, out| out.put(source.figures.node().crawler_items_checked)),
    Family::counter("glimmer_crawler_items_removed", In::Units,
        "Expired items that crawls have removed",
        |source, out| out.put(source.figures.node().crawler_reclaimed)),
    Family::counter("glimmer_in_place_updates", In::Units,
        "Stores that wrote over the old value",
        |source, out| out.put(source.figures.table().store.in_place_updates)),
    Family::gauge("glimmer_index_spare_buckets", In::Units,
        "Buckets of the index in use as extensions of full ones",
        |source, out| out.put(source.figures.table().store.spares_used)),
    Family::counter("glimmer_index_stale_entries_removed", In::Units,
        "Entries of the index removed because their item was overwritten",
        |source, out| out.put(source.figures.table().store.stale_removed)),
    Family::counter("glimmer_index_buckets_added", In::Units,
        "Buckets by which the index grew",
        |source, out| out.put(source.figures.table().store.buckets_added)),
    Family::counter("glimmer_index_buckets_merged", In::Units,
        "Buckets by which the index shrank",
        |source, out| out.put(source.figures.table().store.buckets_merged)),
    Family::gauge("glimmer_items_restored", In::Units,
        "Items that were in the file of -e when the server started",
        |source, out| out.put(source.figures.table().store.restored)),
    Family::gauge("glimmer_items_lost", In::Units,
        "Items in that file that were not whole, because the process before was ended by force",
        |source, out| out.put(source.figures.table().store.lost)),
    Family::counter("glimmer_items_overflowed", In::Units,
        "Items stored in the chain of a second hash, in store mode",
        |source, out| out.put(source.figures.table().store.overflowed)),
    Family::counter("glimmer_items_moved", In::Units,
        "Items moved to join free memory, in store mode",
        |source, out| out.put(source.figures.table().store.moved)),
    Family::gauge("glimmer_evict_setting_info", In::Units,
        "The setting that --evict adaptive has chosen",
        |source, out| {
            if let Some(name) = source.figures.texts.get(Kind::Glimmer, "evict_setting") {
                out.with([("setting", name.to_owned().into())], 1u64);
            }
        }),
    Family::counter("glimmer_evict_setting_changes", In::Units,
        "How often --evict adaptive chose another setting",
        |source, out| {
            if let Some(count) = source.figures.texts.number(Kind::Glimmer, "evict_changes") {
                out.put(count);
            }
        }),
    Family::gauge("glimmer_evict_estimated_hit", In::Ratio,
        "The hit ratio of a simulated cache with each setting of --evict adaptive",
        |source, out| {
            let texts = &source.figures.texts;
            let all = texts.get(Kind::Glimmer, "evict_estimates").unwrap_or_default();
            for (name, ratio) in all.split(' ').filter_map(|each| each.split_once('=')) {
                if let Ok(ratio) = ratio.parse::<f64>() {
                    out.with([("setting", name.to_owned().into())], ratio);
                }
            }
        }),
];
