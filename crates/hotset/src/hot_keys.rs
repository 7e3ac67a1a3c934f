//! The hottest keys by name, with their rates and sizes: the answer to `stats hotkeys`.
//!
//! A key enters when the sketch counts it higher than the least popular key here, and takes that
//! one's place. So the list is that of a count-min sketch with a heap, without the heap: only a
//! key that enters looks for the least one.
//!
//! Which keys are here follows from counts over a long time, as in the sketch. The rates that are
//! shown are those of the last [`HOT_KEYS_WINDOW_MS`]: reads are counted in periods of a tenth of
//! that, and the oldest period counts with the share of it that is still within the window.

use glimmer_base::Keyhash;
use glimmer_base::limits::{HOT_KEYS_MAX, HOT_KEYS_WINDOW_MS};
use std::collections::HashMap;

/// Whole periods in a window.
const PERIODS: usize = 10;
const PERIOD_MS: u64 = HOT_KEYS_WINDOW_MS / PERIODS as u64;

/// Samples in this period and in those before it that a window reaches into.
type Recent = [u64; PERIODS + 1];

/// A key and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// The key.
    pub key: Box<[u8]>,
    /// Its hash.
    pub keyhash: Keyhash,
    /// Length of its value at the last sampled read.
    pub value_bytes: usize,
    /// Reads per second.
    pub reads_per_s: f64,
}

#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    keyhash: Keyhash,
    value_bytes: usize,
    count: u64,
    recent: Recent,
}

/// See the module's text. At most [`HOT_KEYS_MAX`] keys.
#[derive(Debug, Default)]
pub struct HotKeys {
    entries: Vec<Entry>,
    places: HashMap<u64, usize>,
    /// No entry has a lower count.
    floor: u64,
    /// The time at which the first period began, and the number of the one that is counted.
    begun_ms: u64,
    period: u64,
}

impl HotKeys {
    /// No key is known at `now_ms`.
    pub fn new(now_ms: u64) -> HotKeys {
        HotKeys {
            begun_ms: now_ms,
            ..HotKeys::default()
        }
    }

    /// The period at a time.
    fn period(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.begun_ms) / PERIOD_MS
    }

    /// Begins the period of this time.
    pub fn advance(&mut self, now_ms: u64) {
        let period = self.period(now_ms);
        if period > self.period {
            for entry in &mut self.entries {
                entry.recent = later(entry.recent, period - self.period);
            }
            self.period = period;
        }
    }

    /// Counts sampled reads of a key, which the sketch has counted `estimate` times.
    pub fn read(&mut self, keyhash: Keyhash, key: &[u8], value_bytes: usize, estimate: u64) {
        if let Some(&place) = self.places.get(&keyhash.0) {
            let entry = &mut self.entries[place];
            entry.count += 1;
            entry.recent[0] += 1;
            entry.value_bytes = value_bytes;
            return;
        }
        let new = |key: &[u8]| Entry {
            key: key.into(),
            keyhash,
            value_bytes,
            count: estimate,
            recent: std::array::from_fn(|period| u64::from(period == 0)),
        };
        if self.entries.len() < HOT_KEYS_MAX {
            self.floor = if self.entries.is_empty() {
                estimate
            } else {
                self.floor.min(estimate)
            };
            self.places.insert(keyhash.0, self.entries.len());
            self.entries.push(new(key));
        } else if estimate > self.floor {
            let counts = self.entries.iter().enumerate();
            let Some((place, least)) = counts.min_by_key(|(_, entry)| entry.count) else {
                return;
            };
            self.floor = least.count;
            if estimate > self.floor {
                self.places.remove(&least.keyhash.0);
                self.places.insert(keyhash.0, place);
                self.entries[place] = new(key);
            }
        }
    }

    /// Counts reads of a key that were not sampled one by one, if the key is here.
    pub fn credit(&mut self, keyhash: Keyhash, reads: u64) {
        if let Some(&place) = self.places.get(&keyhash.0) {
            self.entries[place].count += reads;
            self.entries[place].recent[0] += reads;
        }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        for entry in &mut self.entries {
            entry.count /= 2;
        }
        self.floor /= 2;
    }

    /// The keys that were read most in the window before `now_ms`, at most `most`, the first one
    /// first. A sample stands for `reads_each` reads.
    pub fn top(&self, most: usize, reads_each: f64, now_ms: u64) -> Vec<HotKey> {
        let since_ms = now_ms.saturating_sub(self.begun_ms);
        let periods = self.period(now_ms).saturating_sub(self.period);
        let gone = (since_ms % PERIOD_MS) as f64 / PERIOD_MS as f64;
        let window_s = since_ms.clamp(1, HOT_KEYS_WINDOW_MS) as f64 / 1000.0;
        let rate = |entry: &Entry| {
            let recent = later(entry.recent, periods);
            let within: u64 = recent[..PERIODS].iter().sum();
            let read = within as f64 + recent[PERIODS] as f64 * (1.0 - gone);
            read * reads_each / window_s
        };
        let rated = self.entries.iter().map(|entry| (rate(entry), entry));
        let mut entries: Vec<(f64, &Entry)> = rated.filter(|&(rate, _)| rate > 0.0).collect();
        entries.sort_by(|(one_rate, one), (other_rate, other)| {
            let by_rate = other_rate.total_cmp(one_rate);
            by_rate.then(one.key.cmp(&other.key))
        });
        let shown = |(reads_per_s, entry): (f64, &Entry)| HotKey {
            key: entry.key.clone(),
            keyhash: entry.keyhash,
            value_bytes: entry.value_bytes,
            reads_per_s,
        };
        entries.into_iter().take(most).map(shown).collect()
    }
}

