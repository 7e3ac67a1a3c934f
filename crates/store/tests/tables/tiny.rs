//! Every table at sizes that Miri can take. `cargo xtask test --only miri` runs these tests with
//! many seeds: the same operations beside a map ([`oracle`]) and the same races ([`stress`]) as
//! elsewhere, in tables so small that everything happens within a few operations. A single short
//! run under Miri need not fill its table.
//!
//! Logs and heaps consist of whole pages unless Miri runs them, so outside Miri they are larger.

use crate::lent;
use crate::oracle::{self, Load, Outcome};
use crate::stress::{self, Race};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{FIFO, RULES, Rule};
use glimmer_store::memory::PagePolicy;
use glimmer_store::table::Table;
use glimmer_store::{memc3, mica_cache, mica_store};

const LOAD: Load = Load {
    keys: if cfg!(miri) { 16 } else { 600 },
    steps: if cfg!(miri) { 30 } else { 20_000 },
    flushes: if cfg!(miri) { 0.0 } else { 1.0 },
    ..Load::of(0, 80)
};
/// The largest item of a race, which is smaller than the oracle's.
const RACING_ITEM_BYTES_MAX: usize = 160;

const fn load(loses_nothing: bool) -> Load {
    Load {
        later_keys: LOAD.keys,
        loses_nothing,
        ..LOAD
    }
}

/// Memory of a table, under Miri or else. A few of the largest items fit in.
fn bytes(under_miri: usize, usual: usize, item_bytes_max: usize) -> usize {
    let bytes = if cfg!(miri) { under_miri } else { usual };
    bytes.max(6 * item_bytes_max)
}

fn cache<A: Access>(rule: Rule, item_bytes_max: usize) -> mica_cache::Owner<A> {
    let config = mica_cache::PartitionConfig {
        log_bytes: bytes(1_200, 32 << 10, item_bytes_max),
        main_buckets: if cfg!(miri) { 1 } else { 20 },
        spare_buckets: 1,
        index_follows: true,
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: oracle::SEED.into(),
        ..mica_cache::PartitionConfig::default()
    };
    mica_cache::Owner::new(&config, rule).unwrap()
}

fn memc3<A: Access>(item_bytes_max: usize) -> memc3::Owner<A> {
    let config = memc3::Memc3Config {
        memory_bytes: bytes(3_200, 20 << 10, item_bytes_max),
        page_bytes: 128,
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: oracle::SEED.into(),
        ..memc3::Memc3Config::default()
    };
    memc3::Owner::new(&config).unwrap()
}

fn store<A: Access>(item_bytes_max: usize) -> mica_store::Owner<A> {
    let config = mica_store::StoreConfig {
        bytes: bytes(2_400, 16 << 10, item_bytes_max),
        roots: Some(1),
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: oracle::SEED.into(),
        ..mica_store::StoreConfig::default()
    };
    mica_store::Owner::new(&config).unwrap()
}

fn cache_mode<A: Access>(rule: Rule) {
    let load = load(false);
    let table = cache::<A>(rule, load.item_bytes_max);
    let walk = |owner: &mut mica_cache::Owner<A>, flushes| owner.enter(flushes).audit();
    let Outcome { counts, .. } = oracle::run(table, load, walk);
    // Where much is dead, live items are moved on instead of leaving.
    let full = counts.evictions + counts.index_evictions + counts.reinsertions > 0;
    assert!(full || cfg!(miri), "{counts:?}");
}

/// The rules for an access mode: all, and under Miri, which takes long, every third.
fn rules<A: Access>() -> impl Iterator<Item = Rule> {
    let modes = [Erew::NAME, Crew::NAME, Crcw::NAME];
    let mode = modes.iter().position(|&name| name == A::NAME);
    let rules = RULES.iter().enumerate();
    let meets = move |&(nth, _): &(usize, _)| !cfg!(miri) || Some(nth % modes.len()) == mode;
    rules
        .filter(meets)
        .map(|(_, rule)| rule.with_threshold(0.5))
}

fn every_rule<A: Access>() {
    for rule in rules::<A>() {
        cache_mode::<A>(rule);
    }
}

fn memc3_table<A: Access>() {
    let load = load(false);
    let table = memc3::<A>(load.item_bytes_max);
    let counts = oracle::run(table, load, |_, _| {}).counts;
    let full = counts.evictions + counts.index_evictions > 0;
    assert!(full || cfg!(miri), "{counts:?}");
}

fn store_mode_table<A: Access>() {
    let load = load(true);
    let table = store::<A>(load.item_bytes_max);
    let walk = |owner: &mut mica_store::Owner<A>, flushes| drop(owner.enter(flushes).audit());
    let counts = oracle::run(table, load, walk).counts;
    assert!(counts.refused > 0 || cfg!(miri), "{counts:?}");
}

fn racing_every_rule<A: Access>() {
    for rule in rules::<A>() {
        stress::run(cache::<A>(rule, RACING_ITEM_BYTES_MAX), Race::tiny());
    }
}

fn racing_memc3<A: Access>() {
    stress::run(memc3::<A>(RACING_ITEM_BYTES_MAX), Race::tiny());
}

fn racing_store_mode<A: Access>() {
    stress::run(store::<A>(RACING_ITEM_BYTES_MAX), Race::tiny());
}

/// A value that is appended to while others have borrowed it. Miri sees each use of a byte that is
/// not ordered with a store to its word.
fn growing<A: Access>() {
    lent::grows(cache::<A>(FIFO, lent::GROWN_ITEM_BYTES_MAX));
    lent::grows(memc3::<A>(lent::GROWN_ITEM_BYTES_MAX));
    lent::grows(store::<A>(lent::GROWN_ITEM_BYTES_MAX));
}

in_modes! {
    growing: Crcw;
    every_rule: Erew Crew Crcw;
    memc3_table: Erew Crcw;
    store_mode_table: Erew Crcw;
    racing_every_rule: Crew Crcw;
    racing_memc3: Crew Crcw;
    racing_store_mode: Crew Crcw;
}
