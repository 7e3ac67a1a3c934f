use std::collections::BTreeSet;

use super::family::Kind;
use super::{Highest, families};

const PAGE: &str = include_str!("../../../../docs/metrics.md");

#[test]
fn names_are_unique_and_have_no_suffix_twice() {
    let mut names = BTreeSet::new();
    for family in families() {
        assert!(
            names.insert(family.name()),
            "{} is there twice",
            family.stem
        );
        for suffix in ["_total", "_bytes", "_seconds", "_ratio", "_count"] {
            assert!(!family.stem.ends_with(suffix), "{}", family.stem);
        }
        assert!(
            !family.help.ends_with('.'),
            "{}: the encoder adds it",
            family.stem
        );
    }
}

#[test]
fn a_difference_is_not_shown_to_fall() {
    let shown = Highest::default();
    let values = [1, 0, 2, 1, 3].map(|value| shown.at_least(value));
    assert_eq!(values, [1, 1, 2, 2, 3]);
}

#[test]
fn the_documentation_has_a_row_for_each_metric_and_no_others() {
    let row = |name: &str, kind, help: &str| format!("| `{name}` | {kind} | {help} |");
    let expected: Vec<String> = families()
        .map(|family| {
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            row(&family.name(), kind, family.help)
        })
        .collect();
    for row in &expected {
        assert!(
            PAGE.lines().any(|line| line == row),
            "docs/metrics.md lacks the row\n{row}"
        );
    }
    let rows = PAGE
        .lines()
        .filter(|line| line.starts_with("| `glimmer_") || line.starts_with("| `process_"));
    for row in rows {
        assert!(
            expected.iter().any(|it| it == row),
            "docs/metrics.md has the row\n{row}"
        );
    }
}
