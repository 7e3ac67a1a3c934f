//! First in, first out: what a circular log does by itself (MICA §4.3.1).

use super::{AtHead, Evict};
use crate::index::LogId;

/// The oldest item goes, read or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Evict for Fifo {
    const NAME: &'static str = "fifo";
    const READS_COUNTED: u8 = 0;

    fn at_head(&self, _log: LogId, _reads: u8, _main_has_room: bool) -> AtHead {
        AtHead::Evict
    }
}
