//! A walk over all items while the index grows and shrinks: what is there throughout is shown.

use glimmer_base::{Moment, Seed};
use glimmer_engine::{Done, Engine, Job, ListCursor, ListScope, Spread, Uniques, build};
use glimmer_proto::{Limits, Parser, Step};
use glimmer_store::access::Erew;
use glimmer_store::evict::FIFO;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use std::collections::HashSet;

const SEED: Seed = Seed(5);
/// Items that stay.
const STAYS: usize = 100;

struct Store {
    engine: Box<dyn Engine>,
    now: Moment,
}

impl Store {
    fn new() -> Store {
        let spread = Spread {
            partitions: 1,
            workers: 1,
            numa_nodes: Vec::new(),
        };
        let config = PartitionConfig {
            log_bytes: 1 << 20,
            main_buckets: 4,
            spare_buckets: 4,
            index_follows: true,
            item_bytes_max: 1 << 10,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..PartitionConfig::default()
        };
        let make = |_| Owner::<Erew>::new(&config, FIFO);
        let mut engines = build(&spread, Uniques::Kept, make).unwrap();
        Store {
            engine: engines.remove(0),
            now: Moment {
                ms: 10_000,
                epoch_unix_ms: 1_700_000_000_000,
            },
        }
    }

    fn say(&mut self, said: &str) {
        let Step::Request { request, .. } = Parser::new(Limits::default()).next(said.as_bytes())
        else {
            panic!("{said:?} is a request");
        };
        let job = Job {
            keyhash: SEED.keyhash(request.key),
            request,
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: 0,
        };
        let mut done = [Done::SKIPPED];
        (self.engine).run(self.now, &[job], &mut [Vec::new()], &mut done);
        assert!(done[0].kind.is_some());
    }

    fn set(&mut self, key: &str, value_bytes: usize) {
        let value = "v".repeat(value_bytes);
        self.say(&format!("set {key} 0 0 {value_bytes}\r\n{value}\r\n"));
    }

    /// Stores what is to stay, again and again before it is evicted.
    fn set_what_stays(&mut self) {
        for n in 0..STAYS {
            self.set(&format!("stays{n}"), 1);
        }
    }

    /// Walks, with a change after each chain, and returns what was shown, one key after the other.
    fn walk(&mut self, mut change: impl FnMut(&mut Store, usize)) -> Vec<String> {
        let mut cursor = ListCursor::new(ListScope::Owned);
        let mut shown = Vec::new();
        for step in 0.. {
            let (partition, chain) = cursor.place();
            let mut cursor_again = ListCursor::at_place(ListScope::Owned, (partition, chain));
            let visit = &mut |item: &glimmer_engine::Listed<'_>| {
                shown.push(String::from_utf8(item.key.to_vec()).expect("a test's key"));
            };
            if !self.engine.list(self.now, &mut cursor_again, 1, visit) {
                break;
            }
            cursor = cursor_again;
            change(self, step);
        }
        shown
    }

    fn buckets(&self) -> (u64, u64) {
        let store = self.engine.figures().table().store;
        (store.buckets_added, store.buckets_merged)
    }
}

#[test]
fn what_stays_is_shown_while_the_index_shrinks() {
    let mut store = Store::new();
    for n in 0..20_000 {
        store.set(&format!("old{n}"), 1);
    }
    let (added, before) = store.buckets();
    assert!(added > 100, "the index has grown");
    store.set_what_stays();
    // Large items take the memory of the index.
    let shown = store.walk(|store, step| {
        for n in 0..20 {
            store.set(&format!("goes{step}-{n}"), 900);
        }
        // An index that shrinks may give up entries, too.
        store.set_what_stays();
    });
    assert!(store.buckets().1 > before, "the index has shrunk meanwhile");
    let shown: HashSet<String> = shown.into_iter().collect();
    for n in 0..STAYS {
        assert!(shown.contains(&format!("stays{n}")), "stays{n}");
    }
}

#[test]
fn what_stays_is_shown_while_the_index_grows() {
    let mut store = Store::new();
    store.set_what_stays();
    let before = store.buckets().0;
    let shown = store.walk(|store, step| {
        if step < 300 {
            for n in 0..30 {
                store.set(&format!("more{step}-{n}"), 1);
            }
        }
    });
    assert!(store.buckets().0 > before, "the index has grown meanwhile");
    let shown: HashSet<String> = shown.into_iter().collect();
    for n in 0..STAYS {
        assert!(shown.contains(&format!("stays{n}")), "stays{n}");
    }
}

/// While nothing changes, each item is shown once.
#[test]
fn each_item_is_shown_once() {
    let mut store = Store::new();
    for n in 0..5_000 {
        store.set(&format!("key{n}"), 1);
    }
    let mut shown = store.walk(|_, _| ());
    assert_eq!(shown.len(), 5_000);
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), 5_000);
}
