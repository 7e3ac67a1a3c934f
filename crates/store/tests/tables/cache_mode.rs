//! Cache mode, under every eviction rule.

use crate::carried::{self, Between};
use crate::oracle::{self, Load, Outcome};
use crate::stress::{self, Race};
use crate::{attacked, busy, crawl, dead, flush, groups, growing, lent, removals, uploads};
use glimmer_base::limits::DRAFT_BYTES_MIN;
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{FIFO, LRU, RULES, Rule, S3_FIFO};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Asides, Table};

/// `--lru-threshold` unless given.
const THRESHOLD: f64 = 0.875;

struct Case {
    load: Load,
    sizes: PartitionConfig,
    /// What the run must have come to.
    shows: fn(&Outcome, &str),
}

fn sizes(log_bytes: usize, main_buckets: usize, spare_buckets: usize) -> PartitionConfig {
    PartitionConfig {
        log_bytes,
        main_buckets,
        spare_buckets,
        pages: PagePolicy::Small,
        hasher: crate::oracle::SEED.into(),
        ..PartitionConfig::default()
    }
}

fn run<A: Access>(case: Case, rule: Rule) {
    let config = PartitionConfig {
        item_bytes_max: case.load.item_bytes_max,
        ..case.sizes
    };
    let owner = Owner::<A>::new(&config, rule).unwrap();
    let walk = |owner: &mut Owner<A>, flushes| owner.enter(flushes).audit();
    let outcome = oracle::run(owner, case.load, walk);
    let counts = &outcome.counts;
    assert!(
        counts.evictions + counts.index_evictions > 0,
        "the cache was full: {counts:?}"
    );
    assert!(counts.in_place_updates > 0 || rule.reinsertion_threshold.is_some());
    let is_large = case.load.value_max >= 2 * DRAFT_BYTES_MIN;
    assert!(
        !A::SHARED_WRITES || !is_large || outcome.drafts > 100,
        "large values were copied ahead"
    );
    (case.shows)(&outcome, rule.name);
}

/// A small log with a roomy index: eviction at the head does the work.
fn a_log_that_wraps() -> Case {
    Case {
        load: Load::of(3_000, 2_000),
        sizes: sizes(128 << 10, 400, 50),
        shows: |_, _| {},
    }
}

/// An index that is far too small, and stays so: chains, spare buckets and evictions from the
/// index.
fn an_index_that_overflows() -> Case {
    Case {
        load: Load::of(3_000, 100),
        sizes: sizes(256 << 10, 16, 16),
        shows: |Outcome { counts, .. }, _| {
            assert!(
                counts.index_evictions > 0 && counts.spares_used > 0,
                "the index overflowed: {counts:?}"
            );
            assert_eq!(counts.buckets_added, 0);
        },
    }
}

/// Offsets so narrow that they start again every four laps of the log.
fn offsets_that_wrap() -> Case {
    Case {
        load: Load {
            steps: 200_000,
            ..Load::of(2_000, 300)
        },
        sizes: PartitionConfig {
            offset_bits: 16,
            ..sizes(64 << 10, 60, 30)
        },
        shows: |Outcome { counts, .. }, _| {
            assert!(
                counts.stale_removed > 100,
                "the scan removed what dangled: {counts:?}"
            );
        },
    }
}

/// An index that begins with a handful of buckets for thousands of items, and grows while the log
/// fills.
fn an_index_that_grows() -> Case {
    Case {
        load: Load {
            flushes: 0.0,
            ..Load::of(20_000, 20)
        },
        sizes: PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 5, 1)
        },
        shows: |Outcome { counts, first, .. }, _| {
            assert!(counts.buckets_added > 100, "{counts:?}");
            // The first 8,000 stores are less than two laps. In the first the index becomes just
            // large enough, which in the second, where chance fills other chains, a few items find
            // it is not; then it has grown again. The whole run is ten laps, between which an audit
            // empties the table four times.
            for counts in [first, counts] {
                let appended = counts.stored + counts.reinsertions;
                assert!(
                    counts.index_evictions * 25 < appended,
                    "the index keeps up: {counts:?}"
                );
            }
        },
    }
}

