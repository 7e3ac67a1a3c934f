//! Requests by key prefix, estimated from a sample (`stats prefix`).
//!
//! One request of [`POPULAR_SAMPLE_EVERY`] is looked at, and counts for as many. So a request costs
//! nothing beside the sample that finds hot keys, and a prefix with few requests may have none
//! here.

use std::collections::BTreeMap;

use glimmer_base::limits::{POPULAR_SAMPLE_EVERY, PREFIXES_SAMPLED_MAX};

use super::change::Asked;

/// Counts by the prefixes with most requests.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    delimiter: u8,
    counts: BTreeMap<Box<[u8]>, Requests>,
}

/// Requests for keys with a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub gets: u64,
    /// Reads that found an item.
    pub hits: u64,
    pub sets: u64,
}

impl Usage {
    pub fn new(delimiter: u8) -> Usage {
        Usage {
            delimiter,
            counts: BTreeMap::new(),
        }
    }

    /// A key's prefix, if it has one.
    pub fn prefix_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let end = memchr::memchr(self.delimiter, key)?;
        (end > 0).then(|| &key[..end])
    }

    /// Counts a request of the sample. `is_hit` says whether a read found an item.
    pub(super) fn count(&mut self, key: &[u8], asked: Asked, is_hit: bool) {
        let Some(prefix) = self.prefix_of(key) else {
            return;
        };
        let counts = match self.counts.get_mut(prefix) {
            Some(counts) => counts,
            None => {
                if self.counts.len() >= PREFIXES_SAMPLED_MAX {
                    keep_largest(&mut self.counts, |counts| counts.gets + counts.sets);
                }
                self.counts.entry(prefix.into()).or_default()
            }
        };
        let every = u64::from(POPULAR_SAMPLE_EVERY);
        match asked {
            Asked::Fetch => {
                counts.gets += every;
                counts.hits += if is_hit { every } else { 0 };
            }
            Asked::Store(_) => counts.sets += every,
            Asked::Delete(_) | Asked::Count | Asked::Look => {}
        }
    }

    /// What was counted for a prefix.
    pub fn of(&self, prefix: &[u8]) -> Requests {
        self.counts.get(prefix).copied().unwrap_or_default()
    }
}

/// Forgets half of the prefixes: those that come last by their size.
pub(crate) fn keep_largest<V>(counts: &mut BTreeMap<Box<[u8]>, V>, size: impl Fn(&V) -> u64) {
    let mut sizes: Vec<u64> = counts.values().map(&size).collect();
    let half = sizes.len() / 2;
    let (_, &mut median, _) = sizes.select_nth_unstable(half);
    // Of those with the median's size, as many go as there are too many.
    let mut equal = sizes[half..].iter().filter(|&&size| size == median).count();
    counts.retain(|_, value| match size(value).cmp(&median) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => {
            let stays = equal > 0;
            equal -= usize::from(stays);
            stays
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_request_counts_for_those_that_are_not() {
        let mut usage = Usage::new(b':');
        for (key, asked, is_hit) in [
            (&b"a:1"[..], Asked::Fetch, true),
            (b"a:2:x", Asked::Fetch, false),
            (b"a:1", Asked::Store("set"), false),
            (b"a:1", Asked::Delete("delete"), false),
            (b":1", Asked::Fetch, true),
            (b"none", Asked::Fetch, true),
        ] {
            usage.count(key, asked, is_hit);
        }
        let every = u64::from(POPULAR_SAMPLE_EVERY);
        let expected = Requests {
            gets: 2 * every,
            hits: every,
            sets: every,
        };
        assert_eq!(usage.of(b"a"), expected);
        assert_eq!(usage.of(b"none"), Requests::default());
        assert_eq!(usage.counts.len(), 1);
    }

    #[test]
    fn prefixes_with_many_requests_stay() {
        let mut usage = Usage::new(b':');
        for number in 0..10 * PREFIXES_SAMPLED_MAX {
            usage.count(b"often:1", Asked::Fetch, true);
            usage.count(format!("{number}:1").as_bytes(), Asked::Store("set"), false);
            assert!(usage.counts.len() <= PREFIXES_SAMPLED_MAX);
        }
        let gets = 10 * PREFIXES_SAMPLED_MAX as u64 * u64::from(POPULAR_SAMPLE_EVERY);
        assert_eq!(usage.of(b"often").gets, gets);
    }

    #[test]
    fn the_larger_half_is_kept_also_among_equals() {
        for sizes in [
            vec![1; 10],
            vec![3, 1, 2, 2, 2, 9, 2, 2],
            vec![5, 4, 3, 2, 1],
        ] {
            let name = |nth: usize| Box::from(nth.to_string().as_bytes());
            let mut counts: BTreeMap<Box<[u8]>, u64> = (0..)
                .zip(&sizes)
                .map(|(nth, &size)| (name(nth), size))
                .collect();
            keep_largest(&mut counts, |&size| size);
            let mut kept: Vec<u64> = counts.into_values().collect();
            kept.sort_unstable();
            let mut expected = sizes.clone();
            expected.sort_unstable();
            assert_eq!(kept, expected[sizes.len() / 2..]);
        }
    }
}
