//! Random operations on a table beside a plain map.
//!
//! The map does not know what a cache may have given up. So the comparison is one-sided about
//! presence, unless the table is to lose nothing, and strict about everything else: what is found
//! must be what was last written, with its flags, expiry and CAS unique; what was deleted, flushed
//! or has expired must not be found; and the partition's own count of items must be the number of
//! keys that can be found.

use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::Access;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Counts, Draft, Large, Stored};
use glimmer_store::table::{Prefetcher, Table, TableReader, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::rc::Rc;

/// The seed of the keyhash of every table here.
pub const SEED: Seed = Seed(7);

#[derive(Clone, Debug, PartialEq)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    expiry: Expiry,
    cas: u64,
}

/// What is stored: the number of keys, and the largest value in bytes.
#[derive(Clone, Copy)]
pub struct Load {
    pub keys: u32,
    pub value_max: usize,
    /// The same two after a third of the steps.
    pub later_keys: u32,
    /// See [`later_keys`](Self::later_keys).
    pub later_value_max: usize,
    /// The keyhashes of keys, which the table's hasher has to give too.
    pub keyhash: fn(&[u8]) -> Keyhash,
    /// The table's limit, at least 300 bytes more.
    pub item_bytes_max: usize,
    pub steps: u32,
    /// Of a thousand steps one is a flush with this probability.
    pub flushes: f64,
    /// Whether the table evicts nothing: it refuses stores instead, and then leaves everything as
    /// it is.
    pub loses_nothing: bool,
}

impl Load {
    /// 100,000 steps with these sizes.
    pub const fn of(keys: u32, value_max: usize) -> Load {
        Load {
            keys,
            value_max,
            later_keys: keys,
            later_value_max: value_max,
            keyhash: |key| SEED.keyhash(key),
            item_bytes_max: value_max + 300,
            steps: 100_000,
            flushes: 1.0,
            loses_nothing: false,
        }
    }
}

/// After this many steps, or at the end of a shorter run, every key is looked for and removed.
const AUDIT_STEPS: u32 = 20_000;
/// The table is walked after this many steps.
const WALK_STEPS: u32 = 1_999;
/// A shorter run is walked this many times. Miri takes long for a walk.
const SHORT_RUN_WALKS: u32 = if cfg!(miri) { 1 } else { 5 };

/// How a run went.
pub struct Outcome {
    /// The table's figures at the end.
    pub counts: Counts,
    /// The same before the first audit, after which the table has been emptied.
    pub first: Counts,
    /// The same after four fifths of the steps.
    pub late: Counts,
    /// Large values that were copied before they were stored.
    pub drafts: u64,
}

/// A key that is asked for.
struct Key {
    bytes: Vec<u8>,
    keyhash: Keyhash,
}

impl Key {
    fn new(n: u32, keyhash: fn(&[u8]) -> Keyhash) -> Key {
        let bytes = key(n);
        let keyhash = keyhash(&bytes);
        Key { bytes, keyhash }
    }
}

fn key(n: u32) -> Vec<u8> {
    // Lengths of all residues modulo the word, and some long keys.
    let mut key = format!("key-{n:x}").into_bytes();
    key.resize(
        key.len() + (n % 11) as usize + if n.is_multiple_of(97) { 230 - 11 } else { 0 },
        b'.',
    );
    key
}

struct Run<T: Table> {
    owner: T,
    reader: Option<T::Reader>,
    participant: Participant,
    keys: Rc<[Key]>,
    /// By key: its home at some earlier time, with the slot that it had then. So everything that
    /// can happen to an item happens between the stages of some request.
    carried: HashMap<u32, T::HomeBucket>,
    oracle: HashMap<u32, Item>,
    /// How many values were copied before they were stored.
    drafts: u64,
    now: Moment,
    flushes: u64,
    rng: SmallRng,
    load: Load,
}

impl<T: Table> Run<T> {
    fn new(mut owner: T, load: Load, seed: u64) -> Self {
        let (batches, mut participants) = Batches::new(1);
        owner.join(&batches, 0);
        let reader = owner.reader();
        assert_eq!(reader.is_some(), T::Access::SHARED_READS);
        let now = Moment {
            ms: 2_000,
            epoch_unix_ms: 0,
        };
        Run {
            owner,
            reader,
            participant: participants.remove(0),
            keys: (0..load.keys.max(load.later_keys))
                .map(|n| Key::new(n, load.keyhash))
                .collect(),
            carried: HashMap::new(),
            oracle: HashMap::new(),
            drafts: 0,
            now,
            flushes: 0,
            rng: SmallRng::seed_from_u64(seed),
            load,
        }
    }