/// Items that become small when the log has long been full: the index grows while the log goes
/// round.
fn items_that_become_small() -> Case {
    Case {
        load: Load {
            flushes: 0.0,
            later_value_max: 10,
            steps: 200_000,
            ..Load::of(20_000, 1_200)
        },
        sizes: PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 8, 2)
        },
        shows: |Outcome { counts, late, .. }, _| {
            let stored = counts.stored - late.stored;
            let lost = counts.index_evictions - late.index_evictions;
            assert!(counts.buckets_added > 100, "{counts:?}");
            // These are three laps with an audit among them, which empties the table: it is in one
            // of them at most that the index is behind, and then by a sixteenth or two of its size.
            // Of 375 runs, the one that lost the most lost a seventeenth of what was stored.
            assert!(
                lost * 12 < stored,
                "the index has caught up: {lost} of {stored} were lost"
            );
        },
    }
}

/// Items that become large when the index has grown for small ones: the memory goes back to the
/// log.
fn items_that_become_large() -> Case {
    Case {
        load: Load {
            flushes: 0.0,
            later_keys: 600,
            later_value_max: 4_000,
            item_bytes_max: 4_300,
            steps: 200_000,
            ..Load::of(20_000, 10)
        },
        sizes: PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 5, 1)
        },
        shows: |outcome, _| {
            let counts = &outcome.counts;
            let taken = counts.buckets_added.max(1);
            assert!(counts.buckets_added > 100, "{counts:?}");
            assert!(
                counts.buckets_merged * 10 > taken * 8,
                "what had been taken came back: {counts:?}"
            );
        },
    }
}

/// Values of which the log holds a few dozen, among many small ones.
fn large_values() -> Case {
    Case {
        load: Load {
            steps: 20_000,
            ..Load::of(600, 60_000)
        },
        sizes: PartitionConfig {
            index_follows: true,
            ..sizes(1 << 20, 20, 5)
        },
        shows: |_, _| {},
    }
}

macro_rules! in_every_mode {
    ($($case:ident)+) => { $(
        mod $case {
            use super::*;

            #[test]
            fn erew() { some_rules(0.5, |rule| run::<Erew>(super::$case(), rule)); }
            #[test]
            fn crew() { some_rules(0.0, |rule| run::<Crew>(super::$case(), rule)); }
            #[test]
            fn crcw() { some_rules(0.9, |rule| run::<Crcw>(super::$case(), rule)); }
        }
    )+ };
}

/// Runs a test under every rule, those that reinsert on a read with this threshold.
fn each_rule(threshold: f64, test: impl Fn(Rule)) {
    under(RULES, threshold, test);
}

/// The same under a random third of them: another access mode takes others.
fn some_rules(threshold: f64, test: impl Fn(Rule)) {
    under(glimmer_seeds::a_third(RULES), threshold, test);
}

fn under<'a>(rules: impl IntoIterator<Item = &'a Rule>, threshold: f64, test: impl Fn(Rule)) {
    for rule in rules {
        println!("{rule:?}");
        test(rule.with_threshold(threshold));
    }
}

in_every_mode! {
    a_log_that_wraps
    an_index_that_overflows
    offsets_that_wrap
    an_index_that_grows
    items_that_become_small
    items_that_become_large
    large_values
}

/// A table of these sizes.
fn owner<A: Access>(sizes: PartitionConfig, item_bytes_max: usize, rule: Rule) -> Owner<A> {
    let config = PartitionConfig {
        item_bytes_max,
        ..sizes
    };
    Owner::new(&config, rule).unwrap()
}

/// A log for a fraction of the items, and an index that begins with a handful of buckets.
fn racing<A: Access>() {
    each_rule(0.3, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            ..sizes(32 << 10, 3, 1)
        };
        let counts = stress::run(owner::<A>(sizes, 4_000, rule), Race::new());
        assert!(
            counts.evictions > 0 && counts.buckets_added > 0,
            "{counts:?}"
        );
    });
}

/// Large values in a log that holds a handful of them, so that its head comes to places that others
/// are copying to.
fn racing_with_large_values<A: Access>() {
    each_rule(0.3, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 3, 1)
        };
        let counts = stress::run(owner::<A>(sizes, 64_000, rule), Race::of_large_values());
        assert!(counts.evictions > 0, "{counts:?}");
    });
}

fn a_crawl<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        crawl::removes_and_counts(owner::<A>(sizes(1 << 20, 100, 20), 100, rule));
    });
}

fn dead_memory<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        dead::is_used_first(&|| owner::<A>(sizes(1 << 20, 1_000, 200), 300, rule));
    });
}

fn sessions<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        let table = owner::<A>(sizes(1 << 20, 1_000, 200), 300, rule);
        assert_eq!(dead::sessions_lost(table), 0);
    });
}

fn a_flush<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        flush::is_done_once(owner::<A>(sizes(1 << 20, 100, 20), 100, rule));
    });
}

