//! 2Q as two circular logs (Johnson, Shasha: 2Q: a low overhead high performance buffer management
//! replacement algorithm, VLDB 1994).
//!
//! New items go to a small log of a quarter of the memory, and leave it at its head whether they
//! were read or not: uses in quick succession say little about later ones. An item that is stored
//! again while the index remembers it has proved itself, and goes to the main log. The paper
//! remembers as many keys as half of the memory holds, which are two laps of the small log. Its
//! main queue is LRU; here it is CLOCK, so that a read moves nothing.
//!
//! As long as the main log has room, the small log's items move on to it, as they do under S3-FIFO.

use super::{Arrival, AtHead, CLOCK, Rule, Setting};
use crate::index::LogId;

/// A probation log, ghosts, and CLOCK for what comes back.
pub const TWO_Q: Rule = Rule {
    name: "2q",
    summary: "new items enter a small log of a quarter of the memory and leave from it, read or \
              not; items that come back soon afterwards enter the main log, under CLOCK",
    source: "Johnson and Shasha, VLDB 1994",
    reads_counted: 1,
    small_log_percent: 25,
    setting: Setting {
        ghost_laps: 2,
        ..Setting::S3_FIFO
    },
    at_head,
    ..Rule::ONE_LOG
};

fn at_head(item: Arrival<'_>) -> AtHead {
    match item.log {
        LogId::Small if (item.main_has_room)() => AtHead::Keep {
            log: LogId::Main,
            reads: 0,
        },
        LogId::Small => AtHead::Evict,
        LogId::Main => (CLOCK.at_head)(item),
    }
}
