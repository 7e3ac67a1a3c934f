//! Store mode: nothing is lost, whatever is refused.

use crate::carried::{self, Between};
use crate::oracle::{self, Load};
use crate::stress::{self, Race};
use crate::{attacked, busy, crawl, flush, groups, growing, lent, removals, uploads};
use glimmer_store::access::Access;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_store::{Owner, StoreConfig};
use glimmer_store::table::{Asides, Counts, Table, TableWriter};

fn table<A: Access>(bytes: usize, roots: usize, item_bytes_max: usize) -> Owner<A> {
    let config = StoreConfig {
        bytes,
        roots: Some(roots),
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        ..StoreConfig::default()
    };
    Owner::new(&config).unwrap()
}

fn load(keys: u32, value_max: usize) -> Load {
    Load {
        loses_nothing: true,
        ..Load::of(keys, value_max)
    }
}

fn run<A: Access>(owner: Owner<A>, load: Load) -> Counts {
    let walk = |owner: &mut Owner<A>, flushes| drop(owner.enter(flushes).audit());
    oracle::run(owner, load, walk).counts
}

/// More than fits: stores are refused, and what was there stays.
fn a_full_heap<A: Access>() {
    let load = load(3_000, 2_000);
    let counts = run(table::<A>(160 << 10, 4, load.item_bytes_max), load);
    assert!(counts.refused > 0 && counts.moved > 0, "{counts:?}");
    assert!(counts.expired_reclaimed > 0 && counts.in_place_updates > 0);
}

/// An index that grows from one bucket to hundreds.
fn a_growing_index<A: Access>() {
    let load = load(6_000, 60);
    let counts = run(table::<A>(1 << 20, 1, load.item_bytes_max), load);
    assert!(counts.buckets_added > 100, "{counts:?}");
    assert_eq!(counts.refused, 0, "memory was meant to be ample");
}

/// Items that become large when the memory has long been full of small ones: heap and index meet,
/// and the index has to give back what it has taken.
fn a_heap_that_wants_the_indexs_memory<A: Access>() {
    let load = Load {
        steps: 150_000,
        later_keys: 60,
        later_value_max: 20_000,
        item_bytes_max: 21_000,
        ..load(20_000, 10)
    };
    let counts = run(table::<A>(512 << 10, 1, load.item_bytes_max), load);
    assert!(
        counts.buckets_added > 500 && counts.buckets_merged > 300,
        "{counts:?}"
    );
}

/// Large values among small ones, in a heap for some of them: drafts are given up, and what is free
/// is gathered around their places.
fn large_values<A: Access>() {
    let load = Load {
        steps: 20_000,
        ..load(600, 60_000)
    };
    let walk = |owner: &mut Owner<A>, flushes| drop(owner.enter(flushes).audit());
    let outcome = oracle::run(table::<A>(1 << 20, 4, load.item_bytes_max), load, walk);
    let counts = outcome.counts;
    assert!(counts.refused > 0 && counts.moved > 0, "{counts:?}");
    assert!(!A::SHARED_WRITES || outcome.drafts > 100);
}

/// Writers that overwrite, grow and delete items in a heap for half of them, which slides what
/// stays.
fn racing<A: Access>() {
    let race = Race {
        kept: 60,
        flush_every: None,
        ..Race::new()
    };
    let counts = stress::run(table::<A>(64 << 10, 1, 4_000), race);
    assert!(counts.refused > 0 && counts.moved > 0, "{counts:?}");
}

/// The same with flushes, which take everything.
fn racing_with_flushes<A: Access>() {
    let counts = stress::run(table::<A>(32 << 10, 1, 4_000), Race::new());
    assert!(counts.refused > 0 && counts.moved > 0, "{counts:?}");
}

/// The same with values that are copied while others write.
fn racing_with_large_values<A: Access>() {
    let counts = stress::run(table::<A>(512 << 10, 1, 64_000), Race::of_large_values());
    assert!(counts.refused > 0 && counts.moved > 0, "{counts:?}");
}

