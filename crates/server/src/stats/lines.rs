//! `STAT name value` lines.

use std::fmt::Display;
use std::io::Write;

/// Appends statistics to a reply.
pub(super) struct Lines<'a>(pub &'a mut Vec<u8>);

impl Lines<'_> {
    /// Appends one statistic.
    pub fn put(&mut self, name: &str, value: impl Display) {
        write!(self.0, "STAT {name} {value}\r\n").expect("memory takes every byte");
    }

    /// Appends a setting that is on or off, in memcached's words.
    pub fn put_yes_or_no(&mut self, name: &str, is_on: bool) {
        self.put(name, if is_on { "yes" } else { "no" });
    }

    /// Appends the line after the last statistic.
    pub fn end(self) {
        self.0.extend_from_slice(b"END\r\n");
    }
}
