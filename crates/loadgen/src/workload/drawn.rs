//! Requests drawn at random from a workload.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{Ask, Key, Sampler, Sizes, Source, Then, Ttl, Verb, Workload};

/// Cumulative shares in units of 2^-32.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    get: u64,
    set: u64,
    insert: u64,
    read_modify_write: u64,
}

/// Draws requests without end. The same seed draws the same requests.
pub struct Drawn {
    sampler: Sampler,
    rng: SmallRng,
    thresholds: Thresholds,
    keys_per_get: u32,
    on_miss: Then,
    key_bytes: usize,
    sizes: Sizes,
    ttl: Ttl,
    inserted: Arc<AtomicU64>,
    version: u32,
}

impl Drawn {
    /// The requests of one of `parts` threads. All threads share `inserted`, the current number of
    /// keys.
    pub fn new(
        workload: &Workload,
        seed: u64,
        part: u64,
        parts: u64,
        inserted: &Arc<AtomicU64>,
    ) -> Drawn {
        let mix = workload.mix;
        // A read of k keys is one request for k operations.
        let get = mix.get / f64::from(mix.keys_per_get);
        let total = get + mix.set + mix.insert + mix.read_modify_write + mix.delete;
        let mut sum = 0.0;
        let mut threshold = |share: f64| {
            sum += share / total;
            (sum * 2f64.powi(32)).round() as u64
        };
        let thresholds = Thresholds {
            get: threshold(get),
            set: threshold(mix.set),
            insert: threshold(mix.insert),
            read_modify_write: threshold(mix.read_modify_write),
        };
        Drawn {
            sampler: workload.popularity().sampler_in(part, parts, inserted),
            rng: SmallRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ part),
            thresholds,
            keys_per_get: mix.keys_per_get,
            on_miss: if mix.set_on_miss {
                Then::SetIfMissed
            } else {
                Then::Nothing
            },
            key_bytes: workload.key_bytes,
            sizes: workload.sizes.clone(),
            ttl: mix.ttl,
            inserted: inserted.clone(),
            // Each thread writes its own versions of a key.
            version: (part as u32) << 18,
        }
    }

    #[inline]
    fn key(&mut self) -> Key {
        Key::new(self.sampler.draw(&mut self.rng), self.key_bytes)
    }

    #[inline]
    fn write(&mut self, ask: &mut Ask, key: Key) {
        ask.one(Verb::Set, key);
        self.value(ask, key);
    }

    #[inline]
    fn value(&mut self, ask: &mut Ask, key: Key) {
        self.version = self.version.wrapping_add(1);
        ask.version = self.version;
        ask.value_bytes = self.sizes.of(key.number());
        ask.ttl_s = self.ttl.draw(&mut self.rng);
    }
}

impl Source for Drawn {
    #[inline]
    fn next(&mut self, ask: &mut Ask) -> bool {
        let Thresholds {
            get,
            set,
            insert,
            read_modify_write,
        } = self.thresholds;
        let chance = u64::from(self.rng.random::<u32>());
        if chance < get {
            let key = self.key();
            ask.one(Verb::Get, key);
            let mut bytes = self.sizes.of(key.number());
            for _ in 1..self.keys_per_get {
                let key = self.key();
                ask.keys.push(key);
                bytes = bytes.saturating_add(self.sizes.of(key.number()));
            }
            ask.then = self.on_miss;
            if ask.then != Then::Nothing {
                self.value(ask, key);
            }
            ask.value_bytes = bytes;
        } else if chance < set {
            let key = self.key();
            self.write(ask, key);
        } else if chance < insert {
            let number = self.inserted.fetch_add(1, Ordering::Relaxed);
            self.write(ask, Key::new(number, self.key_bytes));
        } else if chance < read_modify_write {
            let key = self.key();
            ask.one(Verb::Get, key);
            self.value(ask, key);
            ask.then = Then::Set;
        } else {
            let key = self.key();
            ask.one(Verb::Delete, key);
        }
        true
    }

    fn follow(&mut self, ask: &mut Ask, key: Key, _value_bytes: u32, _ttl_s: u32) {
        self.write(ask, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Law, Mix};

    const REQUESTS: usize = 100_000;

    fn drawn(mix: Mix, law: Law, seed: u64) -> (Drawn, Arc<AtomicU64>) {
        let workload = Workload {
            mix,
            law,
            keys: 1000,
            ..Workload::default()
        };
        let inserted = Arc::new(AtomicU64::new(workload.keys));
        (Drawn::new(&workload, seed, 0, 1, &inserted), inserted)
    }

    fn share(count: usize, of: usize, expected: f64) {
        let (share, deviation) = (
            count as f64 / of as f64,
            (expected * (1.0 - expected) / of as f64).sqrt(),
        );
        assert!(
            (share - expected).abs() < 5.0 * deviation + 1e-9,
            "{share} instead of {expected}"
        );
    }

    #[test]
    fn verbs_are_drawn_in_their_shares() {
        let mix = Mix {
            get: 0.5,
            set: 0.2,
            insert: 0.1,
            read_modify_write: 0.15,
            delete: 0.05,
            ..Mix::reads(0.5)
        };
        let (mut source, inserted) = drawn(mix, Law::Uniform, 1);
        let (mut ask, mut counts) = (Ask::default(), [0; 5]);
        for _ in 0..REQUESTS {
            assert!(source.next(&mut ask));
            assert_eq!(ask.keys.len(), 1);
            let number = ask.keys[0].number();
            counts[match (ask.verb, ask.then) {
                (Verb::Get, Then::Nothing) => 0,
                (Verb::Set, _) if number < 1000 => 1,
                (Verb::Set, _) => 2,
                (Verb::Get, _) => 3,
                (Verb::Delete, _) => 4,
            }] += 1;
        }
        for (count, expected) in counts.into_iter().zip([0.5, 0.2, 0.1, 0.15, 0.05]) {
            share(count, REQUESTS, expected);
        }
        assert_eq!(inserted.load(Ordering::Relaxed), 1000 + counts[2] as u64);
    }

    #[test]
    fn shares_count_keys_when_reads_have_many() {
        let (mut source, _) = drawn(Mix::reads(0.95).keys_per_get(50), Law::Uniform, 2);
        let (mut ask, mut read, mut written) = (Ask::default(), 0, 0);
        for _ in 0..REQUESTS {
            source.next(&mut ask);
            match ask.verb {
                Verb::Get => read += ask.keys.len(),
                _ => written += 1,
            }
        }
        assert!((read as f64 / (read + written) as f64 - 0.95).abs() < 0.005);
        let (mut only_reads, _) = drawn(Mix::reads(1.0), Law::Uniform, 2);
        assert!((0..REQUESTS).all(|_| only_reads.next(&mut ask) && ask.verb == Verb::Get));
    }

    #[test]
    fn the_same_seed_draws_the_same_requests() {
        let sequence = |seed| -> Vec<Vec<Key>> {
            let (mut source, _) = drawn(Mix::reads(0.5), Law::Zipf { exponent: 0.99 }, seed);
            let mut ask = Ask::default();
            (0..100)
                .map(|_| {
                    source.next(&mut ask);
                    ask.keys.clone()
                })
                .collect()
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
    }
}
