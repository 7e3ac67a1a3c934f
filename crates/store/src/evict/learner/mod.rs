//! Learning the setting of an adaptive rule from the requests (Waldspurger, Saemundsson, Ahmad,
//! Park: Cache modeling and optimization using miniature simulations, USENIX ATC 2017).
//!
//! One key in many is also sent to small simulated caches, one for each setting. Each of them has
//! as large a share of the memory as it sees of the keys, so it finds about as much as the whole
//! table would under its setting. The setting whose cache found the most of late is the one in use.
//! The number of keys is bounded, and the share follows from it (Waldspurger, Park, Garthwaite,
//! Ahmad: Efficient MRC construction with SHARDS, FAST 2015, §3.2).
//!
//! One learner serves all partitions of a server, as keys are spread over them by their hash. A
//! request of a key that is not in the sample costs a test of its keyhash. For the others there is
//! a lock, and a thread that finds it taken goes on without telling the learner. The setting is one
//! word, stored and loaded relaxed: nothing else is read that depends on it. To tell which
//! keys are in the sample takes the secret of the keyed hash.

mod caches;
mod queue;
mod sample;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

use super::setting::{Setting, SizeLog};
use caches::Caches;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::{Expiry, Keyhash, Moment};
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, TryLockError};

/// The settings, the one of a fresh cache first, and what they are called.
pub const SETTINGS: [(&str, Setting); 8] = [
    // For items that are read once: a use does not prolong their stay.
    ("fifo", Setting::new(100, 2, true, 3)),
    // As s3fifo-long, where large items are the popular ones: sizes do not count.
    ("s3fifo-any-size", Setting::new(0, 1, false, 9)),
    // New items leave soon, unless they are read.
    ("s3fifo", Setting::new(0, 1, false, 3)),
    // The same where popularity moves: what comes back after a longer time stays.
    ("s3fifo-long", Setting::new(0, 1, false, 9)),
    // What LRU keeps.
    ("clock", Setting::new(100, 1, true, 3)),
    // Between CLOCK and S3-FIFO.
    ("clock-s3fifo", Setting::new(78, 1, true, 3)),
    ("s3fifo-half", Setting::new(56, 1, false, 3)),
    // Against loops that are larger than the cache.
    ("loops", Setting::new(0, 2, false, 9)),
];

const COUNT: usize = SETTINGS.len();
/// The setting in which sizes do not count.
const ANY_SIZE: usize = 1;

/// The sample holds one key in 2 to this power, or fewer. Of larger items it holds more: to serve
/// one of them is more work than to follow it.
const FOLLOWED_BITS: u32 = 7;
/// This many times as many, as a power of 2, for a cache of so few items that this part of them
/// says little, and for the first items of all.
const FEW_BITS: u32 = 3;
/// Up to this size items are small.
const SMALL_WORDS: u64 = 64;
/// The mask of what follows no key.
const FIXED: u64 = u64::MAX;
/// The learner chooses a setting after this many reads of sampled keys, and publishes the mean size
/// after this many stores.
const ROUND: u32 = 32;
/// Reads of sampled keys after which a hit counts half.
const HALF_LIFE: f64 = 4_000.0;
/// By how much another setting has to be better, as a share of what was read,
const LEAD: f64 = 0.0015;
/// and by how many usual items.
const LEAD_ITEMS: f64 = 3.0;
/// No setting is behind the best by more usual items, however long it has been worse: so that a
/// change of the requests shows soon.
const BEHIND_ITEMS_MAX: f64 = 500.0;
/// The mean size follows from about this many stores of sampled keys.
const SIZES_REMEMBERED: f64 = 1_024.0;

/// An item of a key that is followed.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// Words that it takes.
    pub words: u64,
    /// When it expires.
    pub expiry: Expiry,
}

/// What a cache is to find the most of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Items: small ones stay longer, as more of them fit.
    #[default]
    Hits,
    /// Bytes: an item's size does not count.
    Bytes,
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Objective::Hits => "hits",
            Objective::Bytes => "bytes",
        })
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(name: &str) -> Result<Objective, String> {
        match name {
            "hits" => Ok(Objective::Hits),
            "bytes" => Ok(Objective::Bytes),
            _ => Err("one of hits, bytes".into()),
        }
    }
}

/// Learns the setting of an adaptive rule. See the module's text.
pub struct Learner {
    /// The setting in use, as a word.
    in_use: AtomicU64,
    /// Bits of a keyhash that are clear if the key is followed.
    mask: AtomicU64,
    /// The sample holds one key in 2 to this power, or fewer, if items are small.
    bits: u32,
    /// How many times as many it may hold, as a power of 2.
    few_bits: u32,
    /// Words of all logs that it learns for.
    capacity: AtomicU64,
    /// The largest item that a small log takes, in words.
    small_item_words_max: AtomicU64,
    objective: Objective,
    learning: Mutex<Learning>,
}

