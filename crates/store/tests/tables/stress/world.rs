//! What the threads of a race share: the clock, the flushes, and what they know of each key.

use crate::oracle::SEED;
use glimmer_base::limits::DRAFT_BYTES_MIN;
use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The seed of the checksum at the end of each value.
const CHECKSUM: Seed = Seed(9);
/// The clock moves one millisecond for this many operations of the writers.
const OPERATIONS_PER_MS: u64 = 4;
/// No expiry lies further in the future than this.
const EXPIRY_MS_MAX: u64 = 1_000;

/// How large a race is, and what happens in it.
#[derive(Clone, Copy)]
pub struct Race {
    pub keys: u32,
    /// The keys below this number are there before the threads start. Nothing removes them.
    pub kept: u32,
    /// Operations of each writer. The other threads go on until the writers are done.
    pub operations: u32,
    /// The most bytes of a large value. One value in twenty is large.
    pub filling_max: usize,
    /// Whether the table has writers copy large values ahead, where all may write.
    pub copies_ahead: bool,
    /// A flush follows each time that the writers have done this many operations.
    pub flush_every: Option<u64>,
}

impl Race {
    /// The size for an ordinary test run.
    pub const fn new() -> Race {
        let operations = if cfg!(debug_assertions) {
            60_000
        } else {
            400_000
        };
        Race {
            keys: 600,
            kept: 0,
            operations,
            filling_max: 3_000,
            copies_ahead: true,
            flush_every: Some(4_000),
        }
    }

    /// A race that Miri finishes in seconds.
    pub const fn tiny() -> Race {
        Race {
            keys: 10,
            kept: 0,
            operations: if cfg!(miri) { 15 } else { 20_000 },
            filling_max: 60,
            copies_ahead: true,
            flush_every: Some(if cfg!(miri) { 30 } else { 1_000 }),
        }
    }

    /// A race with values that are copied while no lock is held.
    pub const fn of_large_values() -> Race {
        Race {
            operations: if cfg!(debug_assertions) {
                6_000
            } else {
                60_000
            },
            filling_max: 60_000,
            ..Race::new()
        }
    }

    /// Whether values are so large that they are copied ahead, and lent.
    pub const fn has_large_values(&self) -> bool {
        self.filling_max >= 2 * DRAFT_BYTES_MIN
    }

    /// Whether there are values that are large enough to be lent. Few words are enough under Miri.
    pub const fn lends(&self) -> bool {
        self.has_large_values() || cfg!(miri)
    }

    /// Whether the writers may be done before a reader has found anything.
    pub const fn is_short(&self) -> bool {
        self.operations < Race::new().operations
    }
}

/// A key of the race. Keys differ in length.
pub struct Key {
    pub bytes: Vec<u8>,
    pub keyhash: Keyhash,
}

impl Key {
    fn new(n: u32) -> Key {
        let bytes = format!("{n:0width$}", width = 4 + n as usize % 13).into_bytes();
        let keyhash = SEED.keyhash(&bytes);
        Key { bytes, keyhash }
    }
}

/// Writes a value: key, version, filling, checksum.
pub fn value(n: u32, version: u64, filling: usize, into: &mut Vec<u8>) {
    into.clear();
    into.extend(n.to_le_bytes());
    into.extend(version.to_le_bytes());
    into.extend((0..filling).map(|i| (version as usize + i) as u8));
    let checksum = CHECKSUM.keyhash(into).0;
    into.extend(checksum.to_le_bytes());
}

/// Appends filling and a checksum to a value, unless it is too long for that.
pub fn append(filling: usize, filling_max: usize, value: &mut Vec<u8>) -> bool {
    if value.len() + filling > filling_max {
        return false;
    }
    value.extend((0..filling).map(|i| i as u8));
    let checksum = CHECKSUM.keyhash(value).0;
    value.extend(checksum.to_le_bytes());
    true
}

/// The version in a value that must belong to key `n`.
fn version_in(n: u32, value: &[u8]) -> u64 {
    let (body, checksum) = value.split_at(value.len() - 8);
    assert_eq!(
        CHECKSUM.keyhash(body).0.to_le_bytes(),
        checksum,
        "torn value of {} bytes",
        value.len()
    );
    assert_eq!(
        u32::from_le_bytes(body[..4].try_into().unwrap()),
        n,
        "foreign value"
    );
    u64::from_le_bytes(body[4..12].try_into().unwrap())
}

