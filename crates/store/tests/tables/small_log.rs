//! Values that are asked for once must not push out what is read, even if few of them fit the small
//! log at a time.
#![cfg(not(miri))]

use glimmer_base::{Moment, Seed};
use glimmer_store::access::Erew;
use glimmer_store::evict::S3_FIFO;
use glimmer_store::heap::NewItem;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Table, TableWriter};

const SEED: Seed = Seed(5);
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

struct Cache(Owner<Erew>);

impl Cache {
    /// One of the twelve partitions of a server with `-m 128`.
    fn new() -> Cache {
        let config = PartitionConfig {
            log_bytes: 9_900 << 10,
            main_buckets: 805,
            spare_buckets: 152,
            index_follows: true,
            item_bytes_max: 1 << 20,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        Cache(Owner::new(&config, S3_FIFO).unwrap())
    }

    fn put(&mut self, number: u32, value_bytes: usize) {
        let (key, value) = (format!("{number:016}"), vec![7; value_bytes]);
        let item = NewItem::new(key.as_bytes(), &value);
        let keyhash = SEED.keyhash(key.as_bytes());
        self.0.enter(0).put(keyhash, &item, NOW);
    }

    fn reads(&mut self, number: u32) -> bool {
        let key = format!("{number:016}");
        let keyhash = SEED.keyhash(key.as_bytes());
        let mut writer = self.0.enter(0);
        writer.read(keyhash, key.as_bytes(), NOW, |_| ()).is_some()
    }
}

#[test]
fn a_scan_of_64_kib_values_leaves_what_is_read_in_a_partition_of_ten_mebibytes() {
    const READ: u32 = 1_000;
    let mut cache = Cache::new();
    // A part of the memory is read, and the rest is filled with what is not.
    for number in 0..READ {
        cache.put(number, 4 << 10);
        assert!(cache.reads(number) && cache.reads(number));
    }
    for number in READ..3 * READ {
        cache.put(number, 4 << 10);
    }
    let before = (0..READ).filter(|&number| cache.reads(number)).count();
    assert!(before as u32 > READ * 9 / 10, "{before}");
    // Twelve times the memory, asked for once.
    for number in 0..2 * READ {
        cache.put((1 << 20) + number, 64 << 10);
    }
    let after = (0..READ).filter(|&number| cache.reads(number)).count();
    assert!(after * 10 > before * 9, "{after} of {before}");
}
