//! The list of eviction rules, and what is written about it.

#![cfg(not(any(loom, miri)))]

use glimmer_store::evict::{DEFAULT, RULES};

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
    let page = include_str!("../../../docs/eviction.md");
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
