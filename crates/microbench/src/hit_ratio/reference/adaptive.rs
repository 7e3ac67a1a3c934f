//! Two logs whose setting is learned from miniature simulations (Waldspurger, Saemundsson, Ahmad,
//! Park, "Cache modeling and optimization using miniature simulations", USENIX ATC 2017).
//!
//! A few keys in a thousand are also sent to small caches, one for each setting. Each of them has
//! as large a share of the capacity as it sees of the keys, so it finds about as much as the whole
//! cache would under its setting. The setting whose cache found the most of late is the one in use.

use super::two_logs::{Setting, TwoLogs};
use crate::hit_ratio::trace::{Cache, Item};

/// The settings, the one of a fresh cache first.
const SETTINGS: [Setting; 7] = [
    // FIFO, for items that are read once: a use does not prolong their stay.
    setting(90, 2, true, 25),
    // S3-FIFO: new items leave soon, unless they are read.
    setting(0, 1, false, 25),
    // The same where popularity moves: what comes back after a longer time stays.
    setting(0, 1, false, 90),
    // CLOCK: what LRU keeps.
    setting(90, 1, true, 25),
    // Between CLOCK and S3-FIFO.
    setting(70, 1, true, 25),
    setting(50, 1, false, 25),
    // Against loops that are larger than the cache.
    setting(0, 2, false, 90),
];

const fn setting(direct_percent: u8, uses_needed: u8, forgets: bool, known_percent: u8) -> Setting {
    Setting {
        direct_percent,
        uses_needed,
        forgets,
        known_percent,
    }
}

/// Items that a miniature cache should at least hold.
const SAMPLED_ITEMS: u64 = 1_000;
/// Requests of sampled keys after which a hit counts half.
const HALF_LIFE: f64 = 4_000.0;
/// By how much another setting has to be better, as a share of the reads.
const LEAD: f64 = 0.003;
/// And by how many hits.
const LEAD_HITS: f64 = 3.0;
/// No setting is behind the best by more hits, however long it has been worse: so that a change of
/// the requests shows soon.
const BEHIND_MAX: f64 = 500.0;
/// A write follows from a miss if no more requests of sampled keys lie between them.
const ASIDE_WITHIN: u64 = 1_000;
/// Not a key of the sample.
const NOT_SAMPLED: u32 = u32::MAX;

/// What is known of a key of the sample.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The request of the sample in which it was missed last, if no write followed.
    missed: Option<u64>,
    /// The item, if a miss made the client write it: a client that misses it again will, too.
    aside: Option<Item>,
}

/// The cache, and the miniature ones.
pub struct Adaptive {
    cache: TwoLogs,
    miniatures: Vec<TwoLogs>,
    /// Hits of each miniature, and reads, that lose weight with time.
    hits: [f64; SETTINGS.len()],
    reads: f64,
    in_use: usize,
    changes: u64,
    /// The place of each key in the sample.
    places: Vec<u32>,
    known: Vec<Known>,
    /// Requests of sampled keys.
    now: u64,
}

