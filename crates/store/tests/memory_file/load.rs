//! Requests at random, and what they make of a plain map.

use super::place::{Kept, SEED, Store};
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Announced, Begun, Headway, Large, TableWriter, Upload};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// No item has expired then.
pub const BEGINNING: Moment = Moment {
    ms: 0,
    epoch_unix_ms: 0,
};

/// A request. All bytes of its value follow from its number.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub number: u64,
    pub key: u64,
    pub verb: Verb,
    pub now: Moment,
}

#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// Bytes of the value, and when it expires, in milliseconds from now.
    Set(usize, Option<u64>),
    /// Bytes of a value that is received in place, and how far.
    Upload(usize, Stage),
    /// More of an upload arrives.
    More(usize),
    /// The rest of it does.
    Finish(usize),
    GiveUp(usize),
    /// Bytes that are put behind the value.
    Append(usize),
    Prepend(usize),
    /// When the item expires, in milliseconds from now.
    Touch(u64),
    Amend,
    Delete,
    Read,
    Flush,
}

/// How an upload ends that one request begins.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    Whole,
    GivenUp,
    /// Later requests go on with it.
    Open,
}

/// Uploads that are open at a time, at most.
const OPEN_MAX: usize = 3;

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
    /// It goes on from request to request.
    pub now: Moment,
    leaves_open: bool,
    open: Vec<Open>,
}

impl Load {
    /// Requests that leave uploads open. They keep the file until they
    /// [end](Self::end_uploads).
    pub fn with_uploads(self) -> Load {
        Load {
            leaves_open: true,
            ..self
        }
    }

    /// Clients with open uploads leave.
    pub fn end_uploads(&mut self) {
        self.open.clear();
    }