    /// The stages of the pipeline before execution.
    fn prefetch(&mut self, n: u32) {
        let keyhash = self.keys[n as usize].keyhash;
        let prefetcher = self.owner.prefetcher();
        let mut home = prefetcher.home(keyhash);
        prefetcher.prefetch_bucket(home);
        if prefetcher.prefetch_item(&mut home) {
            prefetcher.prefetch_item_behind(&mut home);
        }
        self.carried.insert(n, home);
    }

    fn home(&self, n: u32) -> T::HomeBucket {
        self.carried.get(&n).copied().unwrap_or_default()
    }

    /// The writer at the execution of a request for a key.
    fn enter(&mut self, n: u32) -> T::Writer<'_> {
        let (keyhash, home) = (self.keys[n as usize].keyhash, self.home(n));
        self.owner.enter_at(keyhash, home, self.flushes)
    }

    fn read(&mut self, n: u32) -> Option<Item> {
        let keys = self.keys.clone();
        let Key {
            bytes: key,
            keyhash,
        } = &keys[n as usize];
        let keyhash = *keyhash;
        let take = |item: &glimmer_store::heap::Item<'_>| {
            let mut value = b"prefix".to_vec();
            item.value().append_to(&mut value);
            Item {
                value: value.split_off(6),
                flags: item.flags(),
                expiry: item.expiry(),
                cas: item.cas(),
            }
        };
        let (now, home) = (self.now, self.home(n));
        match &self.reader {
            Some(reader) if self.rng.random_bool(0.5) => {
                let batch = self.participant.begin();
                match reader.read_at(&batch, home, keyhash, key, now, self.flushes, take) {
                    Ok(found) => found,
                    // Only a flush that the owner has yet to see can make an undisturbed reader
                    // ask.
                    Err(_) => (self.owner.enter(self.flushes)).read(keyhash, key, now, take),
                }
            }
            _ if self.rng.random_bool(0.5) => self.enter(n).read(keyhash, key, now, take),
            _ => (self.owner).read_at((keyhash, home), key, now, self.flushes, |item| take(item)),
        }
    }

    fn check(&mut self, n: u32) {
        let found = self.read(n);
        match (found, self.oracle.get(&n)) {
            (None, None) => {}
            (Some(found), Some(expected)) => {
                assert!(!expected.expiry.is_due(self.now), "key {n} has expired");
                assert_eq!(&found, expected, "key {n}");
            }
            (Some(found), None) => panic!("key {n} came back from the dead: {found:?}"),
            (None, Some(expected)) => {
                let may_go = !self.load.loses_nothing || expected.expiry.is_due(self.now);
                assert!(may_go, "key {n} was lost");
                // Evicted or expired: it must never come back.
                self.oracle.remove(&n);
            }
        }
    }

    fn put(&mut self, n: u32) {
        let len = match self.rng.random_range(0..10) {
            0 => 0,
            1..8 => self.rng.random_range(0..64.min(self.load.value_max + 1)),
            _ => self.rng.random_range(0..=self.load.value_max),
        };
        // Zeros read as a header are a filler of no length, at which a walk that has lost the way
        // stays for ever.
        let mut value = vec![0; len];
        if !self.rng.random_bool(0.2) {
            self.rng.fill(&mut value[..]);
        }
        // In one part, as most values are and drafted ones have to be, or in two.
        let drafts = self.rng.random_bool(0.5);
        let cut = match drafts {
            true => len,
            false => self.rng.random_range(0..=len),
        };
        let flags = if self.rng.random_bool(0.3) {
            self.rng.random()
        } else {
            0
        };
        let expiry = match self.rng.random_range(0..10) {
            0 => Expiry::at_ms(self.now.ms + self.rng.random_range(1..5_000)),
            1 => Expiry::AT_ONCE,
            _ => Expiry::NEVER,
        };
        let (keys, parts) = (self.keys.clone(), [&value[..cut], &value[cut..]]);
        let Key {
            bytes: key,
            keyhash,
        } = &keys[n as usize];
        let item = NewItem {
            key,
            value: parts,
            flags,
            expiry,
            history: History::NEW,
        };
        let draft = if drafts { self.draft(n, &value) } else { None };
        let now = self.now;
        let at = (*keyhash, self.home(n));
        let stored = match draft.is_some() || self.rng.random_bool(0.5) {
            true => {
                let mut writer = self.enter(n);
                writer.bring(draft);
                let stored = writer.put(*keyhash, &item, now);
                writer.bring(None);
                stored
            }
            false => self.owner.put_at(at, &item, now, self.flushes),
        };
        let cas = match stored {
            Stored::Yes(cas) => cas,
            Stored::OutOfMemory if self.load.loses_nothing => return,
            refused => panic!("{len} bytes are within the limit: {refused:?}"),
        };
        self.oracle.insert(
            n,
            Item {
                value,
                flags,
                expiry,
                cas,
            },
        );
    }

    /// Copies a value before it is stored, if it is large. Sometimes others are stored before it
    /// is, and it may lose its place, or there is a flush.
    fn draft(&mut self, n: u32, value: &[u8]) -> Option<Draft> {
        let keys = self.keys.clone();
        let Key { bytes, keyhash } = &keys[n as usize];
        let large = Large {
            key: bytes,
            keyhash: *keyhash,
            value,
            now: self.now,
        };
        let (home, flushes) = (self.home(n), self.flushes);
        let is_wanted = self.rng.random_bool(0.9);
        let draft = self.owner.draft(home, flushes, &large, |_| is_wanted)?;
        self.drafts += 1;
        if self.rng.random_bool(0.2) {
            for _ in 0..self.rng.random_range(0..20) {
                let other = self.rng.random_range(0..self.load.keys);
                self.put(other);
            }
        }
        if self.rng.random_bool(0.01 * self.load.flushes) {
            self.flushes += 1;
            self.oracle.clear();
        }
        if self.rng.random_bool(0.9) {
            return Some(draft);
        }
        // It is not stored after all.
        let mut writer = self.enter(n);
        writer.bring(Some(draft));
        writer.bring(None);
        None
    }

    /// Puts bytes on either side of a value, or on one.
    fn extend(&mut self, n: u32) {
        let keys = self.keys.clone();
        let Key { bytes, keyhash } = &keys[n as usize];
        let room = self.load.value_max;
        let part = |is_there: bool, rng: &mut SmallRng| -> Vec<u8> {
            let most = if rng.random_bool(0.1) {
                room
            } else {
                room.min(40)
            };
            let len = if is_there {
                rng.random_range(0..=most / 2)
            } else {
                0
            };
            (0..len).map(|_| rng.random()).collect()
        };
        let (before, after) = match self.rng.random_range(0..4) {
            0 => (true, false),
            1 => (true, true),
            _ => (false, true),
        };
        let parts = [before, after].map(|is_there| part(is_there, &mut self.rng));
        let now = self.now;
        let mut writer = self.enter(n);
        let old = writer.find(*keyhash, bytes, now);
        let (flags, expiry) = old.map_or((0, Expiry::NEVER), |old| (old.flags(), old.expiry()));
        let item = NewItem {
            key: bytes,
            value: [&parts[0], &parts[1]],
            flags,
            expiry,
            history: History::NEW,
        };
        let stored = writer.extend(*keyhash, &item, now);
        drop(writer);
        let expected = self.oracle.get_mut(&n);
        let expected = expected.filter(|item| !item.expiry.is_due(now));
        match (stored, expected) {
            (Some(Stored::Yes(cas)), Some(expected)) => {
                expected.value = [&parts[0], &expected.value, &parts[1]]
                    .map(Vec::as_slice)
                    .concat();
                expected.cas = cas;
            }
            (Some(Stored::Yes(_)), None) => panic!("key {n} came back from the dead"),
            (Some(Stored::TooLarge), Some(expected)) => {
                let bytes = expected.value.len() + parts[0].len() + parts[1].len();
                assert!(
                    bytes + 300 > self.load.item_bytes_max,
                    "{bytes} bytes are within the limit"
                );
            }
            (Some(Stored::OutOfMemory), Some(_)) if self.load.loses_nothing => {}
            (None, Some(_)) => {
                assert!(!self.load.loses_nothing, "key {n} was lost");
                self.oracle.remove(&n);
            }
            (None, None) => drop(self.oracle.remove(&n)),
            (refused, None) => panic!("key {n} is not there: {refused:?}"),
            (refused, Some(_)) => panic!("key {n}: {refused:?}"),
        }
    }

    fn remove(&mut self, n: u32) {
        let (keys, now) = (self.keys.clone(), self.now);
        let Key { bytes, keyhash } = &keys[n as usize];
        let there = self.enter(n).remove(*keyhash, bytes, now);
        let expected = self.oracle.remove(&n);
        let expected = expected.is_some_and(|item| !item.expiry.is_due(self.now));
        assert!(
            there == expected || expected && !self.load.loses_nothing,
            "delete of key {n}"
        );
    }

    fn step(&mut self) {
        let n = self.rng.random_range(0..self.load.keys);
        let keys = self.keys.clone();
        let Key {
            bytes: key,
            keyhash,
        } = &keys[n as usize];
        let keyhash = *keyhash;
        if self.rng.random_bool(0.3) {
            let some = self.rng.random_range(0..self.load.keys);
            self.prefetch(some);
        }
        match self.rng.random_range(0..1000) {
            0..350 => self.put(n),
            350..450 => self.extend(n),
            450..800 => self.check(n),
            800..900 => self.remove(n),
            900..990 => {
                let expiry = if self.rng.random_bool(0.5) {
                    Expiry::NEVER
                } else {
                    Expiry::at_ms(self.now.ms + 3_000)
                };
                let now = self.now;
                let there = self.enter(n).touch(keyhash, key, expiry, now);
                match self
                    .oracle
                    .get_mut(&n)
                    .filter(|item| !item.expiry.is_due(self.now))
                {
                    Some(item) if there => item.expiry = expiry,
                    // There was no room for an expiry.
                    Some(_) if self.load.loses_nothing => {}
                    expected => {
                        assert!(!there || expected.is_some(), "touch of key {n}");
                        self.oracle.remove(&n);
                    }
                }
            }
            990..998 => self.now.ms += self.rng.random_range(0..2_000),
            998 if self.rng.random_bool(self.load.flushes) => {
                self.flushes += 1;
                self.oracle.clear();
            }
            _ => {
                let too_large = vec![0; self.load.item_bytes_max + 100];
                let item = NewItem {
                    key,
                    value: [&too_large, &[]],
                    flags: 0,
                    expiry: Expiry::NEVER,
                    history: History::NEW,
                };
                let stored = self.owner.enter(self.flushes).put(keyhash, &item, self.now);
                assert_eq!(stored, Stored::TooLarge);
            }
        }
    }

    /// Every key that can be found is counted, and nothing else.
    fn audit(&mut self, keys: u32) {
        for n in 0..keys {
            self.check(n);
        }
        // Under a rule that moves what is read, those reads may have evicted what was found before.
        let mut unexpired = 0;
        for n in self.oracle.keys() {
            let Key { bytes, keyhash } = &self.keys[*n as usize];
            let writer = self.owner.enter(self.flushes);
            unexpired += u64::from(writer.find(*keyhash, bytes, self.now).is_some());
        }
        let counts = self.owner.figures().counts(self.flushes);
        assert!(
            counts.items >= unexpired,
            "{counts:?} but {unexpired} found"
        );
        // Expired items count until their place is wanted, as in memcached; move past every expiry
        // that was given and take them out.
        for n in 0..keys {
            let Key { bytes, keyhash } = &self.keys[n as usize];
            let mut writer = self.owner.enter(self.flushes);
            writer.remove(*keyhash, bytes, self.now);
        }
        self.oracle.clear();
        let counts = self.owner.figures().counts(self.flushes);
        assert_eq!((counts.items, counts.bytes), (0, 0), "{counts:?}");
    }
}