/// What is learned, under the lock.
struct Learning {
    caches: Caches,
    /// What each setting found since the last choice, and what was asked for.
    found: [u64; COUNT],
    reads: u32,
    asked: u64,
    /// Stores since the mean size was last made known.
    writes: u32,
    /// The same before that, losing weight with time.
    found_before: [f64; COUNT],
    asked_before: f64,
    in_use: usize,
    changes: u64,
    /// The mean size of an item in words.
    mean_words: f64,
    /// The mean of the logarithms of their sizes.
    mean_log: f64,
    stores: f64,
}

/// What a learner has found out, for statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// The number of the setting in use in [`SETTINGS`], from 0.
    pub in_use: usize,
    /// How often another one came into use.
    pub changes: u64,
    /// Keys that are followed.
    pub keys: usize,
    /// One key in so many is followed.
    pub one_in: u64,
    /// The share of the reads of late that each setting would have found, by items or bytes as the
    /// objective says. None before there were reads.
    pub found: Option<[f64; COUNT]>,
    /// The usual size of an item in bytes.
    pub usual_bytes: u64,
}

impl fmt::Debug for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.learned())
    }
}

impl Default for Learner {
    fn default() -> Self {
        Learner::new(Objective::default())
    }
}

impl Learner {
    /// A learner that knows nothing yet.
    pub fn new(objective: Objective) -> Learner {
        Learner {
            bits: FOLLOWED_BITS,
            few_bits: FEW_BITS,
            ..Learner::following(objective, FOLLOWED_BITS - FEW_BITS)
        }
    }

    /// The same, but up to one key in 1 << `bits` is followed if items are small. A cache of less
    /// than some ten thousand items learns little from the usual part of the keys, and following
    /// more of them takes time.
    pub fn following(objective: Objective, bits: u32) -> Learner {
        Learner {
            in_use: AtomicU64::new(SETTINGS[0].1.packed()),
            mask: AtomicU64::new((1 << bits) - 1),
            bits,
            few_bits: 0,
            capacity: AtomicU64::new(0),
            small_item_words_max: AtomicU64::new(u64::MAX),
            objective,
            learning: Mutex::new(Learning {
                caches: Caches::new(bits),
                found: [0; COUNT],
                reads: 0,
                writes: 0,
                asked: 0,
                found_before: [0.0; COUNT],
                asked_before: 0.0,
                in_use: 0,
                changes: 0,
                mean_words: 0.0,
                mean_log: 0.0,
                stores: 0.0,
            }),
        }
    }

    /// What has one setting for ever.
    pub(crate) fn fixed(setting: Setting) -> Learner {
        Learner {
            in_use: AtomicU64::new(setting.packed()),
            mask: AtomicU64::new(FIXED),
            ..Learner::default()
        }
    }

    /// A partition with logs of this many words is learned for, too.
    pub(crate) fn add_partition(&self, words: usize, small_item_words_max: usize) {
        self.capacity.fetch_add(words as u64, Relaxed);
        let most = small_item_words_max as u64;
        self.small_item_words_max.store(most, Relaxed);
    }

    /// The setting in use.
    #[inline(always)]
    pub(crate) fn setting(&self) -> Setting {
        Setting::unpacked(self.word())
    }

