//! Which keys are changed so often that the accelerator is better without them, or have no item
//! that it could take. Without a quarantine, a hot key of the second kind would be looked up for
//! every sampled read.
//!
//! Each change of an item costs a refill of its slot, and each hit saves a request. A key has a
//! purse of reads: hits fill it, every change takes [`READS_PER_CHANGE`] out of it. A key that
//! cannot pay is quarantined. It begins with enough for two changes, so a key that is changed three
//! times without hits between is out. A key that is read well can afford a few changes in a row,
//! which come by chance: at 5% changes there are 19 reads to one of them.

use glimmer_base::Keyhash;
use glimmer_base::limits::{HOT_QUARANTINE_MS_MAX, HOT_QUARANTINE_MS_MIN, HOT_QUARANTINES_MAX};

/// Hits that a change has to be worth.
pub const READS_PER_CHANGE: u32 = 8;
/// What a key begins with.
const PURSE: u32 = 3 * READS_PER_CHANGE - 1;
/// What a key keeps at most.
const PURSE_MAX: u32 = 32 * READS_PER_CHANGE;

/// What a slot's key can pay for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purse {
    reads: u32,
    /// The slot's hits when they were last counted into the purse.
    hits: u64,
}

impl Purse {
    /// That of a key that has come into a slot with this many hits so far.
    pub fn new(hits: u64) -> Purse {
        Purse { reads: PURSE, hits }
    }

    /// The key's item has changed. Returns false if that is one change too many.
    #[must_use]
    pub fn pay(&mut self, hits: u64) -> bool {
        let gained = hits.wrapping_sub(self.hits).min(PURSE_MAX.into()) as u32;
        self.hits = hits;
        let reads = (self.reads + gained).min(PURSE_MAX);
        self.reads = reads.saturating_sub(READS_PER_CHANGE);
        reads >= READS_PER_CHANGE
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sentence {
    keyhash: u64,
    until_ms: u64,
    length_ms: u64,
}

/// The keys in quarantine. Two keys may want one place; the later one gets it.
#[derive(Debug)]
pub struct Quarantine(Box<[Sentence]>);

impl Default for Quarantine {
    fn default() -> Quarantine {
        Quarantine(vec![Sentence::default(); HOT_QUARANTINES_MAX].into())
    }
}

impl Quarantine {
    /// Puts a key into quarantine: for twice as long as the last time, unless that has been over
    /// for the longest time that there is.
    pub fn begin(&mut self, keyhash: Keyhash, now_ms: u64) {
        let place = self.place(keyhash);
        let last = &mut self.0[place];
        let is_again = last.keyhash == keyhash.0
            && last.length_ms > 0
            && now_ms < last.until_ms + HOT_QUARANTINE_MS_MAX;
        let length_ms = if is_again {
            (2 * last.length_ms).min(HOT_QUARANTINE_MS_MAX)
        } else {
            HOT_QUARANTINE_MS_MIN
        };
        *last = Sentence {
            keyhash: keyhash.0,
            until_ms: now_ms + length_ms,
            length_ms,
        };
    }

    /// Puts a key that has no item off for the shortest time, however often that happens: its item
    /// may come back at any moment, as that of a hot key does which expires now and then.
    pub fn put_off(&mut self, keyhash: Keyhash, now_ms: u64) {
        let place = self.place(keyhash);
        let last = &mut self.0[place];
        let is_known = last.keyhash == keyhash.0;
        let length_ms = if is_known { last.length_ms } else { 0 };
        *last = Sentence {
            keyhash: keyhash.0,
            until_ms: now_ms + HOT_QUARANTINE_MS_MIN,
            length_ms: length_ms.max(HOT_QUARANTINE_MS_MIN),
        };
    }

    /// Whether a key is in quarantine.
    pub fn has(&self, keyhash: Keyhash, now_ms: u64) -> bool {
        let sentence = &self.0[self.place(keyhash)];
        sentence.keyhash == keyhash.0 && now_ms < sentence.until_ms
    }

    /// The number of keys in quarantine.
    pub fn len(&self, now_ms: u64) -> usize {
        let is_in = |sentence: &&Sentence| now_ms < sentence.until_ms;
        self.0.iter().filter(is_in).count()
    }

    fn place(&self, keyhash: Keyhash) -> usize {
        keyhash.bucket(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_an_item_is_put_off_for_the_shortest_time_each_time() {
        let mut quarantine = Quarantine::default();
        let (key, mut now_ms) = (Keyhash(9), 0);
        for _ in 0..5 {
            quarantine.put_off(key, now_ms);
            assert!(quarantine.has(key, now_ms + HOT_QUARANTINE_MS_MIN - 1));
            now_ms += HOT_QUARANTINE_MS_MIN;
            assert!(!quarantine.has(key, now_ms));
        }
    }

    #[test]
    fn the_third_change_without_a_hit_is_one_too_many() {
        let mut purse = Purse::new(100);
        assert_eq!([(); 3].map(|()| purse.pay(100)), [true, true, false]);
    }

    #[test]
    fn a_key_with_enough_hits_stays() {
        let mut purse = Purse::new(0);
        for change in 1..1000 {
            assert!(purse.pay(change * 8));
        }
        let mut purse = Purse::new(0);
        assert!((1..1000).any(|change| !purse.pay(change * 7)));
    }

    #[test]
    fn a_purse_is_bounded() {
        let mut purse = Purse::new(0);
        assert!(purse.pay(1_000_000));
        let paid = (0..100).take_while(|_| purse.pay(1_000_000)).count();
        assert_eq!(paid, 31);
    }

    #[test]
    fn a_quarantine_doubles_up_to_its_bound_and_is_forgotten() {
        let (mut quarantine, key) = (Quarantine::default(), Keyhash(77 << 20));
        let mut now_ms = 1000;
        for length_ms in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            assert!(!quarantine.has(key, now_ms));
            quarantine.begin(key, now_ms);
            assert!(quarantine.has(key, now_ms + length_ms - 1));
            now_ms += length_ms;
        }
        assert_eq!((quarantine.len(now_ms - 1), quarantine.len(now_ms)), (1, 0));
        now_ms += 10_000;
        quarantine.begin(key, now_ms);
        assert!(!quarantine.has(key, now_ms + 250));
        assert!(!quarantine.has(Keyhash(0), 0));
    }
}
