//! A memory file of a test, and partitions in it.

use super::load::Load;
use glimmer_base::{Moment, Seed};
use glimmer_store::access::Access;
use glimmer_store::evict::Rule;
use glimmer_store::heap::Item;
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::{FileError, FileState, MemoryFile, PagePolicy};
use glimmer_store::mica_cache::{self, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::{ConfigError, Table, TableWriter};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const SEED: Seed = Seed(5);

/// A file's name that is not in use. What is there is removed in the end.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        Place(folder.join(format!("glimmer-test-{process}-{next}")))
    }

    pub fn file(&self, partitions: usize) -> Result<Arc<MemoryFile>, FileError> {
        MemoryFile::open(&self.0, partitions, &[("-m", "1".to_owned())], false)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A store of one kind that can be made again in the same file.
#[derive(Clone, Copy)]
pub struct Kind {
    pub partitions: usize,
    pub rule: Rule,
    pub bytes: usize,
    pub main_buckets: usize,
    pub item_bytes_max: usize,
    pub in_common: bool,
}

/// Where a partition lies: a file, and which of its partitions it is.
pub type At = Option<(Arc<MemoryFile>, usize)>;

/// A table that can lie in a file.
pub trait Kept: Table {
    /// What all partitions are made of.
    type Config;
    /// Whether an item other than the request's may be lost when the process is ended.
    const LOSES_OTHERS: bool;

    fn config(kind: &Kind) -> Self::Config;
    fn made(config: &mut Self::Config, kind: &Kind, at: At) -> Result<Self, ConfigError>;
    /// Everything is sound.
    fn audit(writer: &mut Self::Writer<'_>);
}

impl<A: Access> Kept for mica_cache::Owner<A> {
    type Config = PartitionConfig;
    const LOSES_OTHERS: bool = true;

    fn config(kind: &Kind) -> PartitionConfig {
        let mut config = PartitionConfig {
            log_bytes: kind.bytes,
            main_buckets: kind.main_buckets,
            spare_buckets: kind.main_buckets / 2,
            index_follows: true,
            item_bytes_max: kind.item_bytes_max,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        if kind.in_common {
            config.commons = config.commons(kind.partitions);
        }
        config
    }

    fn made(config: &mut PartitionConfig, kind: &Kind, at: At) -> Result<Self, ConfigError> {
        config.file = at;
        mica_cache::Owner::new(config, kind.rule)
    }

    fn audit(writer: &mut Self::Writer<'_>) {
        writer.audit();
    }
}

impl<A: Access> Kept for mica_store::Owner<A> {
    type Config = StoreConfig;
    const LOSES_OTHERS: bool = false;

    fn config(kind: &Kind) -> StoreConfig {
        StoreConfig {
            bytes: kind.bytes,
            roots: Some(kind.main_buckets),
            item_bytes_max: kind.item_bytes_max,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..StoreConfig::default()
        }
    }

    fn made(config: &mut StoreConfig, _: &Kind, at: At) -> Result<Self, ConfigError> {
        config.file = at;
        mica_store::Owner::new(config)
    }

    fn audit(writer: &mut Self::Writer<'_>) {
        writer.audit();
    }
}

impl<A: Access> Kept for memc3::Owner<A> {
    type Config = Memc3Config;
    const LOSES_OTHERS: bool = false;

    fn config(kind: &Kind) -> Memc3Config {
        Memc3Config {
            memory_bytes: kind.bytes,
            // Small ones have the index grow with few items.
            page_bytes: 256 << (kind.main_buckets % 3),
            item_bytes_max: kind.item_bytes_max,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..Memc3Config::default()
        }
    }

    fn made(config: &mut Memc3Config, _: &Kind, at: At) -> Result<Self, ConfigError> {
        config.file = at;
        memc3::Owner::new(config)
    }

    fn audit(writer: &mut Self::Writer<'_>) {
        writer.audit();
    }
}

/// A store in a file.
pub struct Store<T> {
    pub partitions: Vec<T>,
    pub file: Arc<MemoryFile>,
}

impl Kind {
    pub fn store<T: Kept>(&self, place: &Place) -> Store<T> {
        self.try_store(place).unwrap()
    }

    /// The store as it is before its process begins to serve.
    pub fn attached<T: Kept>(&self, place: &Place) -> Result<Store<T>, Box<dyn Error>> {
        let file = place.file(self.partitions)?;
        let mut config = T::config(self);
        let numbers = 0..self.partitions;
        let partitions =
            numbers.map(|number| T::made(&mut config, self, Some((file.clone(), number))));
        let partitions = partitions.collect::<Result<_, _>>()?;
        Ok(Store { partitions, file })
    }

    /// Why what the file holds is refused, if it is.
    pub fn try_store<T: Kept>(&self, place: &Place) -> Result<Store<T>, Box<dyn Error>> {
        let store = self.attached(place)?;
        store.file.begin();
        Ok(store)
    }
}

/// Everything that a store holds: keys with values, flags, expiries and CAS uniques.
pub type Contents = BTreeMap<Vec<u8>, Held>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub value: Vec<u8>,
    pub flags: u32,
    pub expiry_ms: u64,
    pub cas: u64,
}

impl Held {
    pub fn of(item: &Item<'_>) -> (Vec<u8>, Held) {
        let mut value = Vec::new();
        item.value().append_to(&mut value);
        let held = Held {
            value,
            flags: item.flags(),
            expiry_ms: item.expiry().ms(),
            cas: item.cas(),
        };
        (item.key(&mut [0; 256]).to_vec(), held)
    }
}

impl<T: Kept> Store<T> {
    pub fn partition(&mut self, key: &[u8]) -> &mut T {
        let count = self.partitions.len();
        &mut self.partitions[SEED.keyhash(key).partition(count)]
    }

    /// What is there for the next request of a load. Everything is sound.
    pub fn contents_for(&mut self, load: &Load) -> Contents {
        self.contents(load.flushes, load.now)
    }

    /// What is there at a time when so many flushes were due. Everything is sound.
    pub fn contents(&mut self, flushes: u64, now: Moment) -> Contents {
        let mut contents = Contents::new();
        for owner in &mut self.partitions {
            let mut writer = owner.enter(flushes);
            let mut next = Some(0);
            while let Some(chain) = next {
                next = writer.list(chain, now, &mut |item, _| {
                    let (key, held) = Held::of(item);
                    assert!(contents.insert(key, held).is_none(), "a key is there twice");
                });
            }
            T::audit(&mut writer);
        }
        contents
    }

    /// Items that were not whole when the store was made from what was found.
    pub fn lost(&self) -> u64 {
        let figures = self
            .partitions
            .iter()
            .map(|owner| owner.figures().counts(0));
        figures.map(|counts| counts.lost).sum()
    }

    /// Closes the store at a time when so many flushes are due.
    pub fn close(mut self, flushes: u64) {
        self.save(flushes);
    }

    /// Has the file be closed, and the store still be there.
    pub fn save(&mut self, flushes: u64) {
        for owner in &mut self.partitions {
            owner.save(flushes);
        }
        self.file.close();
    }

    pub fn found(&self) -> FileState {
        self.file.state()
    }
}