/// What the threads share.
pub struct World {
    pub race: Race,
    keys: Vec<Key>,
    /// The last version of each key whose store has returned.
    acknowledged: Vec<AtomicU64>,
    /// The next version of each key. Versions of a key rise with each store.
    next: Vec<AtomicU64>,
    /// The last version of each key whose store had returned when the last flush was asked for.
    flushed: Vec<AtomicU64>,
    flushes: AtomicU64,
    operations: AtomicU64,
    done: AtomicBool,
}

/// What a reader knows of a key before it reads.
pub struct Before {
    acknowledged: u64,
    flushed: u64,
    pub flushes: u64,
    pub now: Moment,
}

/// What a reader found.
pub struct Found<'a> {
    pub value: &'a [u8],
    pub flags: u32,
    pub expiry: Expiry,
}

impl World {
    pub fn new(race: Race) -> World {
        let versions = |first| (0..race.keys).map(|_| AtomicU64::new(first)).collect();
        World {
            race,
            keys: (0..race.keys).map(Key::new).collect(),
            acknowledged: versions(0),
            next: versions(1),
            flushed: versions(0),
            flushes: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            done: AtomicBool::new(false),
        }
    }

    pub fn key(&self, n: u32) -> &Key {
        &self.keys[n as usize]
    }

    /// The clock. It follows the writers, and orders nothing.
    pub fn now(&self) -> Moment {
        Moment {
            ms: 2_000 + self.operations.load(Relaxed) / OPERATIONS_PER_MS,
            epoch_unix_ms: 0,
        }
    }

    /// How many flushes have been asked for.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(SeqCst)
    }

    pub fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }

    pub fn finish(&self) {
        self.done.store(true, SeqCst);
    }

    /// Counts an operation of a writer.
    pub fn count_operation(&self) {
        self.operations.fetch_add(1, Relaxed);
    }

    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// An expiry that no other key gets, at most a second from now.
    pub fn expiry(&self, n: u32, now: Moment, draw: u64) -> Expiry {
        let keys = u64::from(self.race.keys);
        let ms = now.ms + draw % EXPIRY_MS_MAX;
        Expiry::at_ms(ms.next_multiple_of(keys) + u64::from(n))
    }

    pub fn next_version(&self, n: u32) -> u64 {
        self.next[n as usize].fetch_add(1, SeqCst)
    }

    /// A store of this version has returned.
    pub fn acknowledge(&self, n: u32, version: u64) {
        self.acknowledged[n as usize].store(version, SeqCst);
    }

    /// Asks for a flush. What had been acknowledged by now is gone afterwards.
    pub fn flush(&self) {
        let gone = self.acknowledged.iter().map(|version| version.load(SeqCst));
        let gone: Vec<u64> = gone.collect();
        self.flushes.fetch_add(1, SeqCst);
        for (flushed, version) in self.flushed.iter().zip(gone) {
            flushed.store(version, SeqCst);
        }
    }

    /// To be called before a read.
    pub fn before(&self, n: u32) -> Before {
        Before {
            acknowledged: self.acknowledged[n as usize].load(SeqCst),
            flushed: self.flushed[n as usize].load(SeqCst),
            // After the flushed version: the table is to be as new as that flush.
            flushes: self.flushes(),
            now: self.now(),
        }
    }

    /// Checks every byte that a reader found.
    pub fn check(&self, n: u32, before: &Before, found: &Found<'_>) {
        assert_eq!(found.flags, n, "foreign flags");
        let version = version_in(n, found.value);
        let Before {
            acknowledged,
            flushed,
            ..
        } = *before;
        assert!(
            version >= acknowledged,
            "key {n}: version {version} after {acknowledged} was acknowledged"
        );
        assert!(
            version > flushed || flushed == 0,
            "key {n}: version {version} came back after a flush of {flushed}"
        );
        let expiry = found.expiry;
        assert!(!expiry.is_due(before.now), "key {n} has expired");
        let of = expiry.ms() % u64::from(self.race.keys);
        let is_its_own = expiry == Expiry::NEVER || n >= self.race.kept && of == u64::from(n);
        assert!(is_its_own, "key {n} with a foreign expiry: {expiry:?}");
    }
}
