//! Counts by key prefix (`stats detail`).

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Bound;

use glimmer_base::limits::{PREFIXES_BYTES_MAX, REPORT_BYTES_HIGH};
use glimmer_base::shown;

use super::change::Asked;

/// Counts of requests for keys with a prefix, which is the part before the delimiter. Keys without
/// one are not counted, and neither are prefixes beyond the limit.
pub(super) struct Prefixes {
    delimiter: u8,
    most: usize,
    /// Bytes left for further prefixes.
    bytes_left: usize,
    counts: BTreeMap<Box<[u8]>, Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

impl Prefixes {
    pub fn new(delimiter: u8, most: usize) -> Prefixes {
        Prefixes {
            delimiter,
            most,
            bytes_left: PREFIXES_BYTES_MAX,
            counts: BTreeMap::new(),
        }
    }

    /// Counts a request for a key. `was_there` says whether the key had an item.
    pub fn count(&mut self, key: &[u8], asked: Asked, was_there: bool) {
        // What has no count takes no room.
        if matches!(asked, Asked::Count | Asked::Look) {
            return;
        }
        let Some(end) = memchr::memchr(self.delimiter, key) else {
            return;
        };
        let prefix = &key[..end];
        if !self.counts.contains_key(prefix) {
            let shown_bytes = shown::visible(prefix).len();
            if self.counts.len() >= self.most || shown_bytes > self.bytes_left {
                return;
            }
            self.bytes_left -= shown_bytes;
            self.counts.insert(prefix.into(), Counts::default());
        }
        let Some(counts) = self.counts.get_mut(prefix) else {
            return;
        };
        match asked {
            Asked::Fetch => {
                counts.gets += 1;
                counts.hits += u64::from(was_there);
            }
            Asked::Store(_) => counts.sets += 1,
            Asked::Delete(_) => counts.deletes += 1,
            Asked::Count | Asked::Look => {}
        }
    }

    pub fn clear(&mut self) {
        self.counts.clear();
        self.bytes_left = PREFIXES_BYTES_MAX;
    }

    /// Appends counts, from the first prefix after this one on, or from the first of all: at most
    /// [`REPORT_BYTES_HIGH`] bytes and a line. Returns the last prefix if there are more.
    pub fn dump(&self, after: Option<&[u8]>, out: &mut Vec<u8>) -> Option<Box<[u8]>> {
        let begin = out.len();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (prefix, counts) in self.counts.range::<[u8], _>((from, Bound::Unbounded)) {
            let Counts {
                gets,
                hits,
                sets,
                deletes,
            } = counts;
            out.extend_from_slice(b"PREFIX ");
            shown::put_visible(out, prefix);
            write!(out, " get {gets} hit {hits} set {sets} del {deletes}\r\n")
                .expect("memory takes every byte");
            if out.len() - begin >= REPORT_BYTES_HIGH {
                return Some(prefix.clone());
            }
        }
        out.extend_from_slice(b"END\r\n");
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_within_bounds() {
        let mut prefixes = Prefixes::new(b':', 2);
        prefixes.count(b"a:1", Asked::Fetch, true);
        prefixes.count(b"a:2", Asked::Fetch, false);
        prefixes.count(b"b:", Asked::Store("set"), false);
        prefixes.count(b"c:", Asked::Store("set"), false);
        prefixes.count(b"none", Asked::Delete("delete"), false);
        prefixes.count(b"d:", Asked::Count, true);
        prefixes.count(b"e:", Asked::Look, true);
        prefixes.count(b"b:x:y", Asked::Delete("delete"), true);
        let mut out = Vec::new();
        assert_eq!(prefixes.dump(None, &mut out), None);
        let expected =
            "PREFIX a get 2 hit 1 set 0 del 0\r\nPREFIX b get 0 hit 0 set 1 del 1\r\nEND\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn counts_are_shown_in_parts() {
        let mut prefixes = Prefixes::new(b':', usize::MAX);
        for number in 0..1000 {
            let key = format!("{number:0100}:x");
            prefixes.count(key.as_bytes(), Asked::Fetch, true);
        }
        let (mut out, mut after, mut parts) = (Vec::new(), None, 0);
        loop {
            let begin = out.len();
            after = prefixes.dump(after.as_deref(), &mut out);
            parts += 1;
            assert!(out.len() - begin <= REPORT_BYTES_HIGH + 200);
            if after.is_none() {
                break;
            }
        }
        assert!(parts > 10);
        let lines: Vec<_> = out.split(|&byte| byte == b'\n').collect();
        assert_eq!(lines.len(), 1000 + 2, "each prefix once, and the end");
        assert!(lines.is_sorted_by(|one, other| one < other
            || !one.starts_with(b"PREFIX")
            || !other.starts_with(b"PREFIX")));
    }

    #[test]
    fn long_prefixes_are_counted_within_bounds() {
        let mut prefixes = Prefixes::new(b':', usize::MAX);
        let count_all = |prefixes: &mut Prefixes| {
            for number in 0..PREFIXES_BYTES_MAX / 100 {
                let key = format!("{number:0200}:x");
                prefixes.count(key.as_bytes(), Asked::Fetch, true);
            }
            prefixes
                .counts
                .keys()
                .map(|prefix| prefix.len())
                .sum::<usize>()
        };
        let bytes = count_all(&mut prefixes);
        assert!((PREFIXES_BYTES_MAX - 200..=PREFIXES_BYTES_MAX).contains(&bytes));
        prefixes.clear();
        assert_eq!(count_all(&mut prefixes), bytes, "there is room again");
    }
}
