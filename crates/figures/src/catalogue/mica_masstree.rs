//! MICA, Figure 16, beside Masstree: lookups in tables without a network.

use std::{collections::BTreeMap, fmt, process::Command};

use anyhow::{Context, Result, ensure};
use glimmer_microbench::store_alone::Mode;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec, alone::Alone, plot::Plot, systems,
    workload::Mix,
};

/// Keys of each thread.
const KEYS: u32 = 2_000_000;
const PANEL: &str = "";
const OURS: &str = "glimmer crcw";
const MASSTREE: &str = "Masstree";
/// Masstree's own benchmark, on the search path.
const PROGRAM: &str = "mttest";

/// The figure.
pub struct Masstree;

/// What [`PROGRAM`] writes: the results of each thread, by the names of runs.
#[derive(Deserialize)]
struct Notebook {
    data: BTreeMap<String, Vec<Thread>>,
}

#[derive(Deserialize)]
struct Thread {
    gets_per_sec: f64,
}

/// Lookups per second of all threads, from the benchmark's notebook.
fn lookups_per_s(notebook: &str) -> Result<f64> {
    let notebook: Notebook = serde_json::from_str(notebook)?;
    let threads = notebook.data.values().flatten();
    let sum = threads.map(|thread| thread.gets_per_sec).sum();
    ensure!(sum > 0.0, "{PROGRAM} has looked nothing up");
    Ok(sum)
}

/// Inserts this many keys with each thread, and looks all of them up.
fn masstree(threads: usize, keys: u32) -> Result<f64> {
    let file = NamedTempFile::new()?;
    let output = Command::new(PROGRAM)
        .arg(format!("-j{threads}"))
        .args(["-p", "-q", "-l", &keys.to_string(), "-b"])
        .arg(file.path())
        .arg("rw1")
        .output()
        .with_context(|| format!("{PROGRAM} cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{PROGRAM} has failed: {said}");
    lookups_per_s(&std::fs::read_to_string(file.path())?)
}

enum Case {
    Ours(Alone),
    Masstree { threads: usize, keys: u32 },
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Case::Ours(store) => store.fmt(out),
            Case::Masstree { threads, .. } => write!(out, "{MASSTREE}, {threads} threads"),
        }
    }
}

impl Figure for Masstree {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-masstree",
            title: "Lookups beside Masstree, without a network",
            source: "MICA (NSDI'14), Figure 16, §5.5",
            claim: "Even CRCW, the slowest of MICA's modes, is faster than Masstree.",
            here: "Masstree in its own benchmark: test `rw1` of `mttest`, from commit 1119842 of \
                   [masstree-beta](https://github.com/kohler/masstree-beta) with `-O3`. Each \
                   thread inserts two million random keys, decimal numbers of up to ten bytes, \
                   and then looks all of them up in random order, one at a time. Our engine looks \
                   up as many tiny items at random, in batches. Only lookups are compared, as the \
                   benchmark has no mixture of the paper's.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 4096),
            columns: Columns {
                panel: "panel",
                series: "system",
                x: "threads",
                y: "lookups per s",
            },
            plot: Plot::lines("threads", "lookups per second").whole_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(KEYS, 2_000);
        let mut cases = Vec::new();
        for threads in systems::thread_counts(run.cores().min(16)) {
            let mut store = Alone::new(run, keys * threads as u32, Mode::Crcw, threads)?;
            store.draw(run, Mix::new(false, 100));
            cases.push(Case::Ours(store));
            cases.push(Case::Masstree { threads, keys });
        }
        if let Err(error) = masstree(1, 1_000) {
            run.note(format!("{MASSTREE} is left out: {error:#}"));
            cases.retain(|case| matches!(case, Case::Ours(_)));
        }
        run.rounds(run.repeat(5), &mut cases, |case, run, _| {
            let (name, threads, rate) = match case {
                Case::Ours(store) => {
                    let rate = store.operations_per_s(run, 500)?;
                    (OURS, store.workers(), rate)
                }
                Case::Masstree { threads, keys } => {
                    (MASSTREE, *threads, masstree(*threads, *keys)?)
                }
            };
            Ok(Point::new(PANEL, name, threads as f64, rate))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_notebook_are_added_up() {
        let of = |gets: &str| format!(r#"{{"experiments": {{}}, "data": {{"x0/rw1": [{gets}]}}}}"#);
        let two = of(r#"{"puts": 3, "gets_per_sec": 1.5}, {"gets_per_sec": 2.5}"#);
        assert_eq!(lookups_per_s(&two).unwrap(), 4.0);
        assert!(lookups_per_s(&of("")).is_err());
        assert!(lookups_per_s("{}").is_err());
    }
}
