//! The results of a server that was exposed to hostile clients.

use std::fmt;

use serde::Serialize;

use super::{
    manners::VISITS_PER_S,
    scenario::{Case, Check, Measured},
};
use crate::servers::{self, Described};
use glimmer_measure::{
    noise::Noise,
    report::{Column, Table},
    stats::{Spread, number},
};

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
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub(super) servers: Vec<Described>,
    /// Worker threads of each server.
    pub(super) threads: usize,
    /// How long hostile clients were connected, in seconds.
    pub(super) attack_s: f64,
    pub(super) repeat: usize,
    pub(super) noise: Noise,
    pub(super) rows: Vec<Row>,
}

impl Report {
    /// Whether the server of this name passed all of its cases.
    pub fn passed(&self, server: &str) -> bool {
        (self.rows.iter()).all(|row| row.server != server || row.passed)
    }

    /// The repetitions of each case on each server.
    fn repeated(&self) -> Vec<Repeated<'_>> {
        let mut all: Vec<Repeated<'_>> = Vec::new();
        for row in &self.rows {
            let is_same = |it: &Row| {
                (it.scenario, &it.case, &it.server) == (row.scenario, &row.case, &row.server)
            };
            match all.iter_mut().find(|it| is_same(it.0[0])) {
                Some(repeated) => repeated.0.push(row),
                None => all.push(Repeated(vec![row])),
            }
        }
        all
    }
}

/// The repetitions of one case on one server, of which there is at least one.
struct Repeated<'a>(Vec<&'a Row>);

impl Repeated<'_> {
    /// One figure of all of them; `absent` if a repetition lacks it.
    fn spread(
        &self,
        figure: impl Fn(&Measured) -> Option<f64>,
        decimals: usize,
        absent: &str,
    ) -> String {
        let figures = self.0.iter().map(|row| figure(&row.measured));
        match figures.collect::<Option<Vec<f64>>>().as_deref() {
            None => absent.to_owned(),
            Some(&[figure]) => number(figure, decimals),
            Some(figures) => Spread::of(figures).text(decimals),
        }
    }

    fn sum(&self, count: fn(&Measured) -> u64) -> u64 {
        self.0.iter().map(|row| count(&row.measured)).sum()
    }

    fn verdict(&self) -> String {
        match self.0.iter().filter(|row| !row.passed).count() {
            0 => "pass".to_owned(),
            _ if self.0.len() == 1 => "FAIL".to_owned(),
            failed => format!("FAIL, {failed} of {}", self.0.len()),
        }
    }
}

/// A dash where too few visits were made.
fn told(p99_ms: Option<f64>) -> Option<f64> {
    Some(p99_ms.unwrap_or(f64::NAN))
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.servers.is_empty() {
            servers::list(&self.servers, out)?;
        }
        write!(
            out,
            "-t {}; {} s with hostile clients",
            self.threads, self.attack_s
        )?;
        match self.repeat {
            1 => write!(out, ".")?,
            repeat => write!(out, "; median (min..max) of {repeat} repetitions.")?,
        }
        writeln!(
            out,
            " Each well-behaved client makes {VISITS_PER_S} visits a second, and a visit counts \
             from the time at which it was due.\n"
        )?;
        let mib = |head: &str, bytes: fn(&Measured) -> Option<u64>| {
            Column::new(head, move |row: &Repeated<'_>| {
                let mib = |it: &Measured| Some(bytes(it)? as f64 / f64::from(1 << 20));
                row.spread(mib, 0, "?")
            })
        };
        let ms = |head: &str, decimals: usize, ms: fn(&Measured) -> Option<f64>| {
            Column::new(head, move |row: &Repeated<'_>| row.spread(ms, decimals, ""))
        };
        let columns = [
            Column::new("scenario", |row: &Repeated<'_>| {
                format!("{} ({})", row.0[0].scenario, row.0[0].case)
            }),
            Column::new("server", |row: &Repeated<'_>| row.0[0].server.clone()),
            ms("p50 beside gets", 2, |it| Some(it.control.as_ref()?.p50_ms)),
            ms("p50 ms", 2, |it| Some(it.attacked.p50_ms)),
            ms("p99 alone ms", 1, |it| told(it.quiet.p99_ms)),
            ms("beside gets", 1, |it| told(it.control.as_ref()?.p99_ms)),
            ms("p99 ms", 1, |it| told(it.attacked.p99_ms)),
            ms("longest ms", 1, |it| Some(it.attacked.longest_ms)),
            Column::new("failed", |row: &Repeated<'_>| {
                let failures = row.sum(|it| it.attacked.failures);
                format!("{failures} of {}", row.sum(|it| it.attacked.visits))
            }),
            mib("RSS before MiB", |it| it.resident_before),
            mib("peak", |it| it.resident_peak),
            mib("after", |it| it.resident_after),
            Column::new("verdict", Repeated::verdict),
        ];
        write!(out, "{}", Table::of(&self.repeated(), columns))?;
        for row in &self.rows {
            let at = format!("{} ({}), {}", row.scenario, row.case, row.server);
            write!(out, "\n{at}: {}", row.measured.notes)?;
            if !row.passed {
                write!(out, "; FAIL: {}", row.failed())?;
            }
        }
        write!(out, "\n{}", self.noise)
    }
}
