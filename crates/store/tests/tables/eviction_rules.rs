//! The list of eviction rules, and what is written about it.

#![cfg(not(miri))]

use glimmer_base::{Moment, Seed};
use glimmer_store::access::{Access, Crcw, Erew};
use glimmer_store::evict::{CLOCK, DEFAULT, LRU, RULES, Rule};
use glimmer_store::heap::NewItem;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Table, TableWriter};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

#[test]
fn names_are_distinct_and_read_back() {
    for rule in RULES {
        assert_eq!(
            rule.name.parse(),
            Ok(*rule),
            "two rules are called {rule:?}"
        );
    }
    assert!(RULES.contains(&DEFAULT));
}

#[test]
fn the_page_on_eviction_has_a_row_for_each_rule() {
    let page = include_str!("../../../../docs/eviction.md");
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    for rule in RULES {
        let row = format!("| `{}` | {} | {} |", rule.name, rule.summary, rule.source);
        assert!(
            rows.contains(&&*row),
            "docs/eviction.md lacks the row\n{row}"
        );
    }
}

const VALUE: [u8; 1_000] = [7; 1_000];
const LOG_BYTES: usize = 4 << 20;
/// Items that the log holds, the index beside them: a few more.
const HELD_MAX: u64 = (LOG_BYTES / 1_100) as u64;

/// A table without anything beside the items in its log.
fn table<A: Access>(rule: Rule) -> Owner<A> {
    let config = PartitionConfig {
        log_bytes: LOG_BYTES,
        main_buckets: 1_024,
        spare_buckets: 256,
        item_bytes_max: 64 << 10,
        pages: PagePolicy::Small,
        hasher: Seed(5).into(),
        ..PartitionConfig::default()
    };
    Owner::new(&config, rule).unwrap()
}

/// Stores items, each of which is read once, after `lag` others, and lets the rule know when what
/// is in the log has changed a few times over. Returns the share that was found.
fn found_later<A: Access>(table: &mut Owner<A>, lag: u64) -> f64 {
    let key = |number: u64| (lag << 32 | number).to_be_bytes();
    let (mut read, mut found) = (0, 0);
    for number in 0..lag + 5 * HELD_MAX {
        let stored = key(number);
        let keyhash = Seed(5).keyhash(&stored);
        (table.enter(0)).put(keyhash, &NewItem::new(&stored, &VALUE), NOW);
        if let Some(number) = number.checked_sub(lag) {
            let key = key(number);
            let keyhash = Seed(5).keyhash(&key);
            read += 1;
            found += u64::from((table.enter(0)).read(keyhash, &key, NOW, |_| ()).is_some());
        }
    }
    found as f64 / read as f64
}

/// When the log is full, all in it were read but for the newest. Those must not go first.
#[test]
fn what_is_read_later_is_there_under_rules_that_spare_what_was_read() {
    fn check<A: Access>(rule: Rule) {
        let lags = [12, 6, 3].map(|part| HELD_MAX / part);
        for lag in lags {
            let found = found_later(&mut table::<A>(rule), lag);
            assert!(found == 1.0, "{rule:?}, a lag of {lag}: {found}");
        }
        let mut table = table::<A>(rule);
        for lag in lags {
            let found = found_later(&mut table, lag);
            assert!(found == 1.0, "{rule:?}, later a lag of {lag}: {found}");
        }
    }
    for rule in [CLOCK, LRU] {
        check::<Erew>(rule);
        check::<Crcw>(rule);
    }
}
