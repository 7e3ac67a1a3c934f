//! Removing what has expired before its place is wanted.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::Stored;
use glimmer_store::table::{Table, TableWriter};

/// Items that stay, that expire, and how many of these are fetched before.
const STAYING: u32 = 300;
const EXPIRING: u32 = 200;
const FETCHED: u32 = 50;

/// Walks a table that has room for a few hundred small items. What is removed counts as memcached's
/// crawler counts it: not as reclaimed, for no store has taken its place, but as unfetched if it
/// was not read.
pub fn removes_and_counts<T: Table>(mut table: T) {
    let mut now = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };
    let due = now.ms + 1_000;
    for number in 0..STAYING + EXPIRING {
        let key = number.to_be_bytes();
        let item = NewItem {
            key: &key,
            value: [b"value", &[]],
            flags: 0,
            expiry: match number < STAYING {
                true => Expiry::NEVER,
                false => Expiry::at_ms(due),
            },
            history: History::NEW,
        };
        let stored = table.enter(0).put(SEED.keyhash(&key), &item, now);
        assert!(matches!(stored, Stored::Yes(_)), "{stored:?}");
    }
    for number in STAYING..STAYING + FETCHED {
        let key = number.to_be_bytes();
        let read = table.enter(0).read(SEED.keyhash(&key), &key, now, |_| ());
        assert_eq!(read, Some(()));
    }
    let crawl = |table: &mut T, now| {
        let (mut removed, mut chain) = (0, Some(0));
        while let Some(number) = chain {
            let (some, next) = table.enter(0).expire(number, now);
            removed += some;
            chain = next;
        }
        removed
    };
    assert_eq!(crawl(&mut table, now), 0, "nothing has expired yet");
    now.ms = due;
    assert_eq!(crawl(&mut table, now), u64::from(EXPIRING));
    let counts = table.figures().counts(0);
    assert_eq!(counts.items, u64::from(STAYING));
    assert_eq!(
        (counts.expired_reclaimed, counts.expired_unfetched),
        (0, u64::from(EXPIRING - FETCHED)),
        "{counts:?}"
    );
}
