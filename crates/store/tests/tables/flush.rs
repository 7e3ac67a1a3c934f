//! Flushes, of which writers learn at different times.

use crate::oracle::SEED;
use glimmer_base::Moment;
use glimmer_store::heap::NewItem;
use glimmer_store::table::Stored;
use glimmer_store::table::{Table, TableWriter};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

/// A writer that was about to begin when a flush was asked for, and comes to it only after others
/// have stored since the flush, removes none of their items.
pub fn is_done_once<T: Table>(mut table: T) {
    let keys = |number: u32| number.to_be_bytes();
    let put = |table: &mut T, flushes, number| {
        let key = keys(number);
        let item = NewItem::new(&key, b"value");
        let stored = table.enter(flushes).put(SEED.keyhash(&key), &item, NOW);
        assert!(matches!(stored, Stored::Yes(_)), "{stored:?}");
    };
    let is_there = |table: &mut T, flushes, number| {
        let key = keys(number);
        let writer = table.enter(flushes);
        writer.find(SEED.keyhash(&key), &key, NOW).is_some()
    };
    put(&mut table, 1, 1);
    put(&mut table, 2, 2);
    assert!(!is_there(&mut table, 2, 1), "it was flushed");
    assert!(is_there(&mut table, 1, 2), "a writer that comes late");
    put(&mut table, 1, 3);
    for number in [2, 3] {
        assert!(is_there(&mut table, 2, number), "item {number}");
    }
    assert_eq!(table.figures().counts(1).items, 2);
    assert!(!is_there(&mut table, 3, 2), "the next flush");
}
