//! Values that are received where their items are to lie, beside random operations of the writer.

use crate::oracle::SEED;
use glimmer_base::limits::MEDIUM_BYTES_MIN;
use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{
    Announced, Begun, Counts, Headway, Large, Stored, Table, TableWriter, Upload, UploadFigures,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;

/// The least value that is received in place.
const BYTES_MIN: usize = if cfg!(miri) { 64 } else { MEDIUM_BYTES_MIN };

/// What a table is put under.
#[derive(Clone, Copy)]
pub struct Load {
    /// Keys of large values.
    pub keys: u16,
    /// Keys of small values, by which an index grows.
    pub small_keys: u16,
    pub steps: u32,
    /// Bytes of the largest value.
    pub value_max: usize,
    /// Whether a value is found until it is replaced or removed.
    pub loses_nothing: bool,
}

/// A time after the end of a run.
pub const END: Moment = Moment {
    ms: 1 << 29,
    epoch_unix_ms: 0,
};

/// The keys of a load.
pub fn keys(load: Load) -> impl Iterator<Item = (Keyhash, [u8; 2])> {
    let keys = (0..load.keys + load.small_keys).map(u16::to_le_bytes);
    keys.map(|key| (SEED.keyhash(&key), key))
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    pub counts: Counts,
    /// Values that were received.
    pub stored: u32,
    /// The most at a time.
    pub most: usize,
    /// Values that could not be received for now.
    pub full: u32,
    /// Values for which there was room, but not in half of what they may take together.
    pub beyond_half: u32,
    /// Turns in which room was made that was not enough.
    pub turns: u32,
    /// Stores of other values that were refused.
    pub refused: u32,
}

/// A value for which room is being made.
struct Asking {
    key: u16,
    value: Vec<u8>,
    headway: Headway,
}

/// A value on its way.
struct Arriving {
    upload: Upload,
    key: u16,
    value: Vec<u8>,
    arrived: usize,
}

struct Hand<T> {
    owner: T,
    load: Load,
    now: Moment,
    flushes: u64,
    rng: SmallRng,
    /// Random bytes, of which each value is a part.
    pool: Vec<u8>,
    asking: Vec<Asking>,
    arriving: Vec<Arriving>,
    /// What each key was last given.
    model: HashMap<u16, Vec<u8>>,
    outcome: Outcome,
}

fn new_item<'a>(key: &'a [u8], value: &'a [u8], rng: &mut SmallRng, now: Moment) -> NewItem<'a> {
    NewItem {
        flags: [0, 1, 0xF00D_F00D][rng.random_range(0..3)],
        // One that is not reached.
        expiry: match rng.random_bool(0.3) {
            true => Expiry::at_ms(now.ms + (1 << 30)),
            false => Expiry::NEVER,
        },
        history: History {
            accessed_s: u32::from(rng.random_bool(0.2)),
            ..History::NEW
        },
        ..NewItem::new(key, value)
    }
}

impl<T: Table> Hand<T> {
    fn value(&mut self) -> Vec<u8> {
        let most = self.load.value_max;
        let bytes = match self.rng.random_bool(0.5) {
            true => self.rng.random_range(BYTES_MIN..=most.min(2 * BYTES_MIN)),
            false => self.rng.random_range(BYTES_MIN..=most),
        };
        self.filling(bytes)
    }

    fn filling(&mut self, bytes: usize) -> Vec<u8> {
        let from = self.rng.random_range(0..self.pool.len() - bytes);
        self.pool[from..from + bytes].to_vec()
    }

    fn announce(
        &mut self,
        key: u16,
        value_bytes: usize,
        part: u64,
        headway: &mut Headway,
    ) -> Begun {
        headway.items_left = self.rng.random_range(1..50);
        let bytes = key.to_le_bytes();
        let announced = Announced {
            key: &bytes,
            keyhash: SEED.keyhash(&bytes),
            value_bytes,
            part,
            now: self.now,
        };
        (self.owner).begin_upload(Default::default(), self.flushes, &announced, headway)
    }

    /// Goes on with a value for which room is being made, gives it up, or begins with another one.
    fn begin(&mut self) {
        let nth = self.rng.random_range(0..self.asking.len() + 2);
        let asking = match nth < self.asking.len() {
            true => self.asking.swap_remove(nth),
            false => Asking {
                key: self.rng.random_range(0..self.load.keys),
                value: self.value(),
                headway: Headway::new(0),
            },
        };
        if self.rng.random_bool(0.95) {
            self.ask(asking);
        }
    }

    fn ask(&mut self, asking: Asking) {
        let Asking {
            key,
            value,
            mut headway,
        } = asking;
        let mut begun = self.announce(key, value.len(), 2, &mut headway);
        if let Begun::Full = begun {
            begun = self.announce(key, value.len(), 1, &mut headway);
            self.outcome.beyond_half += u32::from(matches!(begun, Begun::Yes(_)));
        }
        match begun {
            Begun::Again => {
                self.outcome.turns += 1;
                self.asking.push(Asking {
                    key,
                    value,
                    headway,
                });
            }
            Begun::Yes(upload) => {
                assert_eq!(upload.bytes(), value.len());
                self.arriving.push(Arriving {
                    upload,
                    key,
                    value,
                    arrived: 0,
                });
                self.outcome.most = self.outcome.most.max(self.arriving.len());
            }
            Begun::Full => {
                assert!(!self.arriving.is_empty(), "there is always room for one");
                self.outcome.full += 1;
            }
            Begun::Never => assert!(self.load.loses_nothing, "there is room for each"),
        }
    }

    fn arrive(&mut self) {
        if self.arriving.is_empty() {
            return;
        }
        let nth = self.rng.random_range(0..self.arriving.len());
        let rng = &mut self.rng;
        let Arriving {
            upload,
            value,
            arrived,
            ..
        } = &mut self.arriving[nth];
        let most = rng.random_range(1..=value.len());
        match rng.random_bool(0.5) {
            true => {
                let part = &value[*arrived..value.len().min(*arrived + most)];
                upload.write(*arrived, part);
                *arrived += part.len();
            }
            false => {
                let received = rng.random_range(0..=most);
                *arrived += upload.receive(*arrived, most, |mut region| {
                    let len = region.bytes();
                    assert_eq!(len, most.min(value.len() - *arrived));
                    let received = received.min(len);
                    // SAFETY: there is room for `len` bytes.
                    let to = unsafe { std::slice::from_raw_parts_mut(region.start(), received) };
                    to.copy_from_slice(&value[*arrived..*arrived + received]);
                    received
                });
            }
        }
        if *arrived > 0 && rng.random_bool(0.1) {
            let from = rng.random_range(0..*arrived);
            let to = rng.random_range(from..=*arrived);
            let mut copy = vec![7];
            upload.copy_to(from..to, &mut copy);
            assert!(copy[1..] == value[from..to]);
        }
        if *arrived == value.len() {
            self.complete(nth);
        }
    }

    fn complete(&mut self, nth: usize) {
        let Arriving {
            upload, key, value, ..
        } = self.arriving.swap_remove(nth);
        let (bytes, now) = (key.to_le_bytes(), self.now);
        let keyhash = SEED.keyhash(&bytes);
        let (is_stored, rng) = (self.rng.random_bool(0.9), &mut self.rng);
        let is_first_refused = rng.random_bool(0.2);
        let (mut stored, mut executed) = (None, false);
        let mut writer = self.owner.enter(self.flushes);
        writer.with_upload(upload, &mut |writer, received| {
            assert!(received == value, "{key} has changed on its way");
            executed = true;
            if is_first_refused {
                let other = new_item(&bytes, &received[1..], rng, now);
                assert_eq!(writer.put(keyhash, &other, now), Stored::OutOfMemory);
                let extended = writer.extend(keyhash, &other, now);
                assert!(matches!(extended, None | Some(Stored::OutOfMemory)));
            }
            if is_stored {
                let item = new_item(&bytes, received, rng, now);
                let result = writer.put(keyhash, &item, now);
                if matches!(result, Stored::Yes(_)) {
                    let found = writer.find(keyhash, &bytes, now).expect("it is there");
                    assert_eq!((found.flags(), found.expiry()), (item.flags, item.expiry));
                    assert_eq!(found.accessed_s(), item.history.accessed_s);
                }
                stored = Some(result);
            }
        });
        drop(writer);
        assert!(executed);
        match stored {
            Some(Stored::Yes(_)) => {
                self.outcome.stored += 1;
                self.model.insert(key, value);
            }
            Some(Stored::OutOfMemory) => assert!(self.load.loses_nothing),
            None => {}
            Some(Stored::TooLarge) => panic!("it was announced"),
        }
        self.check(key);
    }

    /// Stores a value that is here, large or small.
    fn put(&mut self, key: u16, value: Vec<u8>) {
        let (bytes, now) = (key.to_le_bytes(), self.now);
        let item = new_item(&bytes, &value, &mut self.rng, now);
        let mut writer = self.owner.enter(self.flushes);
        let stored = writer.put(SEED.keyhash(&bytes), &item, now);
        drop(writer);
        match stored {
            Stored::Yes(_) => drop(self.model.insert(key, value)),
            refused => {
                assert!(self.load.loses_nothing, "{refused:?}");
                self.outcome.refused += 1;
            }
        }
    }

    /// Brings a draft for a request that then stores nothing.
    fn bring_in_vain(&mut self) {
        let (key, value) = (self.rng.random_range(0..self.load.keys), self.value());
        let bytes = key.to_le_bytes();
        let large = Large {
            key: &bytes,
            keyhash: SEED.keyhash(&bytes),
            value: &value,
            now: self.now,
        };
        let draft = (self.owner).draft(Default::default(), self.flushes, &large, |_| true);
        let mut writer = self.owner.enter(self.flushes);
        writer.bring(draft);
        writer.bring(None);
    }

    fn put_small_ones(&mut self) {
        let from = self.load.keys;
        for _ in 0..self.rng.random_range(0..100) {
            let key = self.rng.random_range(from..from + self.load.small_keys);
            let bytes = self.rng.random_range(0..200);
            let value = self.filling(bytes);
            self.put(key, value);
        }
    }

    fn remove(&mut self) {
        let key = self
            .rng
            .random_range(0..self.load.keys + self.load.small_keys);
        let bytes = key.to_le_bytes();
        (self.owner.enter(self.flushes)).remove(SEED.keyhash(&bytes), &bytes, self.now);
        self.model.remove(&key);
    }

    fn check(&mut self, key: u16) {
        let (bytes, mut found) = (key.to_le_bytes(), Vec::new());
        let take = |item: &glimmer_store::heap::Item<'_>| item.value().append_to(&mut found);
        let mut writer = self.owner.enter(self.flushes);
        let is_there = writer.read(SEED.keyhash(&bytes), &bytes, self.now, take);
        let known = self.model.get(&key);
        match is_there {
            Some(()) => assert!(known == Some(&found), "{key} is not what was stored"),
            None => assert!(!self.load.loses_nothing || known.is_none(), "{key} is lost"),
        }
    }

    fn step(&mut self) {
        match self.rng.random_range(0..200) {
            0..50 => self.begin(),
            50..120 => self.arrive(),
            120..130 => {
                if !self.arriving.is_empty() {
                    let nth = self.rng.random_range(0..self.arriving.len());
                    self.arriving.swap_remove(nth);
                }
            }
            130..150 => {
                let (key, value) = (self.rng.random_range(0..self.load.keys), self.value());
                self.put(key, value);
            }
            150..175 => self.put_small_ones(),
            175..180 => self.remove(),
            180 => {
                self.flushes += 1;
                self.model.clear();
            }
            181..186 => self.bring_in_vain(),
            _ => {
                let keys = self.load.keys + self.load.small_keys;
                let key = self.rng.random_range(0..keys);
                self.check(key);
            }
        }
        self.now.ms += self.rng.random_range(0..3);
    }
}

/// Begins, receives, completes and drops uploads while other values are stored, large and small.
/// `audit` looks at the whole table. At the end nothing is being received.
pub fn run<T: Table>(owner: T, load: Load, audit: impl Fn(&mut T, u64)) -> (T, u64, Outcome) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let mut pool = vec![0; load.value_max + 10_000];
    rng.fill(&mut pool[..]);
    let mut hand = Hand {
        owner,
        load,
        now: Moment {
            ms: 2_000,
            epoch_unix_ms: 0,
        },
        flushes: 0,
        rng,
        pool,
        asking: Vec::new(),
        arriving: Vec::new(),
        model: HashMap::new(),
        outcome: Outcome::default(),
    };
    for step in 0..load.steps {
        hand.step();
        if step % 256 == 0 {
            audit(&mut hand.owner, hand.flushes);
            let figures = hand.owner.figures().uploads();
            let bytes: usize = hand.arriving.iter().map(|it| it.value.len()).sum();
            let expected = (hand.arriving.len() as u64, bytes as u64);
            assert_eq!((figures.count, figures.bytes), expected);
        }
    }
    hand.arriving.clear();
    assert_eq!(hand.owner.figures().uploads(), UploadFigures::default());
    audit(&mut hand.owner, hand.flushes);
    for key in 0..load.keys + load.small_keys {
        hand.check(key);
    }
    hand.outcome.counts = hand.owner.figures().counts(hand.flushes);
    println!("{:?}", hand.outcome);
    (hand.owner, hand.flushes, hand.outcome)
}
