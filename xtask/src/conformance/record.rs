//! What was tried, in `docs/conformance/PART.toml`.

use crate::process::{self, program};
use crate::suites::outcome::Outcomes;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

/// The rows of a part.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    #[serde(default)]
    pub row: Vec<Row>,
}

/// One thing that was tried with both servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name, which no other row of the part has.
    pub name: String,
    /// What it is, with versions.
    pub about: String,
    /// The day of the run, `YYYY-MM-DD`.
    pub date: String,
    /// The last commit that had changed the server.
    pub commit: String,
    /// Why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// The other server, such as `memcached 1.6.45`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer: String,
    /// What failed with ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// What failed with the other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_failed: Vec<String>,
    /// How many passed with ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Count>,
    /// How many passed with the other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Count>,
}

/// Tests that passed, and tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub passed: usize,
    pub run: usize,
}

impl Count {
    pub fn of(outcomes: &Outcomes) -> Count {
        let (passed, failed) = outcomes.passed_and_failed();
        Count {
            passed,
            run: passed + failed,
        }
    }

    /// Both together.
    pub fn and(self, other: Count) -> Count {
        Count {
            passed: self.passed + other.passed,
            run: self.run + other.run,
        }
    }
}

impl Row {
    /// A row of today and of this state of the server, with nothing in it.
    pub fn new(name: &str, about: &str) -> anyhow::Result<Row> {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let last = ["log", "-1", "--abbrev=8", "--format=%h", "--", "crates"];
        let commit = program("git", &last).output()?;
        Ok(Row {
            name: name.to_owned(),
            about: about.to_owned(),
            date: now.split('T').next().unwrap_or_default().to_owned(),
            commit: String::from_utf8_lossy(&commit.stdout).trim().to_owned(),
            ..Row::default()
        })
    }

    /// The same with what came out with both servers.
    pub fn with(mut self, peer: &str, ours: &Outcomes, theirs: &Outcomes) -> Row {
        let names = |outcomes: &Outcomes| outcomes.failed().map(str::to_owned).collect();
        self.peer = peer.to_owned();
        (self.ours, self.failed) = (Some(Count::of(ours)), names(ours));
        (self.theirs, self.peer_failed) = (Some(Count::of(theirs)), names(theirs));
        self
    }

    /// What came out, in one line.
    pub fn shown(&self) -> String {
        let count = |count: Option<Count>| count.unwrap_or_default();
        match &self.not_run {
            Some(reason) => format!("not run: {reason}"),
            None if self.theirs.is_none() => {
                let ours = count(self.ours);
                format!("Glimmer {} of {}", ours.passed, ours.run)
            }
            None => {
                let (ours, theirs) = (count(self.ours), count(self.theirs));
                format!(
                    "Glimmer {} of {}, {} {} of {}",
                    ours.passed, ours.run, self.peer, theirs.passed, theirs.run
                )
            }
        }
    }

    /// The same without a run.
    pub fn without(mut self, reason: &str) -> Row {
        self.not_run = Some(reason.to_owned());
        self
    }
}

impl Record {
    /// The record of a part; empty before the first run.
    pub fn read(part: &str) -> anyhow::Result<Record> {
        let path = path(part);
        if !path.exists() {
            return Ok(Record::default());
        }
        let text = fs::read_to_string(&path)?;
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    pub fn write(&self, part: &str) -> anyhow::Result<()> {
        let path = path(part);
        fs::create_dir_all(path.parent().expect("a folder"))?;
        fs::write(path, toml::to_string(self)?)?;
        Ok(())
    }

    /// Takes the rows of a run in place of those that have their names. After a run of all, rows
    /// that it did not have are gone.
    pub fn enter(&mut self, rows: Vec<Row>, is_all: bool) {
        if is_all {
            self.row = rows;
            return;
        }
        for row in rows {
            match self.row.iter_mut().find(|old| old.name == row.name) {
                Some(old) => *old = row,
                None => self.row.push(row),
            }
        }
    }
}

fn path(part: &str) -> PathBuf {
    let folder = process::repository().join("docs/conformance");
    folder.join(format!("{part}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::outcome::Format;

    fn row(name: &str, text: &str) -> Row {
        let outcomes = Outcomes::of(text, Format::Tap);
        let row = Row {
            name: name.to_owned(),
            ..Row::default()
        };
        row.with("memcached 1", &outcomes, &outcomes)
    }

    #[test]
    fn a_run_of_some_rows_keeps_the_others() {
        let mut record = Record::default();
        record.enter(vec![row("a", "ok x"), row("b", "ok x")], true);
        record.enter(vec![row("b", "ok x\nnot ok y"), row("c", "ok x")], false);
        let names: Vec<_> = record.row.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(record.row[1].ours, Some(Count { passed: 1, run: 2 }));
        assert_eq!(record.row[1].failed, ["y"]);
        record.enter(vec![row("c", "ok x")], true);
        assert_eq!(record.row.len(), 1);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            row: vec![row("a", "not ok x"), Row::default().without("no \"tool\"")],
        };
        let text = toml::to_string(&record).unwrap();
        assert_eq!(toml::from_str::<Record>(&text).unwrap(), record);
    }
}
