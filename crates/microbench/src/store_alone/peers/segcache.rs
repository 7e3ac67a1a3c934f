//! Pelikan's segcache: segments of items that expire together, for one thread. An overwritten item
//! is appended again. When segments run out, some are merged into one that keeps the most
//! frequently read items.

use std::time::Duration;

use segcache::{Policy, Segcache, Value};

use super::{Direct, Session};

/// Length of an item's header in bytes, and the unit of item sizes.
const HEADER_BYTES: usize = 5;
const ROUND_BYTES: usize = 8;
/// The crate's default.
const SEGMENT_BYTES: usize = 1 << 20;
/// Live items take this percentage of the segments, so that overwritten ones have space until they
/// are merged.
const LIVE_PERCENT: usize = 60;
/// Items per bucket of the index. A bucket has eight slots, one of which it needs itself.
const ITEMS_PER_BUCKET: usize = 5;
/// Overflow buckets per bucket.
const OVERFLOW_FACTOR: f64 = 0.5;
/// Far longer than any measurement; the crate has no unlimited lifetime.
const TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// A thread's cache.
pub struct Pelikan(Segcache);

impl Pelikan {
    /// A cache with room for this many items.
    pub fn new(capacity: usize, key_bytes: usize, value_bytes: usize) -> Self {
        let item_bytes = (HEADER_BYTES + key_bytes + value_bytes).next_multiple_of(ROUND_BYTES);
        let heap_bytes = capacity * item_bytes * 100 / LIVE_PERCENT;
        let buckets = (capacity / ITEMS_PER_BUCKET).next_power_of_two();
        let cache = Segcache::builder()
            .heap_size(heap_bytes.next_multiple_of(SEGMENT_BYTES) + 8 * SEGMENT_BYTES)
            .segment_size(SEGMENT_BYTES as i32)
            .hash_power(buckets.ilog2() as u8 + 3)
            .overflow_factor(OVERFLOW_FACTOR)
            .eviction(Policy::Merge {
                max: 8,
                merge: 4,
                compact: 2,
            })
            .build()
            .expect("memory for the segments");
        Pelikan(cache)
    }
}

impl<const K: usize, const V: usize> Session<K, V> for Pelikan {
    #[inline(always)]
    fn get(&mut self, key: &[u8; K]) -> Option<[u8; V]> {
        let item = self.0.get(key)?;
        // A value of a different length is not one of our values, and counts as wrong.
        Some(match item.value() {
            Value::Bytes(bytes) => bytes.try_into().unwrap_or([0xFF; V]),
            Value::U64(_) => [0xFF; V],
        })
    }

    #[inline(always)]
    fn put(&mut self, key: [u8; K], value: [u8; V]) {
        // An item that finds no segment is not stored. A later read misses it and stores it again.
        let _ = self.0.insert(&key, &value[..], None, TTL);
    }

    fn remove(&mut self, key: &[u8; K]) -> bool {
        self.0.delete(key)
    }
}

impl<const K: usize, const V: usize> Direct<K, V> for Pelikan {
    const SHARED: bool = false;
}
