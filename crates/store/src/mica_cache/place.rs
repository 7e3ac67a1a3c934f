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

impl Place {
    /// Where it ends. That need not be where something begins: the lap may end there.
    pub fn end(&self) -> u64 {
        self.offset.raw() + self.words
    }

    /// Whether the two have words in common, or lie side by side in one lap.
    pub fn adjoins(&self, other: &Place) -> bool {
        self.id == other.id && self.offset.raw() <= other.end() && other.offset.raw() <= self.end()
    }

    /// This place together with one that adjoins it.
    pub fn with(&self, other: &Place) -> Place {
        let from = self.offset.raw().min(other.offset.raw());
        Place {
            id: self.id,
            offset: Offset::from_raw(from),
            words: self.end().max(other.end()) - from,
        }
    }

    /// The first `words` words, and the rest.
    pub fn split(self, words: u64) -> (Place, Place) {
        let rest = Place {
            offset: Offset::from_raw(self.offset.raw() + words),
            words: self.words - words,
            ..self
        };
        (Place { words, ..self }, rest)
    }
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
