//! The test suites of clients, from the page that `cargo xtask suites` writes.

use super::record::{Count, Row};
use crate::process::program;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;

const PAGE: &str = "docs/client-suites.md";
/// The page's sentence about memcached.
const VERSION: &str = "memcached is ";
const NOT_RUN: &str = "not run: ";

/// A row for each suite.
pub fn run() -> anyhow::Result<Vec<Row>> {
    let page = fs::read_to_string(PAGE)?;
    let mut rows = of_page(&page);
    let changes = changes()?;
    for row in &mut rows {
        let today = Row::new("", "")?;
        let (commit, date) = changes.get(&row.name).cloned().unwrap_or_default();
        // A line that is not committed is of now.
        let is_committed = !commit.is_empty() && !commit.starts_with("0000");
        row.commit = if is_committed { commit } else { today.commit };
        row.date = if is_committed { date } else { today.date };
    }
    Ok(rows)
}

/// The rows of the page's table, with the failed tests that the page lists.
fn of_page(page: &str) -> Vec<Row> {
    let version = page.lines().find_map(|line| line.strip_prefix(VERSION));
    let memcached = format!("memcached {}", version.unwrap_or("").trim_end_matches('.'));
    let table = page.lines().filter(|line| line.starts_with("| ")).skip(2);
    table.map(|line| row(line, &memcached, page)).collect()
}

fn row(line: &str, memcached: &str, page: &str) -> Row {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let cell = |place: usize| cells.get(place).copied().unwrap_or("");
    let (name, version, about) = (cell(1), cell(2), cell(3));
    let mut row = Row {
        name: name.to_owned(),
        about: format!("{version} {about}").trim().to_owned(),
        ..Row::default()
    };
    if let Some(reason) = cell(4).strip_prefix(NOT_RUN) {
        return row.without(reason);
    }
    let theirs = cell(5).strip_prefix("Redis: ");
    row.peer = theirs.map_or(memcached, |_| "Redis").to_owned();
    row.ours = count(cell(4));
    row.theirs = count(theirs.unwrap_or(cell(5)));
    for (servers, test) in failed(page, name) {
        if servers != "memcached" && servers != "redis" {
            row.failed.push(test.clone());
        }
        if servers != "glimmer" {
            row.peer_failed.push(test);
        }
    }
    row
}

/// The count of `571 passed, 0 failed, 6 skipped`.
fn count(cell: &str) -> Option<Count> {
    let number = |word: &str| -> Option<usize> {
        let parts = cell.split(", ");
        let mut found = parts.filter_map(|part| part.strip_suffix(word));
        found.next()?.trim().parse().ok()
    };
    let (passed, failed) = (number("passed")?, number("failed")?);
    Some(Count {
        passed,
        run: passed + failed,
    })
}

/// The failed tests of a suite, each with the servers: `both`, or the name of one.
fn failed(page: &str, name: &str) -> Vec<(String, String)> {
    let heading = format!("\n### {name}\n");
    let part = page.split_once(&heading).map_or("", |(_, rest)| rest);
    let part = part.split("\n### ").next().unwrap_or("");
    let mut servers = String::new();
    let mut failed = Vec::new();
    for line in part.lines() {
        if let Some(with) = line.strip_prefix("With ") {
            servers = with.trim_end_matches([':']).replace(" alone", "");
        } else if let Some(test) = line.strip_prefix("- ") {
            failed.push((servers.clone(), test.to_owned()));
        }
    }
    failed
}

/// The commit and the day of the last change of each row.
fn changes() -> anyhow::Result<BTreeMap<String, (String, String)>> {
    let output = program(
        "git",
        &["blame", "--date=short", "--abbrev=7", "-s", "--", PAGE],
    )
    .output()
    .context("cannot start git")?;
    let mut changes = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let commit = line.split_whitespace().next().unwrap_or_default();
        let name = line.split('|').nth(1).unwrap_or_default().trim();
        if !name.is_empty() && !changes.contains_key(name) {
            let commit = commit.trim_start_matches('^').to_owned();
            let date = date_of(&commit)?;
            changes.insert(name.to_owned(), (commit, date));
        }
    }
    Ok(changes)
}

fn date_of(commit: &str) -> anyhow::Result<String> {
    let output = program("git", &["show", "-s", "--format=%cs", commit]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITES: &str = "memcached is 1.6.45.\n\n| client | version | tests | Glimmer | other |\n\
        | --- | --- | --- | --- | --- |\n\
        | a | 1 | own | 5 passed, 1 failed, 6 skipped | 4 passed, 2 failed |\n\
        | b | 2 | own | 1 passed, 0 failed | Redis: 1 passed, 0 failed |\n\
        | c | | own | not run: no tool | |\n\n## Tests that fail\n\n### a\n\n\
        With memcached alone:\n\n- `x`\n\nWith both:\n\n- `y`: why\n";

    #[test]
    fn rows_come_from_the_page_of_the_suites() {
        let rows = of_page(SUITES);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].ours, Some(Count { passed: 5, run: 6 }));
        assert_eq!(rows[0].failed, ["`y`: why"]);
        assert_eq!(rows[0].peer_failed, ["`x`", "`y`: why"]);
        assert_eq!(
            (&*rows[0].peer, &*rows[1].peer),
            ("memcached 1.6.45", "Redis")
        );
        assert_eq!(rows[2].not_run.as_deref(), Some("no tool"));
    }

    /// The scorecard has every suite of the page, with the same counts.
    #[test]
    fn the_record_is_that_of_the_page() {
        let folder = crate::process::repository();
        let page = fs::read_to_string(folder.join(PAGE)).unwrap();
        let record = super::super::record::Record::read("clients").unwrap();
        let counts = |rows: &[Row]| -> Vec<_> {
            let each = rows
                .iter()
                .map(|row| (row.name.clone(), row.ours, row.theirs));
            each.collect()
        };
        assert_eq!(
            counts(&record.row),
            counts(&of_page(&page)),
            "{PAGE} is newer: cargo xtask conformance --only clients"
        );
    }
}
