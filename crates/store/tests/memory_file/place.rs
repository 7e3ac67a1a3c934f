//! A memory file of a test, and partitions in it.

use glimmer_base::Seed;
use glimmer_store::access::Access;
use glimmer_store::evict::Rule;
use glimmer_store::heap::Item;
use glimmer_store::memory::{FileError, FileState, MemoryFile, PagePolicy};
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Table, TableWriter};
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
    pub log_bytes: usize,
    pub main_buckets: usize,
    pub item_bytes_max: usize,
    pub in_common: bool,
}

/// A store in a file.
pub struct Store<A: Access> {
    pub partitions: Vec<Owner<A>>,
    pub file: Arc<MemoryFile>,
}

impl Kind {
    pub fn store<A: Access>(&self, place: &Place) -> Store<A> {
        self.try_store(place).unwrap()
    }

    /// Why what the file holds is refused, if it is.
    pub fn try_store<A: Access>(&self, place: &Place) -> Result<Store<A>, Box<dyn Error>> {
        let file = place.file(self.partitions)?;
        let mut config = PartitionConfig {
            log_bytes: self.log_bytes,
            main_buckets: self.main_buckets,
            spare_buckets: self.main_buckets / 2,
            index_follows: true,
            item_bytes_max: self.item_bytes_max,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        if self.in_common {
            config.commons = config.commons(self.partitions);
        }
        let partitions = (0..self.partitions).map(|number| {
            config.file = Some((file.clone(), number));
            Owner::new(&config, self.rule)
        });
        let partitions = partitions.collect::<Result<_, _>>()?;
        file.begin();
        Ok(Store { partitions, file })
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

impl<A: Access> Store<A> {
    pub fn partition(&mut self, key: &[u8]) -> &mut Owner<A> {
        let count = self.partitions.len();
        &mut self.partitions[SEED.keyhash(key).partition(count)]
    }

    /// What is there at a time when so many flushes were due. Everything is sound.
    pub fn contents(&mut self, flushes: u64) -> Contents {
        let mut contents = Contents::new();
        for owner in &mut self.partitions {
            let mut writer = owner.enter(flushes);
            let mut next = Some(0);
            while let Some(chain) = next {
                next = writer.list(chain, super::load::NOW, &mut |item, _| {
                    let (key, held) = Held::of(item);
                    assert!(contents.insert(key, held).is_none(), "a key is there twice");
                });
            }
            writer.audit();
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

    pub fn close(mut self) {
        for owner in &mut self.partitions {
            owner.save();
        }
        self.file.close();
    }

    pub fn found(&self) -> FileState {
        self.file.state()
    }
}