    /// The setting in use, [packed](Setting::packed).
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.in_use.load(Relaxed)
    }

    /// Whether requests of a key are followed.
    #[inline(always)]
    pub(crate) fn follows(&self, keyhash: Keyhash) -> bool {
        keyhash.0 & self.mask.load(Relaxed) == 0
    }

    /// A key was read, and its item found, or none.
    #[cold]
    #[inline(never)]
    pub(crate) fn read(&self, keyhash: Keyhash, item: Option<Seen>, now: Moment) {
        self.follow(keyhash, |learning, key| {
            let unit = match self.objective {
                Objective::Hits => Some(1),
                Objective::Bytes => None,
            };
            let (caches, found) = (&mut learning.caches, &mut learning.found);
            learning.asked += caches.read(key, (item, now), unit, found);
            learning.reads += 1;
            if learning.reads == ROUND {
                self.choose(learning);
            }
        });
    }

    /// A key was stored, in an item like this.
    #[cold]
    #[inline(never)]
    pub(crate) fn write(&self, keyhash: Keyhash, item: Seen, now: Moment) {
        self.follow(keyhash, |learning, key| {
            learning.learn_size(item.words);
            learning.caches.write(key, item, now);
            // A cache that is only written to has sizes, too.
            learning.writes += 1;
            if learning.writes == ROUND {
                learning.writes = 0;
                self.publish(learning);
            }
            if learning.stores == f64::from(ROUND) {
                // The first items have told how large items are.
                let bits = self.bits_of(learning);
                learning.caches.follow_at_most(bits);
            }
        });
    }

    /// The sample holds one key in 2 to this power, or fewer, unless there are few.
    fn bits_of(&self, learning: &Learning) -> u32 {
        let larger = (learning.mean_words as u64 / SMALL_WORDS).max(1).ilog2();
        self.bits.saturating_sub(larger)
    }

    /// A key has gone, and not because there was too little memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn remove(&self, keyhash: Keyhash) {
        self.follow(keyhash, |learning, key| learning.caches.remove(key));
    }

    /// Every key has gone.
    pub(crate) fn clear(&self) {
        if let Ok(mut learning) = self.learning.lock() {
            learning.caches.clear();
        }
    }

    /// What has been found out; none if the setting is fixed.
    pub fn learned(&self) -> Option<Learned> {
        if self.mask.load(Relaxed) == FIXED {
            return None;
        }
        let learning = self.learning.lock().unwrap_or_else(|it| it.into_inner());
        let asked = learning.asked_before;
        Some(Learned {
            in_use: learning.in_use,
            changes: learning.changes,
            keys: learning.caches.keys(),
            one_in: learning.caches.one_in(),
            found: (asked > 0.0).then(|| learning.found_before.map(|found| found / asked)),
            usual_bytes: 8 * learning.usual().words(),
        })
    }

    fn follow(&self, keyhash: Keyhash, act: impl FnOnce(&mut Learning, u64)) {
        let mut learning = match self.learning.try_lock() {
            Ok(learning) => learning,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return,
        };
        let capacity = self.capacity.load(Relaxed);
        let small_item_max = self.small_item_words_max.load(Relaxed);
        if learning.caches.follows(keyhash, capacity, small_item_max) {
            act(&mut learning, keyhash.0);
            let mask = learning.caches.one_in() - 1;
            if self.mask.load(Relaxed) != mask {
                self.mask.store(mask, Relaxed);
            }
        }
    }

    /// Takes the setting into use that has found the most, if the one in use is far enough behind.
    fn choose(&self, learning: &mut Learning) {
        let usual = match self.objective {
            Objective::Hits => 1.0,
            Objective::Bytes => learning.mean_words,
        };
        let fading = 0.5f64.powf(f64::from(ROUND) / HALF_LIFE);
        learning.asked_before = learning.asked_before * fading + learning.asked as f64;
        let found = learning.found_before.iter_mut().zip(&learning.found);
        found.for_each(|(before, &now)| *before = *before * fading + now as f64);
        (learning.found, learning.reads, learning.asked) = ([0; COUNT], 0, 0);
        let by_found = |&one: &usize, &other: &usize| {
            learning.found_before[one].total_cmp(&learning.found_before[other])
        };
        let best = (0..COUNT).max_by(by_found).unwrap_or(0);
        let most = learning.found_before[best];
        let least = most - BEHIND_ITEMS_MAX * usual;
        let found = learning.found_before.iter_mut();
        found.for_each(|found| *found = found.max(least));
        let lead = most - learning.found_before[learning.in_use];
        if lead > LEAD * learning.asked_before + LEAD_ITEMS * usual {
            learning.in_use = best;
            learning.changes += 1;
        }
        self.publish(learning);
        let bits = self.bits_of(learning).saturating_sub(self.few_bits);
        learning.caches.balance(bits);
    }

    fn publish(&self, learning: &mut Learning) {
        let usual = match self.objective {
            Objective::Hits => Some(learning.usual()),
            Objective::Bytes => None,
        };
        learning.caches.set_usual(usual);
        let setting = SETTINGS[learning.in_use].1;
        let usual = usual.filter(|_| learning.in_use != ANY_SIZE);
        self.in_use
            .store(Setting { usual, ..setting }.packed(), Relaxed);
    }
}

impl Learning {
    fn learn_size(&mut self, words: u64) {
        self.stores = (self.stores + 1.0).min(SIZES_REMEMBERED);
        self.mean_words += (words as f64 - self.mean_words) / self.stores;
        self.mean_log += (SizeLog::of(words).number() - self.mean_log) / self.stores;
    }

    /// The usual size: the geometric mean. Large items are stored again and again, as they leave
    /// soon, and would raise the arithmetic mean beyond what most items have.
    fn usual(&self) -> SizeLog {
        SizeLog::of_number(self.mean_log)
    }
}