/// The counts some periods later.
fn later(mut counts: Recent, periods: u64) -> Recent {
    let new = periods.min(counts.len() as u64) as usize;
    counts.rotate_right(new);
    counts[..new].fill(0);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a key once in each of these milliseconds, which are sampled one in a hundred.
    fn read(keys: &mut HotKeys, name: &str, times_ms: std::ops::Range<u64>) {
        for now_ms in times_ms {
            keys.advance(now_ms);
            keys.read(Keyhash(name.len() as u64), name.as_bytes(), 8, 1);
        }
    }

    fn shown(keys: &HotKeys, now_ms: u64) -> Vec<(String, u64)> {
        let shown = keys.top(10, 100.0, now_ms).into_iter();
        shown
            .map(|it| {
                (
                    String::from_utf8_lossy(&it.key).into(),
                    it.reads_per_s as u64,
                )
            })
            .collect()
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let mut keys = HotKeys::new(5_000);
        read(&mut keys, "one", 5_000..7_000);
        assert_eq!(shown(&keys, 7_000), [("one".to_owned(), 100_000)]);
        read(&mut keys, "one", 7_000..65_000);
        assert_eq!(shown(&keys, 65_000), [("one".to_owned(), 100_000)]);
        // Another key takes over, and the first one is forgotten as the window leaves it behind.
        read(&mut keys, "other", 65_000..70_000);
        let half = [("one".to_owned(), 50_000), ("other".to_owned(), 50_000)];
        assert_eq!(shown(&keys, 70_000), half);
        read(&mut keys, "other", 70_000..75_000);
        assert_eq!(shown(&keys, 75_000), [("other".to_owned(), 100_000)]);
        assert_eq!(shown(&keys, 80_000), [("other".to_owned(), 50_000)]);
        assert_eq!(shown(&keys, 84_500), [("other".to_owned(), 5_000)]);
        for later_ms in [85_000, 86_000, 95_000, 300_000] {
            assert_eq!(shown(&keys, later_ms), []);
        }
        // Within a period, the window moves by less than a tenth of it.
        read(&mut keys, "one", 86_000..88_500);
        assert_eq!(shown(&keys, 97_250), [("one".to_owned(), 12_500)]);
    }
}
