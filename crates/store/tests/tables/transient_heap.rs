//! No request allocates memory for an item: what is kept, moved, touched, amended or extended is
//! copied from where it lies to where it is to lie. What each thread of the program allocates is
//! counted.
#![cfg(not(miri))]

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::Crew;
use glimmer_store::evict::{RULES, Rule};
use glimmer_store::heap::{History, Marks, NewItem};
use glimmer_store::memc3::{self, Memc3Config};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{self, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::Stored;
use glimmer_store::table::{Table, TableWriter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread allocates, and otherwise is the system's allocator.
struct Counting;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `alloc` or `realloc` gave the pointer, and they pass on what the system gives.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(size));
        // SAFETY: as `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SEED: Seed = Seed(4);
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const VALUE_BYTES: usize = 60_000;
const ITEM_BYTES_MAX: usize = 200_000;
const TABLE_BYTES: usize = 4 << 20;

/// What a request allocates at once, at most: the lists of a table's bookkeeping grow.
const ALLOCATED_MAX: usize = 16 << 10;

struct Check<T: Table> {
    owner: T,
    value: Vec<u8>,
}

impl<T: Table> Check<T> {
    fn request<R>(&mut self, what: &str, act: impl FnOnce(&mut T::Writer<'_>, &[u8]) -> R) -> R {
        LARGEST.set(0);
        let result = act(&mut self.owner.enter(0), &self.value);
        let largest = LARGEST.get();
        assert!(largest <= ALLOCATED_MAX, "{what} allocated {largest} bytes");
        result
    }

    fn item<'a>(key: &'a [u8], value: [&'a [u8]; 2], expiry: Expiry) -> NewItem<'a> {
        NewItem {
            key,
            value,
            flags: 7,
            expiry,
            history: History::NEW,
        }
    }

    fn put(&mut self, number: u32, bytes: usize) -> bool {
        let key = number.to_be_bytes();
        let stored = self.request("a store", |writer, value| {
            let item = Self::item(&key, [&value[..bytes], &[]], Expiry::NEVER);
            writer.put(SEED.keyhash(&key), &item, NOW)
        });
        matches!(stored, Stored::Yes(_))
    }

    /// What the item holds, if it is there.
    fn value(&mut self, number: u32) -> Option<(Vec<u8>, Expiry)> {
        let key = number.to_be_bytes();
        let mut writer = self.owner.enter(0);
        writer.read(SEED.keyhash(&key), &key, NOW, |item| {
            let mut value = Vec::new();
            item.value().append_to(&mut value);
            assert_eq!(item.flags(), 7);
            (value, item.expiry())
        })
    }
}

/// Under a load that begins with storing this many items, or as many as there is room for.
fn allocates_nothing_for_items<T: Table>(owner: T, items: u32) {
    let value = (0..VALUE_BYTES + 1_000)
        .map(|at| (at % 251) as u8)
        .collect();
    let mut check = Check { owner, value };
    // Full, and everything read, so that making room keeps items.
    let mut stored = 0;
    while stored < items && check.put(stored, VALUE_BYTES - stored as usize) {
        check.value(stored / 2);
        stored += 1;
    }
    let (expiry, later) = (Expiry::at_ms(9_000), Expiry::at_ms(10_000));
    let mut done = [0; 4];
    for number in 0..stored {
        let key = number.to_be_bytes();
        let keyhash = SEED.keyhash(&key);
        let Some((mut expected, _)) = check.value(number) else {
            continue;
        };
        let touched = check.request("a touch", |writer, _| {
            writer.touch(keyhash, &key, expiry, NOW)
        });
        if !touched {
            continue;
        }
        done[0] += 1;
        assert_eq!(check.value(number), Some((expected.clone(), expiry)));
        let history = History {
            cas: Some(1 << 50),
            marks: Marks::STALE,
            accessed_s: 3,
        };
        if check.request("an amendment", |writer, _| {
            writer.amend(keyhash, &key, Expiry::NEVER, history, NOW)
        }) {
            done[1] += 1;
            assert_eq!(check.value(number), Some((expected.clone(), Expiry::NEVER)));
        }
        // Within its last word, and then far beyond.
        for (more, append) in [(1, true), (1, false), (900, true), (900, false)] {
            let stored = check.request("an append or prepend", |writer, value| {
                let parts = match append {
                    true => [&[][..], &value[..more]],
                    false => [&value[..more], &[][..]],
                };
                writer.extend(keyhash, &Check::<T>::item(&key, parts, later), NOW)
            });
            let Some(Stored::Yes(_)) = stored else {
                continue;
            };
            done[2 + usize::from(append)] += 1;
            let at = if append { expected.len() } else { 0 };
            expected.splice(at..at, check.value[..more].iter().copied());
            let (value, expiry) = check.value(number).expect("it was stored");
            assert!(value == expected && expiry == later, "item {number}");
        }
    }
    assert!(done.iter().all(|&count| count > 8), "{done:?}");
    // Much that was read is kept while new items come.
    for number in 0..60 {
        check.put(1_000 + number, VALUE_BYTES);
        check.value(1_000 + number / 2);
    }
}

fn cache_mode(rule: Rule) {
    let config = PartitionConfig {
        log_bytes: TABLE_BYTES,
        main_buckets: 64,
        spare_buckets: 8,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    allocates_nothing_for_items(mica_cache::Owner::<Crew>::new(&config, rule).unwrap(), 150);
}

#[test]
fn no_request_under_any_eviction_rule_allocates_memory_for_an_item() {
    for rule in RULES {
        cache_mode(rule.with_threshold(0.5));
    }
}

#[test]
fn no_request_of_the_memc3_table_allocates_memory_for_an_item() {
    let config = Memc3Config {
        memory_bytes: TABLE_BYTES,
        page_bytes: 16 << 10,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..Memc3Config::default()
    };
    allocates_nothing_for_items(memc3::Owner::<Crew>::new(&config).unwrap(), 150);
}

#[test]
fn no_request_of_store_mode_allocates_memory_for_an_item() {
    let config = StoreConfig {
        bytes: TABLE_BYTES,
        item_bytes_max: ITEM_BYTES_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..StoreConfig::default()
    };
    // Not full: an item that grows needs room beside its old place, or gathered from around it.
    allocates_nothing_for_items(mica_store::Owner::<Crew>::new(&config).unwrap(), 60);
}
