//! Reserved huge pages, where there are some: the test reserves a few if it may, and gives them
//! back; where it may not it says so.
#![cfg(target_os = "linux")]
#![cfg(not(loom))]

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::Erew;
use glimmer_store::evict::S3Fifo;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::memory::{PagePolicy, PageReport};
use glimmer_store::partition::{Owner, PartitionConfig};
use glimmer_store::table::TableFigures;
use std::fs;

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// Huge pages that were reserved for the test; given back when dropped.
struct Reserved(String);

impl Reserved {
    fn pages(count: usize) -> Option<Reserved> {
        let before = fs::read_to_string(RESERVED).ok()?.trim().to_owned();
        let wanted = before.parse::<usize>().ok()? + count;
        fs::write(RESERVED, wanted.to_string()).ok()?;
        let reserved = Reserved(before);
        let got: usize = fs::read_to_string(RESERVED).ok()?.trim().parse().ok()?;
        (got >= wanted).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Err(error) = fs::write(RESERVED, &self.0) {
            eprintln!("could not put {RESERVED} back to {}: {error}", self.0);
        }
    }
}

/// One test, because reserving is a matter of the whole machine.
#[test]
fn a_partition_lies_on_reserved_huge_pages() {
    let Some(_reserved) = Reserved::pages(40) else {
        println!("SKIPPED: no huge pages can be reserved here (needs root and free memory)");
        return;
    };
    // Neither log is a multiple of a huge page before rounding.
    let config = PartitionConfig {
        log_bytes: (45 << 20) + 12_288,
        main_buckets: 10_001,
        pages: PagePolicy::Hugetlb,
        ..PartitionConfig::default()
    };
    let mut owner = Owner::<Erew, _>::new(&config, S3Fifo).expect("40 pages suffice");
    let now = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };
    for n in 0..100_000u32 {
        let key = n.to_le_bytes();
        let item = NewItem {
            key: &key,
            value: [&[7; 600], &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        owner.enter(0).put(config.seed.keyhash(&key), &item, now);
    }
    let key = 99_999u32.to_le_bytes();
    let found = owner
        .enter(0)
        .read(Seed(0).keyhash(&key), &key, now, |item| item.value().len());
    assert_eq!(found, Some(600));
    let addresses: Vec<_> = owner.figures().addresses();
    let report = PageReport::of(&addresses);
    assert!(report.hugetlb_bytes >= 40 << 20, "{report:?}");
    assert!(owner.figures().heap_bytes() <= config.log_bytes as u64);

    // A tenth of this log is less than a huge page: it lies on other pages, and is no error.
    let config = PartitionConfig {
        log_bytes: 13 << 20,
        ..config
    };
    Owner::<Erew, _>::new(&config, S3Fifo).expect("13 MiB hold whole huge pages");
}
