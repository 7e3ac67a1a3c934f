//! Every item that leaves a table is counted and reported once, however it leaves.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::removals::{Reason, Removal, RemovalObserver, Tap, Told};
use glimmer_store::table::{Counts, Stored};
use glimmer_store::table::{Table, TableWriter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
/// When the items expire that do.
const DUE: Moment = Moment {
    ms: 60_000,
    epoch_unix_ms: 0,
};

/// Stores this many items under distinct keys and reads every third once.
const STORES: u32 = 20_000;

/// What was reported.
#[derive(Debug, Default)]
struct Seen {
    reasons: HashMap<Reason, u64>,
    fetched: u64,
    keys: HashMap<Keyhash, u64>,
    flushed: Vec<u64>,
}

#[derive(Default)]
struct Observer(Mutex<Seen>);

impl RemovalObserver for Observer {
    fn removed(&self, removal: &Removal<'_>) {
        let mut seen = self.0.lock().unwrap();
        *seen.reasons.entry(removal.reason).or_default() += 1;
        *seen.keys.entry(removal.keyhash()).or_default() += 1;
        seen.fetched += u64::from(removal.was_read);
    }

    fn flushed(&self, items: u64) {
        self.0.lock().unwrap().flushed.push(items);
    }
}

impl Seen {
    fn of(&self, reason: Reason) -> u64 {
        self.reasons.get(&reason).copied().unwrap_or(0)
    }

    /// Holds the reports to the table's counters, and to the items that are there still.
    fn check(&self, counts: &Counts, stored: u64, crawled: u64) {
        let [evicted, from_index, expired] =
            [Reason::Evicted, Reason::IndexFull, Reason::Expired].map(|reason| self.of(reason));
        assert_eq!(evicted + from_index, counts.evictions, "{counts:?}");
        assert_eq!(expired, counts.expired_reclaimed + crawled, "{counts:?}");
        assert_eq!(
            stored,
            counts.items + evicted + from_index + expired,
            "{counts:?}"
        );
        assert!(self.keys.values().all(|&reports| reports == 1));
    }
}

fn attach<T: Table>(table: &mut T) -> Arc<Tap<Observer>> {
    let tap = Arc::new(Tap::new(Observer::default()));
    table.observe(tap.clone());
    tap
}

/// Stores an item; says whether there was room.
fn put<T: Table>(table: &mut T, number: u32, expiry: Expiry, now: Moment) -> bool {
    let key = number.to_be_bytes();
    let item = NewItem {
        key: &key,
        value: [&[7; 100], &[]],
        flags: 0,
        expiry,
        history: History::NEW,
    };
    let stored = table.enter(0).put(SEED.keyhash(&key), &item, now);
    matches!(stored, Stored::Yes(_))
}

/// Holds a full table to its counters: each item that was stored is still there or was evicted, and
/// each item that was read is still there as read or was evicted as fetched.
pub fn are_all_reported<T: Table>(mut table: T) -> Counts {
    let tap = attach(&mut table);
    tap.tell(Told::All);
    let mut reads = 0;
    for number in 0..STORES {
        assert!(put(&mut table, number, Expiry::NEVER, NOW));
        if number % 3 == 0 {
            let key = number.to_be_bytes();
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
    let seen = tap.observer().0.lock().unwrap();
    seen.check(&counts, STORES.into(), 0);
    assert_eq!(seen.of(Reason::IndexFull), counts.index_evictions);
    assert_eq!(seen.fetched, evicted_fetched);
    counts
}

/// Fills a table with items that expire, stores others over them, has the crawler remove the rest,
/// and flushes what is there then. Needs a table of which the index is not too small.
pub fn by_expiry_and_flush_are_reported<T: Table>(mut table: T) {
    let tap = attach(&mut table);
    assert!(put(&mut table, STORES, Expiry::NEVER, NOW));
    tap.tell(Told::All);
    let expiries = [Expiry::at_ms(DUE.ms), Expiry::NEVER];
    let mut stored = 1;
    for number in 0..STORES {
        let now = if number < STORES / 2 { NOW } else { DUE };
        let expiry = expiries[usize::from(number >= STORES / 2)];
        stored += u64::from(put(&mut table, number, expiry, now));
    }
    let counts = table.figures().counts(0);
    assert!(counts.expired_reclaimed > 0, "{counts:?}");
    tap.observer().0.lock().unwrap().check(&counts, stored, 0);
    // Some expire where no store wants their place.
    let mut late = 0;
    for number in STORES + 1..STORES + 21 {
        late += u64::from(put(&mut table, number, Expiry::at_ms(DUE.ms + 1), DUE));
    }
    let later = Moment {
        ms: DUE.ms + 1,
        ..DUE
    };
    let (mut crawled, mut chain) = (0, Some(0));
    while let Some(number) = chain {
        let (removed, next) = table.enter(0).expire(number, later);
        crawled += removed;
        chain = next;
    }
    let counts = table.figures().counts(0);
    assert!(crawled >= late, "{crawled} of {late}");
    (tap.observer().0.lock().unwrap()).check(&counts, stored + late, crawled);
    drop(table.enter(1));
    let seen = tap.observer().0.lock().unwrap();
    assert_eq!(seen.flushed, [counts.items]);
    assert_eq!(table.figures().counts(1).items, 0);
}
