//! Our own stores, sized for a given number of items.

use glimmer_base::{Expiry, Seed};
use glimmer_store::{
    heap::{History, NewItem},
    memc3::Memc3Config,
    mica_cache::PartitionConfig,
    mica_store::StoreConfig,
};

/// Entries of an index bucket (MICA §4.3.2).
const BUCKET_ENTRIES: usize = 15;
/// Load of the main buckets when all items are stored, and spare buckets per hundred main ones, as
/// in the server's memory plan.
const LOAD_PERCENT: usize = 100;
const SPARE_PERCENT: usize = 50;
const PAGE_BYTES: usize = 4096;
/// Maximum bytes of a growing index per item, including store mode's bookkeeping.
const GROWING_INDEX_BYTES: usize = 20;
/// Largest item in bytes. The items of these measurements are far smaller, and the space is mapped
/// twice.
pub const ITEM_BYTES_MAX: usize = 1024;
/// Maximum bytes of a cuckoo index per item: a segment that was just split is half as full as
/// before.
const CUCKOO_INDEX_BYTES: usize = 14;

/// Bytes of the log per item of these sizes, without flags and expiry.
pub fn log_bytes_per_item(key_bytes: usize, value_bytes: usize) -> usize {
    let (key, value) = (vec![0; key_bytes], vec![0; value_bytes]);
    let item = NewItem {
        key: &key,
        value: [&value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    item.layout().words() * 8
}

/// A partition whose log holds `items` items of these sizes, up to a page, with a matching index.
pub fn partition(
    items: usize,
    key_bytes: usize,
    value_bytes: usize,
    seed: Seed,
) -> PartitionConfig {
    let log_bytes = items * log_bytes_per_item(key_bytes, value_bytes);
    let main_buckets = (items * 100).div_ceil(BUCKET_ENTRIES * LOAD_PERCENT);
    PartitionConfig {
        log_bytes: log_bytes.next_multiple_of(PAGE_BYTES),
        main_buckets,
        spare_buckets: (main_buckets * SPARE_PERCENT).div_ceil(100),
        item_bytes_max: ITEM_BYTES_MAX,
        hasher: seed.into(),
        ..PartitionConfig::default()
    }
}

/// A store-mode partition that holds `items` items of these sizes.
pub fn store_partition(
    items: usize,
    key_bytes: usize,
    value_bytes: usize,
    seed: Seed,
) -> StoreConfig {
    let bytes = items * (log_bytes_per_item(key_bytes, value_bytes) + GROWING_INDEX_BYTES);
    StoreConfig {
        bytes: (bytes + 4 * ITEM_BYTES_MAX).next_multiple_of(PAGE_BYTES),
        item_bytes_max: ITEM_BYTES_MAX,
        hasher: seed.into(),
        ..StoreConfig::default()
    }
}

/// A MemC3 table that holds `items` items of these sizes.
pub fn memc3_table(items: usize, key_bytes: usize, value_bytes: usize, seed: Seed) -> Memc3Config {
    let bytes = items * (log_bytes_per_item(key_bytes, value_bytes) + CUCKOO_INDEX_BYTES);
    let page_bytes = Memc3Config::page_bytes_for(bytes);
    Memc3Config {
        // Pages that are divided into slabs and segments are not all full.
        memory_bytes: bytes + 16 * page_bytes,
        page_bytes,
        item_bytes_max: ITEM_BYTES_MAX,
        hasher: seed.into(),
        ..Memc3Config::default()
    }
}
