//! The results of a server that was exposed to hostile clients.

use std::fmt;

use serde::Serialize;

use super::scenario::{Case, Check, Measured};
use glimmer_measure::report::{Column, Table};

/// One case of a scenario on one server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    scenario: &'static str,
    case: Case,
    server: String,
    measured: Measured,
    checks: Vec<Check>,
    passed: bool,
}

impl Row {
    pub fn new(
        scenario: &'static str,
        case: &Case,
        server: &str,
        measured: Measured,
        checks: Vec<Check>,
    ) -> Row {
        Row {
            scenario,
            case: case.clone(),
            server: server.to_owned(),
            measured,
            passed: checks.iter().all(Check::passed),
            checks,
        }
    }

    /// The exceeded bounds, and by how much they were exceeded.
    fn failed(&self) -> String {
        let failed = self.checks.iter().filter(|check| !check.passed());
        let failed: Vec<String> = failed.map(Check::to_string).collect();
        failed.join("; ")
    }
}

/// All results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether the server of this name passed all of its cases.
    pub fn passed(&self, server: &str) -> bool {
        (self.rows.iter()).all(|row| row.server != server || row.passed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |head: &str, bytes: fn(&Measured) -> Option<u64>| {
            Column::new(head, move |row: &Row| match bytes(&row.measured) {
                Some(bytes) => format!("{:.0}", bytes as f64 / f64::from(1 << 20)),
                None => "?".to_owned(),
            })
        };
        let ms = |head: &str, ms: fn(&Measured) -> Option<f64>| {
            Column::new(head, move |row: &Row| {
                ms(&row.measured).map_or(String::new(), |ms| format!("{ms:.1}"))
            })
        };
        let columns = [
            Column::new("scenario", |row: &Row| {
                format!("{} ({})", row.scenario, row.case)
            }),
            Column::new("server", |row: &Row| row.server.clone()),
            ms("p99 alone ms", |it| Some(it.quiet.p99_ms)),
            ms("beside gets", |it| it.control.as_ref().map(|it| it.p99_ms)),
            ms("p99 ms", |it| Some(it.attacked.p99_ms)),
            ms("longest ms", |it| Some(it.attacked.longest_ms)),
            Column::new("failed", |row: &Row| {
                let attacked = &row.measured.attacked;
                format!("{} of {}", attacked.failures, attacked.visits)
            }),
            mib("RSS before MiB", |it| it.resident_before),
            mib("peak", |it| it.resident_peak),
            mib("after", |it| it.resident_after),
            Column::new("verdict", |row: &Row| {
                String::from(if row.passed { "pass" } else { "FAIL" })
            }),
        ];
        write!(out, "{}", Table::of(&self.rows, columns))?;
        for row in &self.rows {
            let at = format!("{} ({}), {}", row.scenario, row.case, row.server);
            write!(out, "\n{at}: {}", row.measured.notes)?;
            if !row.passed {
                write!(out, "; FAIL: {}", row.failed())?;
            }
        }
        writeln!(out)
    }
}
