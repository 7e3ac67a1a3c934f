//! Counts the engine's instructions per request with callgrind. Counts are reproducible where times
//! are not, so that a small loss shows even on a noisy machine.
//!
//! Callgrind runs `crates/engine/examples/requests.rs` twice, with different numbers of requests.
//! The difference between the two runs excludes the cost of setting up.

use crate::process::{cargo, program, run, target_dir};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::path::Path;

const TABLES: [&str; 3] = ["cache", "store", "memc3"];
const MODES: [&str; 3] = ["erew", "crew", "crcw"];
const VERBS: [&str; 5] = ["get", "set", "cycle", "mg", "ms"];

/// Requests of the two runs: whole rounds over the keys.
const REQUESTS: [u64; 2] = [4_096, 12_288];

/// Only instructions in this function count.
const COUNTED: &str = "--toggle-collect=*::Engine>::run";

const TOOLS: &[Tool] = &[Tool {
    probe: &["valgrind"],
    packages: &["valgrind"],
    without: "counting instructions",
}];

/// Counts and prints a table with a row for each table and access mode and a column for each kind
/// of request. With `beside`, a build of the same program from other sources is counted too, and
/// each number is followed by the ratio of ours to it.
pub fn count(beside: Option<&Path>) -> anyhow::Result<()> {
    if !tools::install(TOOLS) {
        bail!("valgrind is missing");
    }
    let build = ["build", "--release", "-p", "glimmer-engine", "--example"];
    run(cargo(&build).arg("requests"))?;
    let ours = target_dir().join("release/examples/requests");
    print!("{:<12}", "per request");
    VERBS.iter().for_each(|verb| print!("{verb:>14}"));
    println!();
    for (table, mode) in TABLES.iter().flat_map(|t| MODES.map(|mode| (t, mode))) {
        print!("{:<12}", format!("{table} {mode}"));
        for verb in VERBS {
            let case = [*table, mode, verb];
            let count = per_request(&ours, case)?;
            let ratio = match beside {
                Some(other) => format!("  {:.3}", count / per_request(other, case)?),
                None => String::new(),
            };
            print!("{:>14}", format!("{count:.0}{ratio}"));
        }
        println!();
    }
    Ok(())
}

/// Instructions per request of this kind.
fn per_request(requests: &Path, case: [&str; 3]) -> anyhow::Result<f64> {
    let [few, many] = REQUESTS;
    let difference = collected(requests, case, many)? - collected(requests, case, few)?;
    Ok(difference as f64 / (many - few) as f64)
}

/// Instructions of one run.
fn collected(requests: &Path, case: [&str; 3], count: u64) -> anyhow::Result<u64> {
    let mut callgrind = program(
        "valgrind",
        &[
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            COUNTED,
        ],
    );
    let callgrind = callgrind.arg(requests).args(case).arg(count.to_string());
    let output = callgrind.output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    match collected.and_then(|(_, number)| number.trim().parse().ok()) {
        Some(number) if output.status.success() => Ok(number),
        _ => bail!("{callgrind:?}: {}\n{said}", output.status),
    }
}
