//! Approximate LRU by reinsertion (MICA §4.3.1): an item that is read goes back to the tail, unless
//! it lies near the tail anyway.
//!
//! Only the partition's writer can put an item back. A read by another core (CREW, CRCW) leaves a
//! mark instead, which counts once, when the item reaches the head. The paper lets such reads count
//! for nothing and has its clients spread reads over the cores; connections of memcached clients
//! stay on one core, so a key whose readers all sit on the wrong one would never count as used.

use super::{AtHead, Evict};
use crate::index::LogId;

/// Least recently used goes first, roughly.
#[derive(Clone, Copy, Debug)]
pub struct ApproxLru {
    /// The share of the log next to the tail in which a read changes nothing, from 0 (every read
    /// reinserts) to 1 (none does).
    threshold: f64,
}

impl ApproxLru {
    /// The threshold unless configured: as good as strict LRU and better, where a lower one fills
    /// the log with dead copies of what is read often (`glimmer bench hit-ratio`).
    pub const THRESHOLD_DEFAULT: f64 = 0.875;

    /// With a threshold from 0 to 1.
    pub fn new(threshold: f64) -> ApproxLru {
        ApproxLru {
            threshold: threshold.clamp(0.0, 1.0),
        }
    }
}

impl Evict for ApproxLru {
    const NAME: &'static str = "lru";
    const READS_COUNTED: u8 = 1;

    #[inline(always)]
    fn reinsert_on_read(&self, distance: u64, len: u64) -> bool {
        distance as f64 > self.threshold * len as f64
    }

    fn at_head(&self, log: LogId, reads: u8, _main_has_room: bool) -> AtHead {
        if reads > 0 {
            AtHead::Keep { log, reads: 0 }
        } else {
            AtHead::Evict
        }
    }
}