/// A heap for half of the values, which slides what stays.
fn lent_values<A: Access>() {
    let counts = lent::values_stay(table::<A>(512 << 10, 1, 64_000));
    assert!(counts.refused > 100 && counts.moved > 100, "{counts:?}");
    assert!(counts.in_place_updates > 100 && counts.expired_reclaimed > 0);
    assert!(
        counts.buckets_added > 10 && counts.buckets_merged > 10,
        "{counts:?}"
    );
}

fn lent_values_are_copied_once<A: Access>() {
    let asides = Asides::of(lent::COPIED_BYTES);
    let config = StoreConfig {
        bytes: 512 << 10,
        item_bytes_max: 64_000,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        asides: asides.clone(),
        ..StoreConfig::default()
    };
    lent::are_copied_once(Owner::<A>::new(&config).unwrap(), &asides);
}

/// A heap that is full most of the time. In the end all of it is free.
fn uploads_beside_stores<A: Access>() {
    let load = uploads::Load {
        keys: 30,
        small_keys: 400,
        steps: 10_000,
        value_max: 100_000,
        loses_nothing: true,
    };
    let owner = table::<A>(600 << 10, 1, load.value_max + 300);
    let audit = |owner: &mut Owner<A>, flushes| drop(owner.enter(flushes).audit());
    let (mut owner, flushes, outcome) = uploads::run(owner, load, audit);
    let uploads::Outcome { counts, stored, .. } = outcome;
    assert!(
        stored > 100 && counts.refused > 50 && counts.moved > 100,
        "{outcome:?}"
    );
    let mut writer = owner.enter(flushes);
    for (keyhash, key) in uploads::keys(load) {
        writer.remove(keyhash, &key, uploads::END);
    }
    let usage = writer.audit();
    assert!(
        usage.items.is_empty() && usage.reserved.is_empty(),
        "{usage:?}"
    );
    assert!(usage.free.is_empty(), "all is free together");
}

fn a_crawl<A: Access>() {
    crawl::removes_and_counts(table::<A>(1 << 20, 4, 100));
}

fn half_full<A: Access>() -> Owner<A> {
    table(growing::TABLE_BYTES, 16, growing::ITEM_BYTES_MAX)
}

fn a_value_that_grows<A: Access>() {
    growing::by_appends(half_full::<A>());
    growing::by_prepends(half_full::<A>());
}

fn a_value_that_is_stored_again<A: Access>() {
    growing::by_stores(half_full::<A>());
}

fn a_flush<A: Access>() {
    flush::is_done_once(table::<A>(1 << 20, 4, 100));
}

fn leaving_by_expiry<A: Access>() {
    removals::by_expiry_and_flush_are_reported(table::<A>(256 << 10, 4, 200));
}

fn a_busy_key<A: Access>() {
    busy::copies_are_bounded(table::<A>(8 << 20, 16, 310_000));
}

fn carried_and_replaced<A: Access>() {
    carried::replaced(table::<A>(64 << 10, 1, 100), 0);
    carried::replaced(table::<A>(64 << 10, 1, 100), 15);
}

fn carried_and_expired<A: Access>() {
    carried::expired(table::<A>(64 << 10, 1, 100));
}

fn carried_and_flushed<A: Access>() {
    carried::flushed(table::<A>(64 << 10, 1, 100));
}

/// Items slide together, and their entries stay where they are.
fn carried_and_slid<A: Access>() {
    let between = Between {
        keys: 600,
        bytes: 40,
        loses_nothing: true,
        happens: |stage| {
            stage.fill(1_000..3_000, 40);
            (1_000..3_000).step_by(2).for_each(|n| stage.remove(n));
            stage.fill(5_000..5_010, 1_500);
        },
        shows: |counts, _| assert!(counts.moved > 0, "{counts:?}"),
    };
    carried::see(table::<A>(128 << 10, 64, 2_000), &between);
}

