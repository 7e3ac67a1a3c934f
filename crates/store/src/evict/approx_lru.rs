//! Approximate LRU by reinsertion (MICA §4.3.1): an item that is read goes back to the tail, unless
//! it lies near the tail anyway.
//!
//! Only the partition's writer can put an item back. A read by another core (CREW, CRCW) leaves a
//! mark instead, which counts once, when the item reaches the head. The paper lets such reads count
//! for nothing and has its clients spread reads over the cores. Connections of memcached clients
//! stay on one core, so a key whose readers all sit on the wrong core would never count as used.
//!
//! The default threshold keeps as much as strict LRU does and more. A lower one fills the log with
//! dead copies of what is read often (`glimmer bench hit-ratio`).

use super::{CLOCK, Rule};

/// The least recently used item goes first, roughly.
pub const LRU: Rule = Rule {
    name: "lru",
    summary: "an item that is read moves back to the tail of the log, unless it already lies in \
              the newest part (`--lru-threshold`, 0.875 by default)",
    source: "MICA §4.3.1",
    reads_counted: 1,
    reinsertion_threshold: Some(0.875),
    is_paced: true,
    at_head: CLOCK.at_head,
    ..Rule::ONE_LOG
};
