//! The MemC3 table. Pages are small, so that segments split, slabs change hands and items take
//! several pages within a few thousand operations.

use crate::carried::{self, Between};
use crate::oracle::{self, Load};
use crate::stress::{self, Race};
use crate::{attacked, busy, crawl, dead, flush, groups, growing, lent, removals, uploads};
use glimmer_store::access::Access;
use glimmer_store::heap::slab::Slabs;
use glimmer_store::memc3::{Memc3Config, Owner};
use glimmer_store::memory::PagePolicy;
use glimmer_store::table::{Asides, Counts, Table};

fn table<A: Access>(memory_bytes: usize, page_bytes: usize, item_bytes_max: usize) -> Owner<A> {
    let config = Memc3Config {
        memory_bytes,
        page_bytes,
        item_bytes_max,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        ..Memc3Config::default()
    };
    Owner::new(&config).unwrap()
}

fn run<A: Access>(memory_bytes: usize, page_bytes: usize, load: Load) -> Counts {
    let table = table::<A>(memory_bytes, page_bytes, load.item_bytes_max);
    let audit = |owner: &mut Owner<A>, flushes| owner.enter(flushes).audit();
    let counts = oracle::run(table, load, audit).counts;
    assert!(counts.in_place_updates > 0);
    counts
}

/// Items of one page and of several, in memory for a fraction of them.
fn many_sizes<A: Access>() {
    let counts = run::<A>(160 << 10, 1 << 10, Load::of(3_000, 2_000));
    assert!(
        counts.evictions > 0 && counts.expired_reclaimed > 0,
        "{counts:?}"
    );
}

/// Segments of 24 slots in memory for all items: nothing but the expiry takes an item away.
fn a_growing_index<A: Access>() {
    let load = Load {
        loses_nothing: true,
        ..Load::of(2_000, 40)
    };
    let counts = run::<A>(1 << 20, 128, load);
    assert_eq!((counts.evictions, counts.index_evictions), (0, 0));
}

/// Memory of which two of the largest items take nearly all: the index must not grow into it.
fn an_index_at_its_limit<A: Access>() {
    let load = Load {
        item_bytes_max: 18_000,
        ..Load::of(400, 8)
    };
    let counts = run::<A>(51_700, 128, load);
    assert!(counts.index_evictions > 0, "{counts:?}");
}

/// Pages of two lines: items move, segments split and slabs change hands all the time.
fn racing<A: Access>() {
    let counts = stress::run(table::<A>(40 << 10, 128, 4_000), Race::new());
    assert!(counts.evictions > 0);
}

/// Large values in memory for a handful of them.
fn racing_with_large_values<A: Access>() {
    let race = Race {
        copies_ahead: false,
        ..Race::of_large_values()
    };
    let counts = stress::run(table::<A>(512 << 10, 1 << 10, 64_000), race);
    assert!(counts.evictions > 0, "{counts:?}");
}

/// Memory for half of the values.
fn lent_values<A: Access>() {
    let counts = lent::values_stay(table::<A>(512 << 10, 128, 64_000));
    assert!(counts.evictions > 100, "{counts:?}");
    assert!(counts.in_place_updates > 100, "{counts:?}");
}

fn lent_values_are_copied_once<A: Access>() {
    let asides = Asides::of(lent::COPIED_BYTES);
    let config = Memc3Config {
        memory_bytes: 512 << 10,
        page_bytes: 1 << 10,
        item_bytes_max: 64_000,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        asides: asides.clone(),
        ..Memc3Config::default()
    };
    lent::are_copied_once(Owner::<A>::new(&config).unwrap(), &asides);
}

/// All pages but three are those of values, whose slabs move out of the index's way.
fn lent_values_whose_slabs_move<A: Access>() {
    const VALUES: usize = 20;
    const SLAB_PAGES: usize = 130;
    let memory_bytes = (VALUES * SLAB_PAGES + 3) * (128 + Slabs::BYTES_PER_PAGE);
    let table = table::<A>(memory_bytes, 128, 128 * SLAB_PAGES);
    let counts = lent::values_stay_where_an_index_grows(table, VALUES as u16);
    assert!(counts.moved > 0 && counts.evictions == 0, "{counts:?}");
}

fn uploads_in<A: Access>(memory_bytes: usize, page_bytes: usize, load: uploads::Load) -> Counts {
    let owner = table::<A>(memory_bytes, page_bytes, load.value_max + 300);
    let audit = |owner: &mut Owner<A>, flushes| owner.enter(flushes).audit();
    let (_, _, outcome) = uploads::run(owner, load, audit);
    assert!(outcome.stored > 50 && outcome.full > 0, "{outcome:?}");
    assert!(outcome.beyond_half > 0, "{outcome:?}");
    outcome.counts
}

/// Values of a page and of many, in memory for a few of the largest ones.
fn uploads_beside_stores<A: Access>() {
    let load = uploads::Load {
        keys: 30,
        small_keys: 400,
        steps: 6_000,
        value_max: 100_000,
        loses_nothing: false,
    };
    for (memory_bytes, page_bytes) in [(300_000, 1 << 10), (1 << 20, 16 << 10), (2 << 20, 32 << 10)]
    {
        uploads_in::<A>(memory_bytes, page_bytes, load);
    }
}

/// The index takes the last pages, where uploads may be.
fn uploads_where_an_index_grows<A: Access>() {
    let load = uploads::Load {
        keys: 30,
        small_keys: 30_000,
        steps: 6_000,
        value_max: 200_000,
        loses_nothing: false,
    };
    let counts = uploads_in::<A>(2 << 20, 1 << 10, load);
    assert!(counts.evictions > 0, "{counts:?}");
}

