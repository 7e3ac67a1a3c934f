//! A reader that meets a writer again and again gives up, the earlier the more it copies.

use crate::oracle::SEED;
use glimmer_base::Moment;
use glimmer_base::limits::{OPTIMISTIC_BYTES_MAX, OPTIMISTIC_TRIES_MAX};
use glimmer_store::batches::Batches;
use glimmer_store::heap::NewItem;
use glimmer_store::table::Stored;
use glimmer_store::table::{Busy, Table, TableReader, TableWriter};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const KEY: &[u8] = b"key";

fn put<T: Table>(owner: &mut T, value: &[u8]) {
    let item = NewItem::new(KEY, value);
    let stored = owner.enter(0).put(SEED.keyhash(KEY), &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// How often a value is copied while its key is written to during every copy.
fn copies<T: Table>(owner: &mut T, value_bytes: usize) -> usize {
    let value = vec![7; value_bytes];
    put(owner, &value);
    let (batches, mut participants) = Batches::new(1);
    owner.join(&batches, 1);
    let reader = owner.reader().unwrap();
    let batch = participants[0].begin();
    let mut copies = 0;
    let read = reader.read(&batch, SEED.keyhash(KEY), KEY, NOW, 0, |item| {
        assert_eq!(item.value().len(), value_bytes);
        copies += 1;
        put(owner, &value);
    });
    assert_eq!(read, Err(Busy));
    copies
}

/// Needs a table that takes items of 300 KiB.
pub fn copies_are_bounded<T: Table>(mut owner: T) {
    assert_eq!(copies(&mut owner, 10), OPTIMISTIC_TRIES_MAX as usize);
    for value_bytes in [
        10_000,
        OPTIMISTIC_BYTES_MAX - 1,
        OPTIMISTIC_BYTES_MAX,
        300_000,
    ] {
        let most = OPTIMISTIC_BYTES_MAX.div_ceil(value_bytes);
        assert_eq!(copies(&mut owner, value_bytes), most, "{value_bytes} bytes");
    }
}
