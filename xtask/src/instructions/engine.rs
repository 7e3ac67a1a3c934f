//! Instructions of the engine alone.

use super::{Case, callgrind};
use std::path::{Path, PathBuf};

const TABLES: [&str; 3] = ["cache", "store", "memc3"];
/// CREW lies between them: its reads are those of CRCW, and its writes too, but for the lock.
const MODES: [&str; 2] = ["erew", "crcw"];
const VERBS: [&str; 6] = ["get", "set", "new", "delete", "mg", "ms"];

/// Requests that do not count, and those that then do.
const REQUESTS: [u64; 2] = [4_096, 8_192];

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

/// Instructions per request.
pub fn per_request(requests: &Path, case: &Case) -> anyhow::Result<f64> {
    let [before, counted] = REQUESTS;
    let mut command = callgrind::command(&[COUNTED, callgrind::FROM], requests);
    command.args(case.row.split(' ')).arg(&case.column);
    command.args([before, counted].map(|number| number.to_string()));
    Ok(callgrind::count(command)? as f64 / counted as f64)
}