/// Drives a table with random operations beside a map. `walk` is to walk the table, which has
/// carried out this many flushes, and to panic unless all is as it should be.
pub fn run<T: Table>(table: T, load: Load, walk: impl Fn(&mut T, u64)) -> Outcome {
    let seed = glimmer_seeds::seed();
    let mut run = Run::new(table, load, seed);
    let all_keys = load.keys.max(load.later_keys);
    let (mut first, mut late) = (Counts::default(), Counts::default());
    let audit_steps = AUDIT_STEPS.min(load.steps);
    let walk_steps = WALK_STEPS.min(load.steps / SHORT_RUN_WALKS);
    for step in 0..load.steps {
        if step == load.steps / 3 {
            run.load.keys = load.later_keys;
            run.load.value_max = load.later_value_max;
            // What is no longer asked for is removed where it would stay for ever.
            if load.loses_nothing {
                (load.later_keys..all_keys).for_each(|n| run.remove(n));
            }
        }
        if step == load.steps / 5 * 4 {
            late = run.owner.figures().counts(run.flushes);
        }
        run.step();
        if step % walk_steps == walk_steps - 1 {
            walk(&mut run.owner, run.flushes);
        }
        if step == audit_steps - 1 {
            first = run.owner.figures().counts(run.flushes);
        }
        if step % audit_steps == audit_steps - 1 {
            run.audit(all_keys);
        }
    }
    let counts = run.owner.figures().counts(run.flushes);
    println!("{}: {counts:?}", T::Access::NAME);
    Outcome {
        counts,
        first,
        late,
        drafts: run.drafts,
    }
}
