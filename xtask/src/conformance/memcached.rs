//! memcached's own test programs, given its source.

use super::record::{Count, Row};
use super::{Tried, version_of};
use crate::memcached_tests::{self, Outcome};
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The rows: programs over plain connections, and those of TLS.
const ROWS: [(&str, &str, bool); 2] = [
    ("plain", "programs over plain connections", false),
    ("tls", "programs over encrypted connections", true),
];

/// Runs the programs with both servers.
pub fn run(with: &Tried) -> anyhow::Result<Vec<Row>> {
    let source = with.source.as_deref();
    let source = source.context("memcached's own tests need its source: --source FOLDER")?;
    let mut rows = Vec::new();
    for (name, about, is_tls) in ROWS {
        if !with.is_chosen(name) {
            continue;
        }
        let mut row = Row::new(name, about)?;
        row.peer = version_of(&with.memcached)?;
        (row.ours, row.failed) =
            counted(&memcached_tests::outcomes(source, &with.glimmer, is_tls)?);
        let theirs = memcached_tests::outcomes(source, &of_tests(&with.memcached), is_tls)?;
        (row.theirs, row.peer_failed) = counted(&theirs);
        println!("{name}: {}", row.shown());
        rows.push(row);
    }
    Ok(rows)
}

/// memcached as its own tests start it: a second program of the same build, with more options.
fn of_tests(memcached: &Path) -> PathBuf {
    let beside = memcached.with_file_name("memcached-debug");
    match beside.is_file() {
        true => beside,
        false => memcached.to_owned(),
    }
}

fn counted(outcomes: &[(String, Outcome)]) -> (Option<Count>, Vec<String>) {
    let failed = outcomes.iter().filter(|(_, outcome)| !outcome.has_passed());
    let failed: Vec<String> = failed.map(|(name, _)| name.clone()).collect();
    let run = outcomes.len();
    let passed = run - failed.len();
    (Some(Count { passed, run }), failed)
}