/// Bits that depend on the key.
fn mixed(key: u32) -> u64 {
    let once = (u64::from(key) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let twice = (once ^ once >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    twice ^ twice >> 32
}

impl Adaptive {
    /// An empty cache.
    pub fn new(capacity: u64, key_bound: u32) -> Self {
        // With a capacity in bytes there are no more items than keys.
        let items = capacity.min(u64::from(key_bound));
        let divisor = (items / SAMPLED_ITEMS).max(1);
        let divisor = 1 << divisor.ilog2();
        let mut sampled = 0;
        let mut place = |key| match mixed(key) % divisor {
            0 => {
                sampled += 1;
                sampled - 1
            }
            _ => NOT_SAMPLED,
        };
        let places = (0..key_bound).map(&mut place).collect();
        let miniature = |setting| TwoLogs::new((capacity / divisor).max(1), sampled, setting);
        Adaptive {
            cache: TwoLogs::new(capacity, key_bound, SETTINGS[0]),
            miniatures: SETTINGS.into_iter().map(miniature).collect(),
            hits: [0.0; SETTINGS.len()],
            reads: 0.0,
            in_use: 0,
            changes: 0,
            places,
            known: vec![Known::default(); sampled as usize],
            now: 0,
        }
    }

    /// How often another setting came into use.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn sampled(&self, key: u32) -> Option<u32> {
        Some(self.places[key as usize]).filter(|&place| place != NOT_SAMPLED)
    }

    fn sample_read(&mut self, key: u32, is_hit: bool) {
        let known = &mut self.known[key as usize];
        self.now += 1;
        let fading = 0.5f64.powf(1.0 / HALF_LIFE);
        self.reads = self.reads * fading + 1.0;
        for (cache, hits) in self.miniatures.iter_mut().zip(&mut self.hits) {
            let finds = cache.read(key);
            *hits = *hits * fading + f64::from(u8::from(finds));
            // The client has the item and will not write it, as it would if it had missed it.
            if is_hit
                && !finds
                && let Some(item) = known.aside
            {
                cache.write(key, item);
            }
        }
        if !is_hit {
            known.missed = Some(self.now);
        }
        self.choose();
    }

    fn sample_write(&mut self, key: u32, item: Item) {
        let known = &mut self.known[key as usize];
        let missed = known.missed.take();
        let is_aside = missed.is_some_and(|at| self.now - at <= ASIDE_WITHIN);
        known.aside = is_aside.then_some(item);
        for cache in &mut self.miniatures {
            // Had it been found, the client would not have written it.
            if !(is_aside && cache.contains(key)) {
                cache.write(key, item);
            }
        }
    }

    fn choose(&mut self) {
        let by_hits = |&one: &usize, &other: &usize| self.hits[one].total_cmp(&self.hits[other]);
        let best = (0..SETTINGS.len())
            .max_by(by_hits)
            .expect("there are settings");
        let least = self.hits[best] - BEHIND_MAX;
        self.hits
            .iter_mut()
            .for_each(|hits| *hits = hits.max(least));
        let lead = self.hits[best] - self.hits[self.in_use];
        if lead > LEAD * self.reads + LEAD_HITS {
            self.in_use = best;
            self.changes += 1;
            self.cache.set(SETTINGS[best]);
        }
    }
}

impl Cache for Adaptive {
    fn read(&mut self, key: u32) -> bool {
        let is_hit = self.cache.read(key);
        if let Some(place) = self.sampled(key) {
            self.sample_read(place, is_hit);
        }
        is_hit
    }

    fn write(&mut self, key: u32, item: Item) {
        if let Some(place) = self.sampled(key) {
            self.sample_write(place, item);
        }
        self.cache.write(key, item);
    }

    fn remove(&mut self, key: u32) {
        if let Some(place) = self.sampled(key) {
            self.miniatures
                .iter_mut()
                .for_each(|cache| cache.remove(place));
        }
        self.cache.remove(key);
    }

    fn weight(&self) -> u64 {
        self.cache.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::{pattern::Pattern, reference::S3Fifo};

    const CAPACITY: u32 = 4_000;

    /// Writes new keys, and reads each once after a lag. Returns the reads that found nothing.
    fn misses(cache: &mut Adaptive, keys: std::ops::Range<u32>, lag: u32) -> u32 {
        let mut misses = 0;
        for new in keys.clone() {
            cache.write(new, Item::UNIT);
            if new >= keys.start + lag {
                misses += u32::from(!cache.read(new - lag));
            }
        }
        misses
    }

    #[test]
    fn a_fresh_cache_keeps_what_is_read_later() {
        for share in [0.1, 0.4, 0.8] {
            let mut cache = Adaptive::new(CAPACITY.into(), 20 * CAPACITY);
            let lag = (f64::from(CAPACITY) * share) as u32;
            assert_eq!(misses(&mut cache, 0..20 * CAPACITY, lag), 0, "lag {lag}");
        }
    }

    /// A loop is the worst preparation: what keeps it keeps nothing that is new.
    #[test]
    fn after_any_phase_it_adapts_within_a_turnover() {
        let loops = 2 * CAPACITY;
        for turns in [5, 50] {
            let mut cache = Adaptive::new(CAPACITY.into(), loops + 40 * CAPACITY);
            for key in (0..turns * loops).map(|turn| turn % loops) {
                if !cache.read(key) {
                    cache.write(key, Item::UNIT);
                }
            }
            let first = |turnover: u32| loops + turnover * CAPACITY;
            let lost = misses(&mut cache, loops..first(2), CAPACITY / 2);
            assert!(lost > 0, "the loop made it keep the loop");
            let lost = misses(&mut cache, first(2)..first(20), CAPACITY / 2);
            assert_eq!(lost, 0, "{turns} turns");
        }
    }

    #[test]
    fn requests_that_do_not_change_soon_leave_the_setting_alone() {
        for seed in 0..3 {
            let zipf = Pattern::named("zipf-0.99").unwrap();
            let trace = zipf.trace(30_000, 10.0, 100_000, seed);
            let (capacity, bound) = (trace.capacity, trace.key_bound());
            let mut cache = Adaptive::new(capacity, bound);
            let ratio = trace.hit_ratio(&mut cache);
            let s3fifo = trace.hit_ratio(&mut S3Fifo::new(capacity, bound));
            assert!(ratio > s3fifo - 0.005, "seed {seed}: {ratio}, {s3fifo}");
            assert!(cache.changes() <= 8, "seed {seed}: {}", cache.changes());
        }
    }

    #[test]
    fn hits_are_weighed_against_the_bytes_that_they_take() {
        let sizes = Pattern::named("sizes").unwrap();
        let trace = sizes.trace(30_000, 10.0, 200_000, 1);
        let (capacity, bound) = (trace.capacity, trace.key_bound());
        let ratio = trace.hit_ratio(&mut Adaptive::new(capacity, bound));
        let s3fifo = trace.hit_ratio(&mut S3Fifo::new(capacity, bound));
        assert!(ratio > s3fifo + 0.05, "{ratio}, {s3fifo}");
    }
}
