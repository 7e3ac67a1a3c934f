//! S3-FIFO as two circular logs (Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for
//! cache eviction, SOSP 2023).
//!
//! New items go to a small log. At its head an item that was read moves on to the main log. The
//! others, among them all that are asked for only once, leave after having taken a tenth of the
//! memory for a short while. At the head of the main log an item that was read goes round once
//! more. A read only raises the count in the index entry, at most three times.
//!
//! The paper keeps a queue of *ghosts*, keys that left the small queue unread, so that one which
//! comes back is known. Here the index does that at no cost: the entry of an evicted item is left
//! to dangle, and until it is overwritten or scanned away it says that this tag was here not long
//! ago.
//!
//! One rule is added: as long as the main log has room, or dead items at its head, the small log's
//! items move on unread. A cache that is filled and never read thus keeps all it can hold.

use super::setting::USES_MAX;
use super::{Arrival, AtHead, Rule, Setting};
use crate::index::LogId;

/// Small log, main log, and ghosts in the index.
pub const S3_FIFO: Rule = Rule {
    name: "s3fifo",
    summary: "new items enter a small log of a tenth of the memory; items that are read there \
              move on to the main log, where items that were read since go round again",
    source: "Yang et al., SOSP 2023",
    reads_counted: USES_MAX,
    small_log_percent: 10,
    setting: Setting::S3_FIFO,
    at_head,
    ..Rule::ONE_LOG
};

/// The fate of an item under any [`Setting`].
pub(super) fn at_head(item: Arrival<'_>) -> AtHead {
    let (log, doublings) = (LogId::Main, item.setting.doublings(item.words));
    let is_kept = item.setting.keeps(item.reads, doublings);
    match item.log {
        LogId::Small if is_kept || (item.main_has_room)() => AtHead::Keep {
            log,
            reads: Setting::first_uses(doublings),
        },
        LogId::Main if is_kept => AtHead::Keep {
            log,
            reads: (item.setting).uses_after_lap(item.reads, doublings, (item.draw, item.ages)),
        },
        _ => AtHead::Evict,
    }
}
