//! Proxies and clients that place keys on three servers, which `tests/fleet` tries.

use super::record::{Count, Row};
use super::{Tried, version_of};
use crate::clients;
use crate::fleet::Engine;
use crate::process::program;
use anyhow::Context as _;
use clap::ValueEnum as _;
use std::path::Path;
use std::process::Stdio;

/// Seconds for which a killed server is away.
const OUTAGE_S: &str = "2";

/// What places keys for others, and is not tried.
const NOT_RUN: [(&str, &str, &str); 1] = [("mcrouter", "a proxy", "no package registry has it")];

/// Runs the engines over servers of both makes.
pub fn run(with: &Tried) -> anyhow::Result<Vec<Row>> {
    let python = clients::python()?;
    let mut rows = Vec::new();
    for engine in Engine::value_variants() {
        let engine = engine.to_possible_value().expect("none is hidden");
        let (name, about) = (engine.get_name(), engine.get_help());
        if !with.is_chosen(name) {
            continue;
        }
        let about = about.map_or_else(String::new, ToString::to_string);
        let mut row = Row::new(name, &about)?;
        let mut counts: Vec<Events> = Vec::new();
        for server in with.servers() {
            counts.push(events(&python, name, server, &with.memcached)?);
        }
        let [ours, theirs] = counts.try_into().expect("two servers were tried");
        match ours {
            Ok(ours) => (row.ours, row.failed) = ours,
            Err(reason) => row = row.without(&reason),
        }
        // Some speak a protocol that memcached does not.
        if let (None, Ok(theirs)) = (&row.not_run, theirs) {
            row.peer = version_of(&with.memcached)?;
            (row.theirs, row.peer_failed) = theirs;
        }
        println!("{name}: {}", row.shown());
        rows.push(row);
    }
    for (name, about, reason) in NOT_RUN {
        if with.is_chosen(name) {
            rows.push(Row::new(name, about)?.without(reason));
        }
    }
    Ok(rows)
}

/// What came out of each event, or why none was run.
type Events = Result<(Option<Count>, Vec<String>), String>;

fn events(python: &Path, name: &str, server: &Path, proxy: &Path) -> anyhow::Result<Events> {
    let output = program(
        python,
        &["tests/fleet", "--engine", name, "--seconds", OUTAGE_S],
    )
    .arg("--server")
    .arg(server)
    .arg("--proxy")
    .arg(proxy)
    .env("PYTHONDONTWRITEBYTECODE", "1")
    .stdin(Stdio::null())
    .output()
    .context("cannot start python")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    Ok(match counted(&printed) {
        Some((count, failed)) if !output.status.success() && failed.is_empty() => {
            let last = complaint.trim().lines().next_back().unwrap_or_default();
            let broken = Count { passed: 0, run: 1 };
            let count = count.map(|count| count.and(broken));
            Ok((count, vec![format!("the events after these: {last}")]))
        }
        Some(counted) => Ok(counted),
        None => {
            let last = complaint
                .trim()
                .lines()
                .next_back()
                .unwrap_or("no event ran");
            Err(last.trim_start_matches("fleet: ").to_owned())
        }
    })
}

/// Counts the events of the table, and those without a wrong value.
fn counted(printed: &str) -> Option<(Option<Count>, Vec<String>)> {
    let cells = |line: &str| -> Vec<String> {
        let inside = line.trim().trim_matches('|');
        inside
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let mut rows = printed
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(cells);
    let wrong = rows.next()?.iter().position(|head| head == "wrong")?;
    let rows: Vec<_> = rows.skip(1).collect();
    let failed = rows
        .iter()
        .filter(|row| row.get(wrong).is_none_or(|count| count != "0"));
    let failed: Vec<String> = failed.map(|row| row[0].clone()).collect();
    let run = rows.len();
    let passed = run - failed.len();
    (run > 0).then_some((Some(Count { passed, run }), failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_a_wrong_value_fails() {
        let printed = "\nx:\n\n| event | wrong | note |\n| --- | --- | --- |\n\
            | killed | 0 | |\n| full | 3 | |\n";
        let (count, failed) = counted(printed).unwrap();
        assert_eq!(count, Some(Count { passed: 1, run: 2 }));
        assert_eq!(failed, ["full"]);
        assert!(counted("x: SKIPPED: needs y").is_none());
    }
}
