//! Values that are lent, beside random operations of the writer: they stay as they were.

use crate::oracle::SEED;
use glimmer_base::limits::{DRAFT_BYTES_MIN, LOANS_MAX};
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Large, LentValue, Table, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const KEYS: u8 = 30;
const STEPS: u32 = 20_000;

/// Values that were lent, with what they were.
#[derive(Default)]
struct Held {
    values: Vec<(Box<dyn LentValue>, Vec<u8>)>,
    /// How many there have been.
    lent: u32,
}

impl Held {
    fn lend<T: Table>(&mut self, owner: &mut T, flushes: u64, key: &[u8]) {
        let mut whole = Vec::new();
        let take = |item: &glimmer_store::heap::Item<'_>| item.value().append_to(&mut whole);
        let lent = owner.lend(SEED.keyhash(key), key, NOW, flushes, take);
        if let Some(((), value)) = lent {
            assert!(value.bytes() <= whole.len() && whole.len() < value.bytes() + 8);
            self.values.push((value, whole));
            self.lent += 1;
        }
    }

    fn check(&self, rng: &mut SmallRng) {
        for (value, whole) in &self.values {
            let from = rng.random_range(0..value.bytes());
            let range = from..rng.random_range(from..=value.bytes());
            value.with(range.clone(), &mut |part| {
                assert!(part == &whole[range.clone()], "{range:?} has changed");
            });
        }
    }
}

/// Stores, extends, touches, deletes and flushes items, most of them large, while values are lent.
pub fn values_stay<T: Table>(mut owner: T) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let (mut held, mut flushes) = (Held::default(), 0);
    for _ in 0..STEPS {
        let key = [rng.random_range(0..KEYS)];
        let keyhash = SEED.keyhash(&key);
        match rng.random_range(0..100) {
            0..40 => {
                let bytes = match rng.random_bool(0.2) {
                    true => rng.random_range(0..1_000),
                    // Few sizes, so that many values fit where others lay.
                    false => DRAFT_BYTES_MIN * rng.random_range(1..4) + rng.random_range(0..3),
                };
                let value = vec![rng.random(); bytes];
                put(&mut owner, flushes, &key, &value);
            }
            40..50 => {
                let more = vec![rng.random(); rng.random_range(0..300)];
                let item = NewItem {
                    key: &key,
                    value: [&[], &more],
                    flags: 1,
                    expiry: Expiry::NEVER,
                    history: History::NEW,
                };
                owner.enter(flushes).extend(keyhash, &item, NOW);
            }
            50..60 => {
                let expiry = Expiry::at_ms(NOW.ms + rng.random_range(1..1_000));
                owner.enter(flushes).touch(keyhash, &key, expiry, NOW);
            }
            60..65 => drop(owner.enter(flushes).remove(keyhash, &key, NOW)),
            65..80 => held.lend(&mut owner, flushes, &key),
            80..99 if !held.values.is_empty() => {
                let nth = rng.random_range(0..held.values.len());
                held.values.swap_remove(nth);
            }
            _ => flushes += u64::from(rng.random_bool(0.2)),
        }
        assert!(held.values.len() <= LOANS_MAX);
        held.check(&mut rng);
    }
    assert!(held.lent > 200, "{} values were lent", held.lent);
}

fn put<T: Table>(owner: &mut T, flushes: u64, key: &[u8], value: &[u8]) {
    let keyhash = SEED.keyhash(key);
    let large = Large {
        key,
        keyhash,
        value,
        now: NOW,
    };
    let draft = owner.draft(T::Home::default(), flushes, &large, |_| true);
    let item = NewItem {
        key,
        value: [value, &[]],
        flags: 1,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let mut writer = owner.enter(flushes);
    writer.bring(draft);
    writer.put(keyhash, &item, NOW);
    writer.bring(None);
}
