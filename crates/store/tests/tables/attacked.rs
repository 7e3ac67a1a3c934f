//! One bucket is filled with keys that collide in every bit of their keyhashes, as by a client that
//! had computed them.

use glimmer_base::{KeyHasher, Keyhash, Moment, Seed};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{Item, NewItem};
use glimmer_store::table::{Counts, Stored, Table, TableReader, TableWriter};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// Keys of other clients, which are spread over all buckets but the one.
const VICTIMS: usize = 300;
/// Keys in one bucket. The longest chain has far fewer entries.
const COLLIDING: u32 = 2_000;

/// A key that begins with this byte is spread.
const SPREAD: u8 = b's';
/// A key that begins with this byte has the keyhash of all keys that do.
const COLLIDES: u8 = b'c';
const THE_KEYHASH: u64 = 0x8123_4567_89AB_CDEF;
/// Main buckets of a table at its start, where it can be told.
pub const ROOTS: usize = 64;

/// What the tables hash by.
pub fn hasher() -> KeyHasher {
    KeyHasher::chosen(|key| {
        let spread = Seed(1).keyhash(key).0;
        match key[0] {
            COLLIDES => [THE_KEYHASH, spread],
            _ => [spread, !spread],
        }
    })
}

/// The keyhash of one for nine keys in ten.
pub fn of_most(key: &[u8]) -> Keyhash {
    let spread = Seed(1).keyhash(key);
    match spread.0 % 10 {
        0 => spread,
        _ => Keyhash(THE_KEYHASH),
    }
}

/// What hashes so.
pub fn hasher_of_most() -> KeyHasher {
    KeyHasher::chosen(|key| [of_most(key).0, Seed(1).keyhash(key).0])
}

fn key(kind: u8, number: u32) -> [u8; 8] {
    let mut key = [kind; 8];
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

fn copy(item: &Item<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    value
}

/// The keys of other clients.
fn victims() -> impl Iterator<Item = [u8; 8]> {
    let bucket = |keyhash: Keyhash| keyhash.bucket(ROOTS);
    let hasher = hasher();
    (0..)
        .map(|number| key(SPREAD, number))
        .filter(move |key| bucket(hasher.keyhash(key)) != bucket(Keyhash(THE_KEYHASH)))
        .take(VICTIMS)
}

/// A table, and who reads it beside its writer.
struct World<T: Table> {
    owner: T,
    reader: Option<T::Reader>,
    participant: Participant,
    hasher: KeyHasher,
}

impl<T: Table> World<T> {
    fn new(mut owner: T) -> World<T> {
        let (batches, mut participants) = Batches::new(1);
        owner.join(&batches, 0);
        World {
            reader: owner.reader(),
            owner,
            participant: participants.remove(0),
            hasher: hasher(),
        }
    }

    fn keyhash(&self, key: &[u8]) -> Keyhash {
        self.hasher.keyhash(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (keyhash, item) = (self.keyhash(key), NewItem::new(key, value));
        let stored = self.owner.enter(0).put(keyhash, &item, NOW);
        matches!(stored, Stored::Yes(_))
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let keyhash = self.keyhash(key);
        self.owner.enter(0).remove(keyhash, key, NOW)
    }

    /// What the writer reads. Readers beside it read the same.
    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let keyhash = self.keyhash(key);
        let writer = self.owner.enter(0);
        let value = writer.find(keyhash, key, NOW).map(|item| copy(&item));
        if let Some(reader) = &self.reader {
            let batch = self.participant.begin();
            let beside = reader.read(&batch, keyhash, key, NOW, 0, copy);
            assert_eq!(beside, Ok(value.clone()));
        }
        value
    }

    fn counts(&self) -> Counts {
        self.owner.figures().counts(0)
    }

    /// Stores the victims and what is to displace them, for which there is memory.
    fn attack(&mut self) {
        for key in victims() {
            assert!(self.put(&key, b"victim"));
        }
        for number in 0..COLLIDING {
            assert!(self.put(&key(COLLIDES, number), b"attacker"));
        }
    }

    fn victims_are_there(&mut self) {
        for (number, key) in victims().enumerate() {
            let value = self.get(&key);
            assert_eq!(value.as_deref(), Some(&b"victim"[..]), "victim {number}");
        }
    }
}

/// In a cache, keys of one bucket displace one another, and no other key.
pub fn displaces_no_other<T: Table>(owner: T) {
    let mut world = World::new(owner);
    world.attack();
    world.victims_are_there();
    let last = world.get(&key(COLLIDES, COLLIDING - 1));
    assert!(last.is_some(), "what has just been stored is there");
    let counts = world.counts();
    assert_eq!(counts.evictions, counts.index_evictions, "memory is ample");
    assert!(counts.index_evictions > 0, "{counts:?}");
}

/// A store keeps all keys of one bucket, until memory is used up.
pub fn keeps_everything<T: Table>(make: impl Fn() -> T) {
    let mut world = World::new(make());
    world.attack();
    world.victims_are_there();
    assert_eq!(world.counts().refused, 0);
    let all = || (0..COLLIDING).map(|number| key(COLLIDES, number));
    for key in all() {
        assert_eq!(world.get(&key).as_deref(), Some(&b"attacker"[..]));
    }
    // Each of them can be written over, by what fits in its place and by what does not; and
    // removed, and stored again.
    for (number, key) in all().enumerate() {
        let value = vec![number as u8; [8, 40][number % 2]];
        assert!(world.put(&key, &value));
        assert_eq!(world.get(&key), Some(value));
    }
    for key in all().step_by(3) {
        assert!(world.remove(&key) && !world.remove(&key));
        assert_eq!(world.get(&key), None);
    }
    let left = VICTIMS as u32 + COLLIDING - COLLIDING.div_ceil(3);
    assert_eq!(world.counts().items, u64::from(left));
    for key in all().step_by(3) {
        assert!(world.put(&key, b"again"));
    }
    for (number, key) in all().enumerate() {
        let value = world.get(&key).expect("it was stored");
        assert_eq!(value == b"again", number % 3 == 0, "key {number}");
    }
    world.victims_are_there();

    let fill = |kind| {
        let mut world = World::new(make());
        let stored = (0..).take_while(|&number| world.put(&key(kind, number), &[7; 40]));
        let stored = stored.count() as u32;
        for number in 0..stored {
            assert_eq!(world.get(&key(kind, number)).as_deref(), Some(&[7; 40][..]));
        }
        stored
    };
    let (colliding, spread) = (fill(COLLIDES), fill(SPREAD));
    println!("{colliding} keys of one bucket, {spread} of all");
    // They lie in half of all chains, so that the index takes more of the memory.
    assert!(colliding * 8 > spread * 7);
}