    /// Whether uploads are open.
    pub fn has_uploads(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn new(seed: u64, keys: u64, large: usize) -> Load {
        Load {
            rng: SmallRng::seed_from_u64(seed),
            keys,
            large,
            next: 0,
            phase: 0,
            flushes: 0,
            now: NOW,
            leaves_open: false,
            open: Vec::new(),
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
        self.now.ms += self.rng.random_range(0..4);
        let large = self.large;
        let verb = match (self.phase, self.rng.random_range(0..1000)) {
            (_, 0) => Verb::Flush,
            (1, 1..700) => Verb::Set(16, None),
            (2, 1..700) => Verb::Delete,
            (3, 1..400) => Verb::Set(self.rng.random_range(0..large), None),
            (_, 1..450) => Verb::Set(self.bytes(), self.expiry()),
            (_, 450..550) => Verb::Append(self.rng.random_range(0..64)),
            (_, 550..580) => Verb::Prepend(self.rng.random_range(0..64)),
            (_, 580..650) => Verb::Touch(self.life_ms()),
            (_, 650..700) => Verb::Amend,
            (_, 700..800) => Verb::Delete,
            (_, 800..840) => Verb::Upload(self.rng.random_range(large / 2..large), self.stage()),
            (_, 840..900) => self.goes_on(),
            _ => Verb::Read,
        };
        let key = match verb {
            Verb::More(nth) | Verb::Finish(nth) | Verb::GiveUp(nth) => self.open[nth].key,
            _ => self.rng.random_range(0..self.keys),
        };
        Request {
            number: self.next,
            key,
            verb,
            now: self.now,
        }
    }

    /// A certain request.
    pub fn of(&mut self, key: u64, verb: Verb) -> Request {
        self.next += 1;
        Request {
            number: self.next,
            key,
            verb,
            now: self.now,
        }
    }

    /// The rest of an upload arrives.
    pub fn finish_one(&mut self) -> Request {
        self.of(self.open[0].key, Verb::Finish(0))
    }

    /// Most items that expire do so soon.
    fn life_ms(&mut self) -> u64 {
        match self.rng.random() {
            true => self.rng.random_range(1..300),
            false => self.rng.random_range(1..1_000_000),
        }
    }

    fn expiry(&mut self) -> Option<u64> {
        self.rng.random::<bool>().then(|| self.life_ms())
    }

    fn stage(&mut self) -> Stage {
        let may_leave_open = self.leaves_open && self.open.len() < OPEN_MAX;
        match self.rng.random_range(0..3) {
            0 => Stage::GivenUp,
            1 if may_leave_open => Stage::Open,
            _ => Stage::Whole,
        }
    }

    /// An open upload goes on, or ends.
    fn goes_on(&mut self) -> Verb {
        if self.open.is_empty() {
            return Verb::Read;
        }
        let nth = self.rng.random_range(0..self.open.len());
        match self.rng.random_range(0..6) {
            0 => Verb::Finish(nth),
            1 => Verb::GiveUp(nth),
            _ => Verb::More(nth),
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

impl Load {
    /// Carries out a request. All is ready for it when `begin` is called.
    pub fn run_after<T: Kept>(
        &mut self,
        store: &mut Store<T>,
        request: Request,
        begin: impl FnOnce(),
    ) {
        self.note(&request);
        let (flushes, now) = (self.flushes, request.now);
        let key = key_of(request.key);
        let value = value_for(&request, &key);
        let owner = store.partition(&key);
        match request.verb {
            Verb::Set(_, expiry_ms) => {
                begin();
                set(owner, (&key, &value), &request, expiry_ms, flushes);
            }
            Verb::Upload(bytes, stage) => {
                begin();
                let Some(mut open) = Open::begin(owner, &key, &request, bytes, flushes) else {
                    return;
                };
                open.write(bytes / 2);
                match stage {
                    Stage::Whole => open.finish(owner, now, flushes),
                    Stage::GivenUp => {}
                    Stage::Open => self.open.push(open),
                }
            }
            Verb::More(nth) => {
                begin();
                let open = &mut self.open[nth];
                open.write(open.value.len() / 8);
            }
            Verb::Finish(nth) => {
                let open = self.open.swap_remove(nth);
                begin();
                open.finish(owner, now, flushes);
            }
            Verb::GiveUp(nth) => {
                let open = self.open.swap_remove(nth);
                begin();
                drop(open);
            }
            _ => {
                begin();
                change(owner, (&key, &value), &request, flushes);
            }
        }
    }
}

/// The value that a request brings.
fn value_for(request: &Request, key: &[u8]) -> Vec<u8> {
    let number = request.number;
    match request.verb {
        Verb::Set(bytes, _) if number.is_multiple_of(4) => counterfeit(number, key, bytes),
        Verb::Set(bytes, _) | Verb::Append(bytes) | Verb::Prepend(bytes) => value_of(number, bytes),
        _ => Vec::new(),
    }
}

fn set<T: Kept>(
    owner: &mut T,
    (key, value): (&[u8], &[u8]),
    request: &Request,
    expiry_ms: Option<u64>,
    flushes: u64,
) {
    let (keyhash, now) = (SEED.keyhash(key), request.now);
    let mut item = NewItem::new(key, value);
    if let Some(after_ms) = expiry_ms {
        item.flags = request.number as u32;
        item.expiry = Expiry::at_ms(now.ms + after_ms);
    }
    let large = Large {
        key,
        keyhash,
        value,
        now,
    };
    let draft = owner.draft(Default::default(), flushes, &large, |_| true);
    let mut writer = owner.enter(flushes);
    writer.bring(draft);
    writer.put(keyhash, &item, now);
    writer.bring(None);
}

/// Requests without a value of their own, and those that add to one.
fn change<T: Kept>(owner: &mut T, (key, value): (&[u8], &[u8]), request: &Request, flushes: u64) {
    let Request { number, now, .. } = *request;
    let keyhash = SEED.keyhash(key);
    let mut writer = owner.enter(flushes);
    match request.verb {
        Verb::Append(_) => {
            let mut item = NewItem::new(key, &[]);
            item.value[1] = value;
            writer.extend(keyhash, &item, now);
        }
        Verb::Prepend(_) => drop(writer.extend(keyhash, &NewItem::new(key, value), now)),
        Verb::Touch(after_ms) => {
            let expiry = Expiry::at_ms(now.ms + after_ms);
            writer.touch(keyhash, key, expiry, now);
        }
        Verb::Amend => {
            let known = writer
                .find(keyhash, key, now)
                .map(|it| (it.expiry(), it.history()));
            if let Some((expiry, history)) = known {
                let history = History {
                    accessed_s: number as u32,
                    cas: Some(number << 41 | number),
                    ..history
                };
                writer.amend(keyhash, key, expiry, history, now);
            }
        }
        Verb::Delete => drop(writer.remove(keyhash, key, now)),
        Verb::Read => drop(writer.read(keyhash, key, now, |_| ())),
        _ => {}
    }
}

/// A value that arrives while other requests are executed.
struct Open {
    upload: Upload,
    key: u64,
    value: Vec<u8>,
    written: usize,
}

impl Open {
    fn begin<T: Kept>(
        owner: &mut T,
        key: &[u8],
        request: &Request,
        bytes: usize,
        flushes: u64,
    ) -> Option<Open> {
        let announced = Announced {
            key,
            keyhash: SEED.keyhash(key),
            value_bytes: bytes,
            part: 1,
            now: request.now,
        };
        let headway = &mut Headway::new(u64::MAX);
        let begun = owner.begin_upload(Default::default(), flushes, &announced, headway);
        let Begun::Yes(upload) = begun else {
            return None;
        };
        Some(Open {
            upload,
            key: request.key,
            value: value_of(request.number, bytes),
            written: 0,
        })
    }

    fn write(&mut self, bytes: usize) {
        let end = (self.written + bytes).min(self.value.len());
        if end > self.written {
            let part = &self.value[self.written..end];
            self.upload.write(self.written, part);
        }
        self.written = end;
    }

    fn finish<T: Kept>(mut self, owner: &mut T, now: Moment, flushes: u64) {
        self.write(self.value.len());
        let key = key_of(self.key);
        let put = &mut |writer: &mut dyn TableWriter, value: &[u8]| {
            writer.put(SEED.keyhash(&key), &NewItem::new(&key, value), now);
        };
        owner.enter(flushes).with_upload(self.upload, put);
    }
}
