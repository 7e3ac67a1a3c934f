//! A complete line, and the limits of values.

use super::step::{After, Step};
use glimmer_base::limits::ITEM_BYTES_DEFAULT;

/// The limits of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest item in bytes, as memcached counts it; see [`Limits::value_bytes_max`].
    pub item_bytes_max: usize,
}

impl Limits {
    /// What memcached adds to key and value for an item's size: its header (48), a CAS unique (8),
    /// the byte after the key, and the value's line end (2).
    const ITEM_OVERHEAD_BYTES: usize = 48 + 8 + 1 + 2;
    /// Additional bytes for flags other than zero.
    const FLAGS_BYTES: usize = 4;

    /// Largest value in bytes of an item with this key and these flags. Exactly the same as in
    /// memcached with the same item limit, so that clients meet the limit at the same length.
    pub fn value_bytes_max(&self, key_bytes: usize, flags: u32) -> usize {
        let flags_bytes = if flags == 0 { 0 } else { Self::FLAGS_BYTES };
        self.item_bytes_max
            .saturating_sub(Self::ITEM_OVERHEAD_BYTES + flags_bytes + key_bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            item_bytes_max: ITEM_BYTES_DEFAULT,
        }
    }
}

/// A complete line and its context.
pub(crate) struct Line<'a> {
    /// The line without its end.
    pub text: &'a [u8],
    /// Its length in bytes, including its line end.
    pub used: usize,
    /// The input from the start of the line.
    pub input: &'a [u8],
}

impl Line<'_> {
    /// Refuses the line and continues after it.
    pub fn refuse(&self, line: &'static str) -> Step<'static> {
        Step::Refuse {
            used: self.used,
            line,
            then: After::Continue,
        }
    }
}