/// The buckets of the keys are split.
fn carried_and_split<A: Access>() {
    let between = Between {
        keys: 100,
        bytes: 8,
        loses_nothing: true,
        happens: |stage| stage.fill(1_000..3_000, 8),
        shows: |counts, moved| assert!(counts.buckets_added > 20 && moved > 20, "{counts:?}"),
    };
    carried::see(table::<A>(256 << 10, 4, 100), &between);
}

/// The buckets of the keys are merged with others.
fn carried_and_merged<A: Access>() {
    let between = Between {
        keys: 3_000,
        bytes: 8,
        loses_nothing: true,
        happens: |stage| (100..3_000).for_each(|number| stage.remove(number)),
        shows: |counts, moved| assert!(counts.buckets_merged > 20 && moved > 20, "{counts:?}"),
    };
    carried::see(table::<A>(256 << 10, 4, 100), &between);
}

/// Keys of which most collide in every bit.
fn an_attacked_heap<A: Access>() {
    const STEPS: u32 = 40_000;
    let load = Load {
        keyhash: attacked::of_most,
        steps: STEPS,
        flushes: 0.2,
        ..load(3_000, 800)
    };
    let config = StoreConfig {
        bytes: 160 << 10,
        roots: Some(4),
        item_bytes_max: load.item_bytes_max,
        pages: PagePolicy::Small,
        hasher: attacked::hasher_of_most(),
        ..StoreConfig::default()
    };
    let counts = run(Owner::<A>::new(&config).unwrap(), load);
    assert!(counts.overflowed > 100, "{counts:?}");
}

fn an_attacked_bucket<A: Access>() {
    attacked::keeps_everything(|| {
        let config = StoreConfig {
            bytes: 512 << 10,
            roots: Some(attacked::ROOTS),
            item_bytes_max: 300,
            pages: PagePolicy::Small,
            hasher: attacked::hasher(),
            ..StoreConfig::default()
        };
        Owner::<A>::new(&config).unwrap()
    });
}

fn of_groups<A: Access>(bytes: usize) -> Owner<A> {
    let config = StoreConfig {
        bytes,
        roots: Some(4),
        item_bytes_max: 60_000,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        ..StoreConfig::default()
    };
    Owner::new(&config).unwrap()
}

fn groups_beside_a_map<A: Access>() {
    groups::invalidated_while_received(of_groups::<A>(4 << 20));
    groups::beside_a_map(of_groups::<A>(4 << 20), 40_000, true);
    groups::beside_a_map(of_groups::<A>(200_000), 40_000, true);
}

fn groups_raced<A: Access>() {
    groups::raced(of_groups::<A>(4 << 20), 500, true);
    groups::raced(of_groups::<A>(200_000), 40_000, true);
}

in_modes! {
    a_value_that_grows: Erew Crew Crcw;
    a_value_that_is_stored_again: Erew Crew Crcw;
    an_attacked_bucket: Erew Crew Crcw;
    an_attacked_heap: Erew Crew Crcw;
    carried_and_replaced: Erew Crew Crcw;
    carried_and_expired: Erew Crew Crcw;
    carried_and_flushed: Erew Crew Crcw;
    carried_and_slid: Erew Crew Crcw;
    carried_and_split: Erew Crew Crcw;
    carried_and_merged: Erew Crew Crcw;
    a_busy_key: Crew Crcw;
    leaving_by_expiry: Erew Crew Crcw;
    a_full_heap: Erew Crew Crcw;
    a_growing_index: Erew Crew Crcw;
    a_heap_that_wants_the_indexs_memory: Erew Crew Crcw;
    large_values: Erew Crew Crcw;
    racing: Crew Crcw;
    racing_with_large_values: Crew Crcw;
    racing_with_flushes: Crew Crcw;
    lent_values: Erew Crew Crcw;
    lent_values_are_copied_once: Erew Crcw;
    uploads_beside_stores: Erew Crew Crcw;
    a_crawl: Erew Crcw;
    a_flush: Erew Crew Crcw;
    groups_beside_a_map: Erew Crew Crcw;
    groups_raced: Erew Crew Crcw;
}