/// A full log, and an index that is too small as well: items leave both ways.
fn leaving<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        let table = owner::<A>(sizes(256 << 10, 60, 10), 200, rule);
        let counts = removals::are_all_reported(table);
        assert!(counts.index_evictions > 0, "{counts:?}");
        assert!(counts.evictions > counts.index_evictions, "{counts:?}");
    });
}

fn leaving_by_expiry<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        let table = owner::<A>(sizes(256 << 10, 200, 40), 200, rule);
        removals::by_expiry_and_flush_are_reported(table);
    });
}

fn a_busy_key<A: Access>() {
    let table = owner::<A>(sizes(8 << 20, 16, 2), 310_000, FIFO);
    busy::copies_are_bounded(table);
}

fn carried_and_replaced<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        carried::replaced(owner::<A>(sizes(64 << 10, 1, 1), 100, rule), 0);
        carried::replaced(owner::<A>(sizes(64 << 10, 1, 1), 100, rule), 15);
    });
}

fn carried_and_expired<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        carried::expired(owner::<A>(sizes(64 << 10, 1, 1), 100, rule));
    });
}

fn carried_and_flushed<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        carried::flushed(owner::<A>(sizes(64 << 10, 60, 20), 100, rule));
    });
}

/// The tail passes the items, or they are put back at it. Entries of items that left stay.
fn carried_and_evicted<A: Access>() {
    let between = Between {
        keys: 300,
        bytes: 40,
        loses_nothing: false,
        happens: |stage| stage.fill(1_000..2_200, 40),
        shows: |counts, _| assert!(counts.evictions > 100, "{counts:?}"),
    };
    each_rule(THRESHOLD, |rule| {
        carried::see(owner::<A>(sizes(64 << 10, 60, 20), 100, rule), &between);
    });
}

/// The buckets of the keys are split.
fn carried_and_split<A: Access>() {
    let between = Between {
        keys: 100,
        bytes: 8,
        loses_nothing: false,
        happens: |stage| stage.fill(1_000..3_000, 8),
        shows: |counts, moved| assert!(counts.buckets_added > 20 && moved > 20, "{counts:?}"),
    };
    each_rule(THRESHOLD, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 4, 2)
        };
        carried::see(owner::<A>(sizes, 100, rule), &between);
    });
}

/// The buckets of the keys are merged with others, while items become large.
fn carried_and_merged<A: Access>() {
    let between = Between {
        keys: 3_000,
        bytes: 8,
        loses_nothing: false,
        happens: |stage| stage.fill(4_000..4_600, 1_000),
        shows: |counts, moved| assert!(counts.buckets_merged > 20 && moved > 20, "{counts:?}"),
    };
    let sizes = PartitionConfig {
        index_follows: true,
        ..sizes(256 << 10, 4, 2)
    };
    carried::see(owner::<A>(sizes, 1_200, FIFO), &between);
}

/// Logs of few laps' worth of offsets, as short as the items let them be or longer.
fn uploads_beside_stores<A: Access>() {
    let logs = [
        (300_000, 100_000, 20),
        (1 << 20, 100_000, 44),
        (4 << 20, 400_000, 25),
    ];
    each_rule(THRESHOLD, |rule| {
        for (log_bytes, value_max, offset_bits) in logs {
            let sizes = PartitionConfig {
                offset_bits,
                ..sizes(log_bytes, 64, 16)
            };
            let load = uploads::Load {
                keys: 30,
                small_keys: 400,
                steps: 3_000,
                value_max,
                loses_nothing: false,
            };
            uploads_in::<A>(sizes, load, rule);
        }
    });
}

/// The index takes memory from the end of the log, where uploads may be.
fn uploads_where_an_index_grows<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            ..sizes(2 << 20, 4, 2)
        };
        let load = uploads::Load {
            keys: 30,
            small_keys: 40_000,
            steps: 4_000,
            value_max: 200_000,
            loses_nothing: false,
        };
        uploads_in::<A>(sizes, load, rule);
    });
}

fn uploads_in<A: Access>(sizes: PartitionConfig, load: uploads::Load, rule: Rule) {
    let config = PartitionConfig {
        item_bytes_max: load.value_max + 300,
        ..sizes
    };
    let owner = Owner::<A>::new(&config, rule).unwrap();
    let audit = |owner: &mut Owner<A>, flushes| owner.enter(flushes).audit();
    let (_, _, outcome) = uploads::run(owner, load, audit);
    let took_turns = outcome.turns > 0;
    assert!(
        outcome.stored > 50 && took_turns,
        "{}: {outcome:?}",
        rule.name
    );
}