fn a_crawl<A: Access>() {
    crawl::removes_and_counts(table::<A>(1 << 20, 1 << 10, 100));
}

fn dead_memory<A: Access>() {
    dead::is_used_first(&|| table::<A>(1 << 20, 1 << 12, 300));
}

/// The index takes pages as it grows, and the items that lie there leave.
fn sessions<A: Access>() {
    let lost = dead::sessions_lost(table::<A>(1 << 20, 1 << 12, 300));
    assert!(lost < 6 * dead::ROOM / 100, "{lost}");
}

fn half_full<A: Access>() -> Owner<A> {
    table(growing::TABLE_BYTES, 16 << 10, growing::ITEM_BYTES_MAX)
}

fn a_value_that_grows<A: Access>() {
    growing::by_appends(half_full::<A>());
    growing::by_prepends(half_full::<A>());
}

fn a_value_that_is_stored_again<A: Access>() {
    growing::by_stores(half_full::<A>());
}

fn a_flush<A: Access>() {
    flush::is_done_once(table::<A>(1 << 20, 1 << 10, 100));
}

fn leaving<A: Access>() {
    removals::are_all_reported(table::<A>(256 << 10, 1 << 10, 200));
}

fn leaving_by_expiry<A: Access>() {
    removals::by_expiry_and_flush_are_reported(table::<A>(256 << 10, 1 << 10, 200));
}

fn a_busy_key<A: Access>() {
    busy::copies_are_bounded(table::<A>(8 << 20, 16 << 10, 310_000));
}

fn carried_and_replaced<A: Access>() {
    carried::replaced(table::<A>(64 << 10, 128, 100), 0);
}

fn carried_and_expired<A: Access>() {
    carried::expired(table::<A>(64 << 10, 128, 100));
}

fn carried_and_flushed<A: Access>() {
    carried::flushed(table::<A>(64 << 10, 128, 100));
}

/// One segment of 192 slots fills up, and makes room by moving entries along cuckoo paths.
fn carried_and_displaced<A: Access>() {
    let between = Between {
        keys: 60,
        bytes: 8,
        loses_nothing: true,
        happens: |stage| stage.fill(1_000..1_100, 8),
        shows: |counts, moved| {
            assert_eq!(counts.items, 160);
            assert!(moved > 0, "entries were displaced");
        },
    };
    carried::see(table::<A>(256 << 10, 1 << 10, 100), &between);
}

/// Segments are split, which moves entries to other pages.
fn carried_and_split<A: Access>() {
    let between = Between {
        keys: 100,
        bytes: 8,
        loses_nothing: true,
        happens: |stage| stage.fill(1_000..3_000, 8),
        shows: |_, moved| assert!(moved > 20, "{moved} entries were moved"),
    };
    carried::see(table::<A>(1 << 20, 128, 100), &between);
}

fn carried_and_evicted<A: Access>() {
    let between = Between {
        keys: 300,
        bytes: 40,
        loses_nothing: false,
        happens: |stage| stage.fill(1_000..3_000, 40),
        shows: |counts, _| assert!(counts.evictions > 300, "{counts:?}"),
    };
    carried::see(table::<A>(64 << 10, 128, 100), &between);
}

fn an_attacked_bucket<A: Access>() {
    let config = Memc3Config {
        memory_bytes: 1 << 20,
        page_bytes: 1 << 10,
        item_bytes_max: 300,
        pages: PagePolicy::Small,
        hasher: attacked::hasher(),
        ..Memc3Config::default()
    };
    attacked::displaces_no_other(Owner::<A>::new(&config).unwrap());
}

/// Segments are split, and in the smaller table items are evicted.
fn groups_beside_a_map<A: Access>() {
    groups::invalidated_while_received(table::<A>(4 << 20, 128, 100_000));
    groups::beside_a_map(table::<A>(4 << 20, 128, 100_000), 40_000, true);
    groups::beside_a_map(table::<A>(300_000, 128, 20_000), 10_000, false);
}

fn groups_raced<A: Access>() {
    groups::raced(table::<A>(4 << 20, 128, 100_000), 500, true);
    groups::raced(table::<A>(16 << 10, 128, 2_000), 500, false);
}

in_modes! {
    a_value_that_grows: Erew Crew Crcw;
    a_value_that_is_stored_again: Erew Crew Crcw;
    an_attacked_bucket: Erew Crew Crcw;
    carried_and_replaced: Erew Crew Crcw;
    carried_and_expired: Erew Crew Crcw;
    carried_and_flushed: Erew Crew Crcw;
    carried_and_displaced: Erew Crew Crcw;
    carried_and_split: Erew Crew Crcw;
    carried_and_evicted: Erew Crew Crcw;
    leaving: Erew Crew Crcw;
    leaving_by_expiry: Erew Crew Crcw;
    a_busy_key: Crew Crcw;
    many_sizes: Erew Crew Crcw;
    a_growing_index: Erew Crew Crcw;
    an_index_at_its_limit: Erew Crew Crcw;
    racing: Crew Crcw;
    racing_with_large_values: Crew Crcw;
    lent_values: Erew Crew Crcw;
    lent_values_are_copied_once: Erew Crcw;
    lent_values_whose_slabs_move: Erew Crew Crcw;
    uploads_beside_stores: Erew Crew Crcw;
    uploads_where_an_index_grows: Erew Crcw;
    a_crawl: Erew Crcw;
    dead_memory: Erew Crew Crcw;
    sessions: Erew Crew Crcw;
    a_flush: Erew Crew Crcw;
    groups_beside_a_map: Erew Crew Crcw;
    groups_raced: Erew Crew Crcw;
}
