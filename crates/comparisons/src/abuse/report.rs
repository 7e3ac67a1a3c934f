//! The results of a server that was exposed to hostile clients.

use std::fmt;

use serde::Serialize;

use super::scenario::{Case, Check, Measured};
use glimmer_measure::report::Table;

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
        let mut table = Table::new([
            "scenario",
            "server",
            "p99 alone ms",
            "beside gets",
            "p99 ms",
            "longest ms",
            "failed",
            "RSS before MiB",
            "peak",
            "after",
            "verdict",
        ]);
        let mib = |bytes: Option<u64>| match bytes {
            Some(bytes) => format!("{:.0}", bytes as f64 / f64::from(1 << 20)),
            None => "?".to_owned(),
        };
        for row in &self.rows {
            let Measured {
                quiet,
                control,
                attacked,
                ..
            } = &row.measured;
            let control = control
                .as_ref()
                .map(|control| format!("{:.1}", control.p99_ms));
            table.row([
                format!("{} ({})", row.scenario, row.case),
                row.server.clone(),
                format!("{:.1}", quiet.p99_ms),
                control.unwrap_or_default(),
                format!("{:.1}", attacked.p99_ms),
                format!("{:.1}", attacked.longest_ms),
                format!("{} of {}", attacked.failures, attacked.visits),
                mib(row.measured.resident_before),
                mib(row.measured.resident_peak),
                mib(row.measured.resident_after),
                if row.passed { "pass" } else { "FAIL" }.to_owned(),
            ]);
        }
        write!(out, "{table}")?;
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
