use super::*;
use crate::access::Crew;
use crate::heap::{History, NewItem};
use crate::memory::PagePolicy;
use crate::table::{Table, TableWriter};
use glimmer_base::{Expiry, Moment, Seed};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

fn put(owner: &mut Owner<Crew>, flushes: u64, number: u32) {
    let key = number.to_be_bytes();
    let item = NewItem {
        key: &key,
        value: [&[7; 8], &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let keyhash = Seed(0).keyhash(&key);
    owner.enter(flushes).put(keyhash, &item, NOW);
}

/// A flush leaves the pages of the index unused. Items get them once the batches that ran during
/// the flush are over: until then a reader may still note a read in one of them.
#[test]
fn pages_that_a_flush_leaves_wait_for_running_batches() {
    let config = Memc3Config {
        memory_bytes: 256 << 10,
        page_bytes: 1 << 10,
        item_bytes_max: 100,
        pages: PagePolicy::Small,
        ..Memc3Config::default()
    };
    let mut owner = Owner::<Crew>::new(&config).unwrap();
    let (batches, mut participants) = crate::batches::Batches::new(2);
    owner.join(&batches, 1);
    let figures = Table::figures(&owner);
    let empty = figures.index_bytes();
    for number in 0..20_000 {
        put(&mut owner, 0, number);
    }
    let full = figures.index_bytes();
    assert!(full > empty, "the index has grown");

    let batch = participants[0].begin();
    let at_flush = owner.enter(1).state.slabs.item_pages();
    let pages = |owner: &mut Owner<Crew>| owner.enter(1).state.slabs.item_pages();
    assert!(!owner.enter(1).take_unused_index_pages());
    assert_eq!(pages(&mut owner), at_flush);
    drop(batch);

    // A batch that has begun since cannot come to those pages.
    let _later = participants[1].begin();
    assert!(owner.enter(1).take_unused_index_pages());
    assert!(pages(&mut owner) > at_flush);
    assert_eq!(figures.index_bytes(), empty);
}
