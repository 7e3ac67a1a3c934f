//! `STAT name value` lines.

use std::fmt::Display;
use std::io::Write;

/// Writes lines of figures to the end of a reply.
pub(super) struct Lines<'a>(pub &'a mut Vec<u8>);

impl Lines<'_> {
    /// One figure.
    pub fn put(&mut self, name: &str, value: impl Display) {
        write!(self.0, "STAT {name} {value}\r\n").expect("memory takes every byte");
    }

    /// A setting that is on or off, in memcached's words.
    pub fn put_yes_or_no(&mut self, name: &str, is_on: bool) {
        self.put(name, if is_on { "yes" } else { "no" });
    }

    /// The line behind the last figure.
    pub fn end(self) {
        self.0.extend_from_slice(b"END\r\n");
    }
}
