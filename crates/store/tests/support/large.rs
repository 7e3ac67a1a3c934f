//! Large items for the model checker: tables of a few words, items that count as large, and readers
//! beside their writers.

use glimmer_base::{Expiry, Keyhash, Moment, Seed};
use glimmer_store::access::Crcw;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::evict::FIFO;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{self, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::{Large, Stored, Table, TableWriter};

pub const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
pub const SEED: Seed = Seed(1);
/// A large value. Its item takes 8 words, and its place 10.
pub const LARGE: usize = 48;
/// Words of the largest item.
pub const ITEM_WORDS_MAX: usize = 10;

pub type Cache = mica_cache::Owner<Crcw>;
pub type Store = mica_store::Owner<Crcw>;
pub type Key = ([u8; 1], Keyhash);

/// A partition of two buckets whose log has this many words.
pub fn cache(log_words: usize, index_follows: bool) -> Cache {
    let config = PartitionConfig {
        log_bytes: 8 * log_words,
        main_buckets: 2,
        spare_buckets: 0,
        index_follows,
        item_bytes_max: 8 * ITEM_WORDS_MAX,
        offset_bits: 40,
        pages: PagePolicy::Small,
        numa_node: None,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    Cache::new(&config, FIFO).unwrap()
}

/// A partition in store mode with this much memory. Its index takes 16 words of it at least.
pub fn store(words: usize) -> Store {
    Store::new(&StoreConfig {
        bytes: 8 * words,
        roots: Some(1),
        item_bytes_max: 8 * ITEM_WORDS_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    })
    .unwrap()
}

/// The n-th one-byte key that belongs to a bucket.
pub fn key(bucket: usize, n: usize) -> Key {
    (b'a'..=b'z')
        .map(|byte| ([byte], SEED.keyhash(&[byte])))
        .filter(|(_, hash)| hash.bucket(2) == bucket)
        .nth(n)
        .unwrap()
}

pub fn item<'a>(key: &'a [u8], value: &'a [u8]) -> NewItem<'a> {
    NewItem {
        key,
        value: [value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    }
}

/// Stores a value that is copied under the lock. Returns its CAS unique.
pub fn put<T: Table>(owner: &mut T, flushes: u64, (key, keyhash): Key, value: &[u8]) -> u64 {
    let stored = owner.enter(flushes).put(keyhash, &item(&key, value), NOW);
    match stored {
        Stored::Yes(cas) => cas,
        refused => panic!("{refused:?}"),
    }
}

/// Stores a large value that is copied before.
pub fn put_large<T: Table>(owner: &mut T, (key, keyhash): Key, fill: u8) {
    let value = [fill; LARGE];
    let large = Large {
        key: &key,
        keyhash,
        value: &value,
        now: NOW,
    };
    let draft = owner.draft(Default::default(), 0, &large, |_| true);
    assert!(draft.is_some(), "the value is large");
    let mut writer = owner.enter(0);
    writer.bring(draft);
    let stored = writer.put(keyhash, &item(&key, &value), NOW);
    writer.bring(None);
    assert!(matches!(stored, Stored::Yes(_)));
}

pub struct Looker<T: Table> {
    pub reader: T::Reader,
    pub participant: Participant,
}

/// A reader on worker 0. Worker 1 has the table.
pub fn looker<T: Table>(owner: &mut T) -> Looker<T> {
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    Looker {
        reader: owner.reader().unwrap(),
        participant: participants.remove(0),
    }
}
