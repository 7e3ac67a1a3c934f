//! How many items Pelikan's segcache keeps in a given amount of memory. It has no server in this
//! form, so the items are stored from the process that measures.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use glimmer_loadgen::workload::{Workload, value};
use glimmer_measure::machine;
use segcache::{Policy, Segcache, Value};
use serde::Serialize;

/// The crate's default.
const SEGMENT_BYTES: usize = 1 << 20;
/// Bytes of a slot of the index.
const SLOT_BYTES: usize = 8;
/// Overflow buckets per bucket.
const OVERFLOW_FACTOR: f64 = 0.25;
/// Far longer than any measurement; the crate has no unlimited lifetime.
const TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// The crate's largest key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// What was kept.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Kept {
    /// Slots of the index, as a power of two.
    pub hash_power: u8,
    /// Items that were read back.
    pub resident: u64,
    /// Bytes by which the process has grown.
    pub grown_bytes: u64,
}

impl Kept {
    /// Bytes per item.
    pub fn bytes_per_item(&self) -> f64 {
        self.grown_bytes as f64 / self.resident.max(1) as f64
    }
}

/// Stores `items` items in a cache of `memory_bytes`, its index of 2^`hash_power` slots included,
/// and reads all of them back.
///
/// # Errors
///
/// If the memory is too small for the index, or cannot be had, or an item has a wrong value.
pub fn fill(memory_bytes: usize, hash_power: u8, like: &Workload, items: u32) -> Result<Kept> {
    let index_bytes = ((SLOT_BYTES << hash_power) as f64 * (1.0 + OVERFLOW_FACTOR)) as usize;
    let heap_bytes = memory_bytes.saturating_sub(index_bytes) / SEGMENT_BYTES * SEGMENT_BYTES;
    ensure!(
        heap_bytes > 0,
        "{memory_bytes} bytes are too few for segcache's index"
    );
    let resident_bytes = || machine::resident_bytes(std::process::id());
    let (before, _) = resident_bytes()?;
    let mut cache = Segcache::builder()
        .heap_size(heap_bytes)
        .segment_size(SEGMENT_BYTES as i32)
        .hash_power(hash_power)
        .overflow_factor(OVERFLOW_FACTOR)
        .eviction(Policy::Merge {
            max: 8,
            merge: 4,
            compact: 2,
        })
        .build()
        .context("memory for segcache")?;
    let (mut key, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..u64::from(items) {
        key.clear();
        like.key(number).write(&mut key);
        bytes.resize(like.sizes.of(number) as usize, 0);
        value::fill(&mut bytes, number, 0);
        // An item that finds no segment is not stored.
        let _ = cache.insert(&key, &bytes[..], None, TTL);
    }
    let mut resident = 0;
    for number in 0..u64::from(items) {
        key.clear();
        like.key(number).write(&mut key);
        let Some(item) = cache.get(&key) else {
            continue;
        };
        let Value::Bytes(found) = item.value() else {
            anyhow::bail!("segcache returned a number");
        };
        ensure!(
            value::verify(found, number).is_some(),
            "segcache returned a wrong value"
        );
        resident += 1;
    }
    let (after, _) = resident_bytes()?;
    Ok(Kept {
        hash_power,
        resident,
        grown_bytes: after.saturating_sub(before),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_loadgen::workload::Sizes;

    #[test]
    fn it_keeps_what_fits_and_reads_back_what_was_stored() {
        let like = Workload {
            key_bytes: 20,
            sizes: Sizes::Fixed(50),
            ..Workload::default()
        };
        let few = fill(16 << 20, 17, &like, 10_000).unwrap();
        assert_eq!(few.resident, 10_000);
        let many = fill(16 << 20, 17, &like, 400_000).unwrap();
        // Items of 80 bytes, in less than the whole memory.
        let most = (16 << 20) / 80;
        assert!((most / 4..most).contains(&many.resident), "{many:?}");
    }
}
