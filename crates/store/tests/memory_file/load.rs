//! Requests at random, and what they make of a plain map.

use super::place::{Kept, SEED, Store};
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Announced, Begun, Large, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// A request. All bytes of its value follow from its number.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub number: u64,
    pub key: u64,
    pub verb: Verb,
}

#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// Bytes of the value, and whether it has flags and an expiry.
    Set(usize, bool),
    /// A value that is received in place.
    Upload(usize),
    /// Bytes that are put behind the value.
    Append(usize),
    Prepend(usize),
    Touch,
    Amend,
    Delete,
    Read,
    Flush,
}

/// Requests for `keys` keys, from a seed.
pub struct Load {
    rng: SmallRng,
    keys: u64,
    large: usize,
    next: u64,
    /// How often each kind of value is chosen changes now and then, so that memory fills with
    /// small items, then large ones, then nothing.
    phase: u64,
    pub flushes: u64,
}

impl Load {
    pub fn new(seed: u64, keys: u64, large: usize) -> Load {
        Load {
            rng: SmallRng::seed_from_u64(seed),
            keys,
            large,
            next: 0,
            phase: 0,
            flushes: 0,
        }
    }

    fn bytes(&mut self) -> usize {
        match self.rng.random_range(0..100) {
            0..60 => self.rng.random_range(0..=40) / 8 * 8,
            60..90 => self.rng.random_range(0..700),
            _ => self.rng.random_range(0..self.large),
        }
    }

    pub fn request(&mut self) -> Request {
        self.next += 1;
        if self.next.is_multiple_of(400) {
            self.phase = self.rng.random_range(0..4);
        }
        let large = self.large;
        let verb = match (self.phase, self.rng.random_range(0..1000)) {
            (_, 0) => Verb::Flush,
            (1, 1..700) => Verb::Set(16, false),
            (2, 1..700) => Verb::Delete,
            (3, 1..400) => Verb::Set(self.rng.random_range(0..large), false),
            (_, 1..450) => Verb::Set(self.bytes(), self.rng.random()),
            (_, 450..550) => Verb::Append(self.rng.random_range(0..64)),
            (_, 550..580) => Verb::Prepend(self.rng.random_range(0..64)),
            (_, 580..650) => Verb::Touch,
            (_, 650..700) => Verb::Amend,
            (_, 700..800) => Verb::Delete,
            (_, 800..840) => Verb::Upload(self.rng.random_range(large / 2..large)),
            _ => Verb::Read,
        };
        Request {
            number: self.next,
            key: self.rng.random_range(0..self.keys),
            verb,
        }
    }

    /// Another process carries a request out.
    pub fn note(&mut self, request: &Request) {
        if let Verb::Flush = request.verb {
            self.flushes += 1;
        }
    }

    /// Carries out a request.
    pub fn run<T: Kept>(&mut self, store: &mut Store<T>, request: Request) {
        self.run_after(store, request, || ());
    }

    /// Carries out a request. All is ready for it when `begin` is called.
    pub fn run_after<T: Kept>(
        &mut self,
        store: &mut Store<T>,
        request: Request,
        begin: impl FnOnce(),
    ) {
        self.note(&request);
        carry_out(store, request, self.flushes, begin);
    }
}

pub fn key_of(number: u64) -> Vec<u8> {
    let key = format!("key {number}");
    key.repeat(1 + number as usize % 3).into_bytes()
}

/// Bytes that nobody else writes: each says by which request, and where it stands.
pub fn value_of(request: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes.div_ceil(8) as u64).flat_map(|word| {
        let mixed = (request << 20 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).to_le_bytes()
    });
    words.take(bytes).collect()
}

/// Where a value lies in an item of its key, this looks like items of that key, one after the
/// other: what only a mark tells from what was stored.
fn counterfeit(request: u64, key: &[u8], bytes: usize) -> Vec<u8> {
    let value_at = 8 + key.len() + if bytes >= 256 { 3 } else { 0 };
    let false_value = request.to_le_bytes();
    let header = (request << 24 | 8 << 16 | (key.len() as u64) << 8).to_le_bytes();
    let mut item = [&header, key, &false_value].concat();
    item.resize(item.len().next_multiple_of(8), 0);
    let padding = vec![0; value_at.next_multiple_of(8) - value_at];
    let all = padding.into_iter().chain(item.into_iter().cycle());
    all.take(bytes).collect()
}

fn carry_out<T: Kept>(store: &mut Store<T>, request: Request, flushes: u64, begin: impl FnOnce()) {
    let Request { number, key, verb } = request;
    let key = key_of(key);
    let keyhash = SEED.keyhash(&key);
    let owner = store.partition(&key);
    let value = match verb {
        Verb::Set(bytes, _) if number.is_multiple_of(4) => counterfeit(number, &key, bytes),
        Verb::Set(bytes, _) | Verb::Upload(bytes) => value_of(number, bytes),
        Verb::Append(bytes) | Verb::Prepend(bytes) => value_of(number, bytes),
        _ => Vec::new(),
    };
    begin();
    match verb {
        Verb::Set(_, has_fields) => {
            let mut item = NewItem::new(&key, &value);
            if has_fields {
                item.flags = number as u32;
                item.expiry = Expiry::at_ms(1_000_000 + number);
            }
            let large = Large {
                key: &key,
                keyhash,
                value: &value,
                now: NOW,
            };
            let draft = owner.draft(Default::default(), flushes, &large, |_| true);
            let mut writer = owner.enter(flushes);
            writer.bring(draft);
            writer.put(keyhash, &item, NOW);
            writer.bring(None);
        }
        Verb::Upload(bytes) => {
            let announced = Announced {
                key: &key,
                keyhash,
                value_bytes: bytes,
                now: NOW,
            };
            let Begun::Yes(upload) = owner.begin_upload(Default::default(), flushes, &announced)
            else {
                return;
            };
            let half = bytes / 2;
            upload.write(0, &value[..half]);
            if number.is_multiple_of(3) {
                return;
            }
            upload.write(half, &value[half..]);
            owner
                .enter(flushes)
                .with_upload(upload, &mut |writer, value| {
                    writer.put(keyhash, &NewItem::new(&key, value), NOW);
                });
        }
        Verb::Append(_) => {
            let mut item = NewItem::new(&key, &[]);
            item.value[1] = &value;
            owner.enter(flushes).extend(keyhash, &item, NOW);
        }
        Verb::Prepend(_) => {
            let item = NewItem::new(&key, &value);
            owner.enter(flushes).extend(keyhash, &item, NOW);
        }
        Verb::Touch => {
            let expiry = Expiry::at_ms(2_000_000 + number);
            owner.enter(flushes).touch(keyhash, &key, expiry, NOW);
        }
        Verb::Amend => {
            let mut writer = owner.enter(flushes);
            let known = writer
                .find(keyhash, &key, NOW)
                .map(|it| (it.expiry(), it.history()));
            if let Some((expiry, history)) = known {
                let history = History {
                    accessed_s: number as u32,
                    cas: Some(number << 41 | number),
                    ..history
                };
                writer.amend(keyhash, &key, expiry, history, NOW);
            }
        }
        Verb::Delete => drop(owner.enter(flushes).remove(keyhash, &key, NOW)),
        Verb::Read => drop(owner.enter(flushes).read(keyhash, &key, NOW, |_| ())),
        Verb::Flush => drop(owner.enter(flushes)),
    }
}
