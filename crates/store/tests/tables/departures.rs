//! Every item that leaves a full table is counted, however it leaves.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::partition::{Counts, Stored};
use glimmer_store::table::{Table, TableWriter};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// Stores this many items under distinct keys and reads every third once.
const STORES: u32 = 20_000;

/// Holds a full table to its counters: each item that was stored is still there or was evicted, and
/// each item that was read is still there as read or was evicted as fetched.
pub fn are_all_counted<T: Table>(mut table: T) -> Counts {
    let mut reads = 0;
    for number in 0..STORES {
        let key = number.to_be_bytes();
        let item = NewItem {
            key: &key,
            value: [&[7; 100], &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let stored = table.enter(0).put(SEED.keyhash(&key), &item, NOW);
        assert!(matches!(stored, Stored::Yes(_)), "{stored:?}");
        if number % 3 == 0 {
            let read = table.enter(0).read(SEED.keyhash(&key), &key, NOW, |_| ());
            assert_eq!(read, Some(()), "it was stored just before");
            reads += 1;
        }
    }
    let (mut items, mut fetched, mut chain) = (0, 0, Some(0));
    while let Some(number) = chain {
        chain = table.enter(0).list(number, NOW, &mut |_, is_fetched| {
            items += 1;
            fetched += u64::from(is_fetched);
        });
    }
    let counts = table.figures().counts(0);
    assert!(counts.evictions > 0, "the table was full: {counts:?}");
    assert_eq!(counts.items, items, "{counts:?}");
    assert_eq!(u64::from(STORES), items + counts.evictions, "{counts:?}");
    let evicted_fetched = counts.evictions - counts.evicted_unfetched;
    assert_eq!(reads, fetched + evicted_fetched, "{counts:?}");
    counts
}
