//! S3-FIFO as two circular logs (Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for
//! cache eviction, SOSP 2023).
//!
//! New items go to a small log. At its head an item that was read moves on to the main log; the
//! others, among them all that are asked for only once, go after having taken a tenth of the memory
//! for a short while. At the head of the main log an item that was read goes round once more.
//! Nothing is done on a read but counting it in the index entry, at most three times.
//!
//! The paper keeps a queue of *ghosts*, keys that left the small queue unread, so that one which
//! comes back is known. Here the index does it for nothing: the entry of an evicted item is left to
//! dangle, and until it is overwritten or scanned away it says that this tag was here not long ago.
//!
//! One rule is added: as long as the main log has room, or dead items at its head, the small log's
//! items move on unread. A cache that is filled and never read thus keeps all it can hold.

use super::{AtHead, Evict};
use crate::index::{Entry, LogId};

/// Small log, main log, and ghosts in the index.
#[derive(Clone, Copy, Debug, Default)]
pub struct S3Fifo;

impl Evict for S3Fifo {
    const NAME: &'static str = "s3fifo";
    const READS_COUNTED: u8 = Entry::READS_MAX;
    const SMALL_LOG_PERCENT: u64 = 10;
    const GHOST_LAPS: u64 = 9;

    #[inline]
    fn at_head(&self, log: LogId, reads: u8, main_has_room: bool) -> AtHead {
        match log {
            LogId::Small if reads > 0 || main_has_room => AtHead::Keep {
                log: LogId::Main,
                reads: 0,
            },
            LogId::Main if reads > 0 => AtHead::Keep {
                log: LogId::Main,
                reads: reads - 1,
            },
            _ => AtHead::Evict,
        }
    }

    #[inline(always)]
    fn admit(&self, remembered: bool) -> LogId {
        if remembered {
            LogId::Main
        } else {
            LogId::Small
        }
    }
}
