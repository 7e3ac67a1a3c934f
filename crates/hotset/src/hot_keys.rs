//! The hottest keys by name, with their rates and sizes: the answer to `stats hotkeys`.
//!
//! A key enters when the sketch counts it higher than the least popular key here, and takes that
//! one's place. So the list is that of a count-min sketch with a heap, without the heap: only a
//! key that enters looks for the least one.

use glimmer_base::Keyhash;
use glimmer_base::limits::HOT_KEYS_MAX;
use std::collections::HashMap;

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
}

/// See the module's text. At most [`HOT_KEYS_MAX`] keys.
#[derive(Debug, Default)]
pub struct HotKeys {
    entries: Vec<Entry>,
    places: HashMap<u64, usize>,
    /// No entry has a lower count.
    floor: u64,
}

impl HotKeys {
    /// Counts sampled reads of a key, which the sketch has counted `estimate` times.
    pub fn read(&mut self, keyhash: Keyhash, key: &[u8], value_bytes: usize, estimate: u64) {
        if let Some(&place) = self.places.get(&keyhash.0) {
            let entry = &mut self.entries[place];
            entry.count += 1;
            entry.value_bytes = value_bytes;
            return;
        }
        let new = |key: &[u8]| Entry {
            key: key.into(),
            keyhash,
            value_bytes,
            count: estimate,
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
        }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        for entry in &mut self.entries {
            entry.count /= 2;
        }
        self.floor /= 2;
    }

    /// The most popular keys, at most `most`, the first one first. A count is worth
    /// `reads_per_s_each`.
    pub fn top(&self, most: usize, reads_per_s_each: f64) -> Vec<HotKey> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by(|one, other| other.count.cmp(&one.count).then(one.key.cmp(&other.key)));
        let shown = |entry: &Entry| HotKey {
            key: entry.key.clone(),
            keyhash: entry.keyhash,
            value_bytes: entry.value_bytes,
            reads_per_s: entry.count as f64 * reads_per_s_each,
        };
        entries.into_iter().take(most).map(shown).collect()
    }
}
