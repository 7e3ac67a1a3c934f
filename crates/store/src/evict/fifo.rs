//! First in, first out: what a circular log does by itself (MICA §4.3.1).

use super::Rule;

/// The oldest item goes, read or not.
pub const FIFO: Rule = Rule {
    name: "fifo",
    summary: "the oldest item leaves, read or not",
    source: "MICA §4.3.1",
    ..Rule::ONE_LOG
};
