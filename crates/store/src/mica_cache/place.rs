//! Places of large items in the logs, and their names.

use crate::heap::Offset;
use crate::index::LogId;

/// A place between a log's head and its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The log.
    pub id: LogId,
    /// Where it begins.
    pub offset: Offset,
    /// Its length.
    pub words: u64,
}

/// What a place is called among the table's drafts and loans.
pub(super) fn name_of(id: LogId, offset: Offset) -> u64 {
    offset.raw() << 1 | id as u64
}

/// The place of this name.
pub(super) fn named(name: u64) -> (LogId, Offset) {
    let id = match name & 1 {
        0 => LogId::Main,
        _ => LogId::Small,
    };
    (id, Offset::from_raw(name >> 1))
}

const _: () = assert!(LogId::Main as u64 == 0 && LogId::Small as u64 == 1);
