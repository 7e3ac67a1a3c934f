//! Which keys are kept out although they are hot: those that have cost more than they saved, and
//! those that have no item that the accelerator could take. Without a quarantine, a hot key of the
//! second kind would be looked up for every sampled read.
//!
//! A key of the first kind earns its return by the reads that the server has to answer meanwhile:
//! they are lent to it ([`LENT`]). So it is out for as many reads as its
//! loss is worth, and comes back whether they take a millisecond or a second.

use crate::prices::Prices;
use crate::purse::{LENT, Purse};
use glimmer_base::Keyhash;
use glimmer_base::limits::{HOT_QUARANTINE_MS_MAX, HOT_QUARANTINE_MS_MIN, HOT_QUARANTINES_MAX};

#[derive(Clone, Copy, Debug, Default)]
struct Sentence {
    keyhash: u64,
    /// When the key is forgotten, and may come in as one that nobody knows.
    until_ms: u64,
    /// Until when it does not come in, whatever it has.
    put_off_until_ms: u64,
    /// What it has.
    has_ns: u64,
}

impl Sentence {
    fn keeps_out(&self, prices: Prices, now_ms: u64) -> bool {
        let is_poor = self.has_ns < prices.change_ns();
        now_ms < self.put_off_until_ms || (is_poor && now_ms < self.until_ms)
    }
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
    /// Keeps a key out that has this much left, until it can pay for a fill.
    pub fn begin(&mut self, keyhash: Keyhash, has_ns: u64, now_ms: u64) {
        *self.place(keyhash) = Sentence {
            keyhash: keyhash.0,
            until_ms: now_ms + HOT_QUARANTINE_MS_MAX,
            put_off_until_ms: 0,
            has_ns,
        };
    }

    /// Puts a key that has no item off for a short time, however often that happens: its item may
    /// come back at any moment, as that of a hot key does which expires now and then.
    pub fn put_off(&mut self, keyhash: Keyhash, prices: Prices, now_ms: u64) {
        let until_ms = now_ms + HOT_QUARANTINE_MS_MIN;
        let (has_ns, known_until_ms) = match self.known(keyhash, now_ms) {
            Some(known) => (known.has_ns, known.until_ms),
            None => (Purse::start_ns(prices), until_ms),
        };
        *self.place(keyhash) = Sentence {
            keyhash: keyhash.0,
            until_ms: known_until_ms.max(until_ms),
            put_off_until_ms: until_ms,
            has_ns,
        };
    }

    /// The server has answered this many reads of a key.
    pub fn read(&mut self, keyhash: Keyhash, reads: u64, prices: Prices, now_ms: u64) {
        if let Some(known) = self.known(keyhash, now_ms) {
            let lent_ns = reads.saturating_mul(prices.hit_ns()) / LENT;
            known.has_ns = known.has_ns.saturating_add(lent_ns);
        }
    }

    /// Whether a key is kept out.
    pub fn has(&self, keyhash: Keyhash, prices: Prices, now_ms: u64) -> bool {
        let sentence = &self.0[keyhash.bucket(self.0.len())];
        sentence.keyhash == keyhash.0 && sentence.keeps_out(prices, now_ms)
    }

    /// A key is brought in. Returns what it has, if it is known.
    pub fn end(&mut self, keyhash: Keyhash, now_ms: u64) -> Option<u64> {
        let known = self.known(keyhash, now_ms)?;
        Some(std::mem::take(known).has_ns)
    }

    /// The number of keys that are kept out.
    pub fn len(&self, prices: Prices, now_ms: u64) -> usize {
        let is_in = |sentence: &&Sentence| sentence.keeps_out(prices, now_ms);
        self.0.iter().filter(is_in).count()
    }

    fn known(&mut self, keyhash: Keyhash, now_ms: u64) -> Option<&mut Sentence> {
        let sentence = self.place(keyhash);
        let is_known = sentence.keyhash == keyhash.0 && now_ms < sentence.until_ms;
        is_known.then_some(sentence)
    }

    fn place(&mut self, keyhash: Keyhash) -> &mut Sentence {
        let place = keyhash.bucket(self.0.len());
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Keyhash = Keyhash(77 << 20);

    fn prices() -> Prices {
        Prices::new(100, 400)
    }

    #[test]
    fn a_key_without_an_item_is_put_off_for_the_shortest_time_each_time() {
        let (mut quarantine, mut now_ms) = (Quarantine::default(), 0);
        for _ in 0..5 {
            quarantine.put_off(KEY, prices(), now_ms);
            // However much it is read.
            quarantine.read(KEY, 1_000_000, prices(), now_ms);
            assert!(quarantine.has(KEY, prices(), now_ms + HOT_QUARANTINE_MS_MIN - 1));
            now_ms += HOT_QUARANTINE_MS_MIN;
            assert!(!quarantine.has(KEY, prices(), now_ms));
        }
    }

    #[test]
    fn a_key_is_out_for_as_many_reads_as_pay_its_return() {
        let mut quarantine = Quarantine::default();
        quarantine.begin(KEY, 40, 1000);
        // Each lends 25, and 60 are missing.
        for _ in 0..2 {
            quarantine.read(KEY, 1, prices(), 1000);
            assert!(quarantine.has(KEY, prices(), 1000));
            assert_eq!(quarantine.len(prices(), 1000), 1);
        }
        quarantine.read(KEY, 1, prices(), 1000);
        assert!(!quarantine.has(KEY, prices(), 1000));
        assert_eq!(quarantine.len(prices(), 1000), 0);
        assert_eq!(quarantine.end(KEY, 1000), Some(115));
        assert_eq!(quarantine.end(KEY, 1000), None);
    }

    #[test]
    fn a_key_that_is_hardly_read_is_forgotten_in_the_end() {
        let mut quarantine = Quarantine::default();
        quarantine.begin(KEY, 0, 1000);
        let end_ms = 1000 + HOT_QUARANTINE_MS_MAX;
        assert!(quarantine.has(KEY, prices(), end_ms - 1));
        assert!(!quarantine.has(KEY, prices(), end_ms));
        assert_eq!(quarantine.end(KEY, end_ms), None);
        assert!(!quarantine.has(Keyhash(0), prices(), 0));
    }
}