/// A log that holds about five of the values that are lent, and a small log for some of them: both
/// heads pass items in one step, and one of them what is lent.
fn lent_values<A: Access>() {
    each_rule(0.3, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            ..sizes(256 << 10, 3, 1)
        };
        lent::values_stay(owner::<A>(sizes, 64_000, rule));
    });
}

/// The same, where the copies of lent values may take what one of them takes.
fn lent_values_without_memory<A: Access>() {
    each_rule(0.3, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            asides: Asides::of(64_000),
            ..sizes(256 << 10, 3, 1)
        };
        lent::values_get_lost(owner::<A>(sizes, 64_000, rule));
    });
}

fn lent_values_are_copied_once<A: Access>() {
    each_rule(0.3, |rule| {
        let asides = Asides::of(lent::COPIED_BYTES);
        let sizes = PartitionConfig {
            index_follows: true,
            asides: asides.clone(),
            ..sizes(256 << 10, 3, 1)
        };
        lent::are_copied_once(owner::<A>(sizes, 64_000, rule), &asides);
    });
}

/// A table that holds twice as much as is stored beside one value that changes.
fn half_full<A: Access>(rule: Rule) -> Owner<A> {
    let sizes = PartitionConfig {
        index_follows: true,
        ..sizes(growing::TABLE_BYTES, 2_000, 400)
    };
    owner(sizes, growing::ITEM_BYTES_MAX, rule)
}

fn a_value_that_grows<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        growing::by_appends(half_full::<A>(rule));
        growing::by_prepends(half_full::<A>(rule));
    });
}

fn a_value_that_is_stored_again<A: Access>() {
    each_rule(THRESHOLD, |rule| growing::by_stores(half_full::<A>(rule)));
}

fn an_attacked_bucket<A: Access>() {
    each_rule(THRESHOLD, |rule| {
        let sizes = PartitionConfig {
            index_follows: true,
            hasher: attacked::hasher(),
            ..sizes(1 << 20, attacked::ROOTS, 16)
        };
        attacked::displaces_no_other(owner::<A>(sizes, 300, rule));
    });
}

fn of_groups<A: Access>(log_bytes: usize, rule: Rule) -> Owner<A> {
    let config = PartitionConfig {
        item_bytes_max: 60_000.min(log_bytes / 4),
        index_follows: true,
        ..sizes(log_bytes, 4, 1)
    };
    Owner::new(&config, rule).unwrap()
}

fn groups_beside_a_map<A: Access>() {
    groups::invalidated_while_received(of_groups::<A>(16 << 20, FIFO));
    groups::beside_a_map(of_groups::<A>(16 << 20, FIFO), 40_000, false);
    for rule in [S3_FIFO, LRU] {
        let rule = rule.with_threshold(THRESHOLD);
        groups::beside_a_map(of_groups::<A>(160 << 10, rule), 20_000, false);
    }
}

fn groups_raced<A: Access>() {
    for rule in [S3_FIFO, LRU] {
        groups::raced(
            of_groups::<A>(64 << 10, rule.with_threshold(THRESHOLD)),
            500,
            false,
        );
    }
}

in_modes! {
    a_value_that_grows: Erew Crew Crcw;
    a_value_that_is_stored_again: Erew Crew Crcw;
    an_attacked_bucket: Erew Crew Crcw;
    lent_values: Erew Crew Crcw;
    lent_values_are_copied_once: Erew Crcw;
    lent_values_without_memory: Crcw;
    uploads_beside_stores: Erew Crew Crcw;
    uploads_where_an_index_grows: Erew Crcw;
    carried_and_replaced: Erew Crew Crcw;
    carried_and_expired: Erew Crew Crcw;
    carried_and_flushed: Erew Crew Crcw;
    carried_and_evicted: Erew Crew Crcw;
    carried_and_split: Erew Crew Crcw;
    carried_and_merged: Erew Crew Crcw;
    leaving: Erew Crew Crcw;
    leaving_by_expiry: Erew Crew Crcw;
    a_busy_key: Crew Crcw;
    racing: Crew Crcw;
    racing_with_large_values: Crew Crcw;
    a_crawl: Erew Crcw;
    dead_memory: Erew Crew Crcw;
    sessions: Erew Crew Crcw;
    a_flush: Erew Crew Crcw;
    groups_beside_a_map: Erew Crew Crcw;
    groups_raced: Erew Crew Crcw;
}
