//! Instructions of a table alone, driven as `glimmer bench store` drives it, whose own share is
//! counted with them.

use super::{Case, callgrind};
use std::path::{Path, PathBuf};

const TABLES: [&str; 3] = ["cache", "store", "memc3"];
const MODES: [&str; 2] = ["erew", "crcw"];
const VERBS: [&str; 2] = ["get", "put"];

/// Operations of a run.
const OPERATIONS: u64 = 16_384;

/// Only instructions in this function count.
const COUNTED: &str = "--toggle-collect=*store_alone::rig::drive*";

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    let tables = TABLES.iter().flat_map(|t| MODES.map(|mode| (*t, mode)));
    tables
        .flat_map(|(table, mode)| VERBS.map(|verb| [table, mode, verb]))
        .map(|[table, mode, verb]| Case {
            row: format!("alone, {table} {mode}"),
            column: verb.to_owned(),
        })
        .collect()
}

/// Builds the program that is counted.
pub fn build() -> anyhow::Result<PathBuf> {
    callgrind::build("examples/operations")
}

/// Instructions per operation.
pub fn per_request(operations: &Path, case: &Case) -> anyhow::Result<f64> {
    let mut command = callgrind::command(&[COUNTED], operations);
    let words = case.row.split([' ', ',']).filter(|word| !word.is_empty());
    command.args(words.skip(1)).arg(&case.column);
    command.arg(OPERATIONS.to_string());
    Ok(callgrind::count(command)? as f64 / OPERATIONS as f64)
}
