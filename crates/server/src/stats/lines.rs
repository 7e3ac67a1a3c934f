//! `STAT name value` lines.

use std::fmt::Display;
use std::io::Write;

/// Appends statistics to a reply.
pub(super) struct Lines<'a>(pub &'a mut Vec<u8>);

impl Lines<'_> {
    /// Appends one statistic. Where there are control characters, such as a line feed in a
    /// path, they become `\u000A` and the like.
    pub fn put(&mut self, name: &str, value: impl Display) {
        let start = self.0.len();
        write!(self.0, "STAT {name} {value}").expect("memory takes every byte");
        if self.0[start..].iter().any(u8::is_ascii_control) {
            let line = self.0.split_off(start);
            for char in String::from_utf8_lossy(&line).chars() {
                match char.is_control() {
                    true => write!(self.0, "\\u{:04X}", u32::from(char)),
                    false => write!(self.0, "{char}"),
                }
                .expect("memory takes every byte");
            }
        }
        self.0.extend_from_slice(b"\r\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_line() {
        let mut out = Vec::new();
        let mut lines = Lines(&mut out);
        lines.put("path", "/tmp/a\r\nEND \u{e9}\\");
        lines.put("plain", "\u{e9}");
        lines.end();
        let said = "STAT path /tmp/a\\u000D\\u000AEND \u{e9}\\\r\nSTAT plain \u{e9}\r\nEND\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), said);
    }
}
