//! Instructions of the engine alone.

use super::{Case, callgrind};
use std::path::{Path, PathBuf};

const TABLES: [&str; 3] = ["cache", "store", "memc3"];
/// CREW lies between them: its reads are those of CRCW, and its writes too, but for the lock.
const MODES: [&str; 2] = ["erew", "crcw"];
const VERBS: [&str; 6] = ["get", "set", "new", "delete", "mg", "ms"];

/// Requests of the two runs.
const REQUESTS: [u64; 2] = [4_096, 12_288];

/// Only instructions in this function count.
const COUNTED: &str = "--toggle-collect=*::Engine>::run_with";

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    let tables = TABLES.iter().flat_map(|t| MODES.map(|mode| (*t, mode)));
    tables
        .flat_map(|(table, mode)| VERBS.map(|verb| [table, mode, verb]))
        .map(|[table, mode, verb]| Case {
            row: format!("{table} {mode}"),
            column: verb.to_owned(),
        })
        .collect()
}

/// Builds the program that is counted.
pub fn build() -> anyhow::Result<PathBuf> {
    callgrind::build("examples/requests")
}

/// Instructions per request. The difference between two runs with different numbers of requests
/// excludes the cost of setting up.
pub fn per_request(requests: &Path, case: &Case) -> anyhow::Result<f64> {
    let count = |requests_sent: u64| {
        let mut command = callgrind::command(&[COUNTED], requests);
        command.args(case.row.split(' ')).arg(&case.column);
        callgrind::count({
            command.arg(requests_sent.to_string());
            command
        })
    };
    let [few, many] = REQUESTS;
    Ok((count(many)? - count(few)?) as f64 / (many - few) as f64)
}
