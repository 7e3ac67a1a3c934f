//! Items and bytes by key prefix (`stats prefix`), counted in a walk over all items, with the
//! requests of a sample.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use glimmer_base::limits::{PREFIXES_HELD_MAX, PREFIXES_SHOWN_MAX, REPORT_BYTES_HIGH};
use glimmer_base::shown;
use glimmer_engine::Listed;

use super::guard::DumpGuard;
use super::observe::{Usage, keep_largest};

/// Counts by prefix, and then the reply.
pub(crate) struct Survey {
    usage: Usage,
    held: BTreeMap<Box<[u8]>, Held>,
    /// What is left of the reply, from its end on, once it has begun.
    lines: Option<Vec<(Box<[u8]>, Held)>>,
    /// The right to gather, which one client has at a time.
    guard: Option<DumpGuard>,
}

/// Items whose keys have a prefix.
#[derive(Clone, Copy, Default)]
struct Held {
    items: u64,
    bytes: u64,
}

impl Survey {
    /// For a reply with these counts of requests, which also know the delimiter.
    pub fn new(usage: Usage) -> Survey {
        Survey {
            usage,
            held: BTreeMap::new(),
            lines: None,
            guard: None,
        }
    }

    /// Takes the right to gather. Returns whether it has it.
    pub fn may_gather(&mut self, take: impl FnOnce() -> Option<DumpGuard>) -> bool {
        if self.guard.is_none() {
            self.guard = take();
        }
        self.guard.is_some()
    }

    /// Whether it has the right to gather.
    pub fn has_right(&self) -> bool {
        self.guard.is_some()
    }

    /// Counts an item.
    pub fn visit(&mut self, item: &Listed<'_>) {
        self.count(item.key, item.heap_bytes as u64);
    }

    fn count(&mut self, key: &[u8], bytes: u64) {
        let Some(prefix) = self.usage.prefix_of(key) else {
            return;
        };
        let held = match self.held.get_mut(prefix) {
            Some(held) => held,
            None => {
                if self.held.len() >= PREFIXES_HELD_MAX {
                    keep_largest(&mut self.held, |held| held.bytes);
                }
                self.held.entry(prefix.into()).or_default()
            }
        };
        held.items += 1;
        held.bytes += bytes;
    }

    /// Appends the next piece of the reply: about [`REPORT_BYTES_HIGH`] bytes. Returns whether it
    /// was the last.
    pub fn send(&mut self, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        let held = &mut self.held;
        let lines = self.lines.get_or_insert_with(|| {
            let mut lines: Vec<_> = std::mem::take(held).into_iter().collect();
            lines.sort_by_key(|(_, held)| Reverse(held.bytes));
            lines.truncate(PREFIXES_SHOWN_MAX);
            lines.reverse();
            lines
        });
        while let Some((prefix, Held { items, bytes })) = lines.pop() {
            let requests = self.usage.of(&prefix);
            let (gets, hits, sets) = (requests.gets, requests.hits, requests.sets);
            out.extend_from_slice(b"PREFIX ");
            shown::put_visible(out, &prefix);
            let counts = format_args!("get {gets} hit {hits} set {sets}");
            write!(out, " items {items} bytes {bytes} {counts}\r\n")
                .expect("memory takes every byte");
            if out.len() - begin >= REPORT_BYTES_HIGH && !lines.is_empty() {
                return false;
            }
        }
        out.extend_from_slice(b"END\r\n");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(survey: &mut Survey) -> String {
        let mut reply = Vec::new();
        loop {
            let begin = reply.len();
            let is_last = survey.send(&mut reply);
            assert!(reply.len() - begin <= REPORT_BYTES_HIGH + 400);
            if is_last {
                return String::from_utf8(reply).unwrap();
            }
        }
    }

    #[test]
    fn the_largest_come_first() {
        let mut survey = Survey::new(Usage::new(b':'));
        for (key, bytes) in [(&b"a:1"[..], 10), (b"b:1", 30), (b"a:2", 10), (b"c", 99)] {
            survey.count(key, bytes);
        }
        let expected = "PREFIX b items 1 bytes 30 get 0 hit 0 set 0\r\n\
            PREFIX a items 2 bytes 20 get 0 hit 0 set 0\r\nEND\r\n";
        assert_eq!(reply(&mut survey), expected);
    }

    #[test]
    fn a_large_prefix_is_counted_exactly_among_many_small_ones() {
        let mut survey = Survey::new(Usage::new(b':'));
        for number in 0..5 * PREFIXES_HELD_MAX {
            survey.count(b"large:1", 10);
            survey.count(format!("{number:0200}:1").as_bytes(), 10);
            assert!(survey.held.len() <= PREFIXES_HELD_MAX);
        }
        let reply = reply(&mut survey);
        let items = 5 * PREFIXES_HELD_MAX;
        let first = format!("PREFIX large items {items} bytes {} get 0", 10 * items);
        assert!(reply.starts_with(&first), "{}", &reply[..80]);
        assert_eq!(reply.lines().count(), PREFIXES_SHOWN_MAX + 1);
    }
}
