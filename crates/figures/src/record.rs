//! The record of a figure: its data, the machine, and the verdicts on the paper's statements and on
//! claims of our own.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use anyhow::{Result, bail, ensure};
use glimmer_measure::{machine as here, noise::SPREAD_MAX, progress::Progress, report::Table};
use serde::{Deserialize, Serialize};

use crate::{
    Data, Figure, Finding, Kind, Machine, Run, Settings, Shape, Verdict,
    ledger::{Ledger, rule::Grade},
    machine,
    run::{self, Measured},
};

/// The record of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The figure's name.
    pub name: String,
    /// Whether this was a quick run, which shows only that everything runs.
    pub quick: bool,
    /// The machine.
    pub machine: Machine,
    /// Random reads per second of one core, measured next to every round. They show how quiet the
    /// machine was.
    pub random_reads_per_s: Vec<f64>,
    /// Notes for the reader: what was left out, and why.
    pub notes: Vec<String>,
    /// The data.
    pub data: Data,
    /// The verdicts on the paper's statements, by the names that they have in its ledger.
    #[serde(default)]
    pub verdicts: BTreeMap<String, Grade>,
    /// The verdicts on claims of our own.
    pub findings: Vec<Finding>,
}

/// A quick run of any figure does with this many cores: a server's and its client's.
const QUICK_CORES: usize = 2;

/// The machine lacks something that the figure needs.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unmet(String);

/// Measures and judges a figure. Fails with [`Unmet`] if the machine lacks something that the
/// figure needs.
pub fn reproduce(
    figure: &dyn Figure,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Record> {
    let spec = figure.spec();
    let cores = here::cores();
    let wanted = match settings.quick {
        true => spec.needs.cores.min(QUICK_CORES),
        false => spec.needs.cores,
    };
    if cores < wanted {
        bail!(Unmet(format!(
            "it needs {wanted} cores, and this machine offers {cores}"
        )));
    }
    if let Some(free) = machine::memory_free_mib().filter(|_| !settings.quick) {
        let wanted = spec.needs.memory_mib;
        if free < wanted {
            bail!(Unmet(format!(
                "it needs {wanted} MiB of free memory, and this machine has {free}"
            )));
        }
    }
    let machine = Machine::here(spec.needs.peers);
    let mut run = Run::new(settings, spec.kind, progress)?;
    if cores < spec.needs.cores_of_paper {
        run.note(format!(
            "the paper's server has {} cores and this machine has {cores}, so larger core counts \
             are left out",
            spec.needs.cores_of_paper
        ));
    }
    figure.measure(&mut run)?;
    let Measured {
        data,
        notes,
        random_reads_per_s,
    } = run.finish();
    ensure!(!data.rows.is_empty(), "nothing could be measured");
    let mut record = Record {
        name: spec.name.to_owned(),
        quick: settings.quick,
        machine,
        random_reads_per_s,
        notes,
        data,
        verdicts: BTreeMap::new(),
        findings: Vec::new(),
    };
    record.judge(figure);
    Ok(record)
}

impl Record {
    /// Judges the data again, because claims may have been reworded since.
    pub fn judge(&mut self, figure: &dyn Figure) {
        let kind = figure.spec().kind;
        let mut shape = figure.judged(&self.data);
        if !self.proves(kind) {
            for finding in &mut shape.findings {
                if finding.verdict != Verdict::Beside {
                    finding.verdict = Verdict::Open("a quick run proves nothing".to_owned());
                }
            }
        }
        self.findings = shape.findings;
        self.verdicts = match self.proves(kind) {
            true => Ledger::judge(&self.name, &self.data).into_iter().collect(),
            false => BTreeMap::new(),
        };
    }

    /// Whether the data of this run say something about a figure of this kind.
    pub fn proves(&self, kind: Kind) -> bool {
        !self.quick || kind == Kind::Exact
    }

    /// The findings as a table.
    pub fn shape(&self) -> Shape {
        Shape {
            findings: self.findings.clone(),
        }
    }

    /// What papers state about it, with the verdicts, as a table; empty if the data prove nothing.
    fn statements(&self) -> String {
        if self.verdicts.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["row", "the paper", "its number", "here", "verdict"]);
        for (claim, grade, found) in Ledger::decided(&self.name, &self.data) {
            let (paper, found, grade) = (claim.papers(), found.to_string(), grade.to_string());
            // A vertical bar would end the cell.
            let cells = [claim.id, claim.says, paper, found, grade];
            table.row(cells.map(|cell| cell.replace('|', "\\|")));
        }
        table.to_string()
    }

    /// The statements of papers and the claims of ours, as tables.
    pub fn tables(&self) -> String {
        let tables = [self.statements(), self.shape().to_string()];
        let tables: Vec<String> = tables.into_iter().filter(|it| !it.is_empty()).collect();
        tables.join("\n")
    }

    /// The spread of the machine's own figure relative to its median.
    pub fn noise(&self) -> Option<f64> {
        run::noise(&self.random_reads_per_s)
    }

    /// What is worse than in the record before, as an error message; `None` if nothing is. A claim
    /// of ours may fail, and a statement of a paper may not be reproduced, if the record says so.
    pub fn complaint(&self, before: Option<&Record>) -> Option<String> {
        let mut text = String::new();
        for (statement, grade) in &self.verdicts {
            let recorded = before.and_then(|before| before.verdicts.get(statement));
            if let Some(recorded) = recorded.filter(|recorded| grade < recorded) {
                let _ = write!(
                    text,
                    "\n  {}: `{statement}` is {grade}, and the record has: {recorded}",
                    self.name
                );
            }
        }
        let had_failed = |what: &String| {
            let same = |finding: &&Finding| finding.what == *what;
            let found = before.and_then(|before| before.findings.iter().find(same));
            found.is_some_and(|finding| matches!(finding.verdict, Verdict::Fails(_)))
        };
        for finding in self.shape().failures() {
            if had_failed(&finding.what) {
                continue;
            }
            let _ = write!(
                text,
                "\n  {}: \"{}\" (here: {}) {}",
                self.name, finding.what, finding.ours, finding.verdict
            );
        }
        if text.is_empty() {
            return None;
        }
        if let Some(noise) = self.noise().filter(|&noise| noise > SPREAD_MAX) {
            let _ = write!(
                text,
                "\n  the machine was noisy: its own figure spread by {:.0}%",
                noise * 100.0
            );
        }
        Some(text)
    }

    /// A sentence about the machine on which the figure was measured.
    pub fn measured_on(&self) -> String {
        let Machine {
            processor,
            cores,
            kernel,
            memory_mib,
            huge_pages,
            versions,
            build,
            date,
            command,
        } = &self.machine;
        let mut text = format!(
            "{date}: {processor}, {cores} cores, {:.0} GiB, {kernel}, transparent huge pages: \
             {huge_pages}",
            *memory_mib as f64 / 1024.0
        );
        if !versions.is_empty() {
            let _ = write!(text, "; {}", versions.join("; "));
        }
        let _ = match build {
            Some(build) => write!(text, "; built from {build}"),
            None => write!(
                text,
                "; of a commit that this record does not name, as later ones do"
            ),
        };
        if let Some(noise) = self.noise() {
            let word = if noise > SPREAD_MAX { "NOISY, " } else { "" };
            let _ = write!(
                text,
                "; {word}the machine's own random reads spread by {:.0}%",
                noise * 100.0
            );
        }
        let _ = write!(text, "; `{command}`");
        text
    }
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.tables())?;
        for note in &self.notes {
            writeln!(out, "Note: {note}.")?;
        }
        writeln!(out, "Measured {}.", self.measured_on())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Needs, Point, Spec, plot::Plot};

    /// A figure that claims that its only number is at least two.
    struct Number(f64, Kind, Needs);

    const NEEDS: Needs = Needs {
        cores: 1,
        cores_of_paper: 100_000,
        memory_mib: 0,
        peers: &[],
    };

    impl Figure for Number {
        fn spec(&self) -> Spec {
            Spec {
                name: "number",
                title: "A number",
                source: "nowhere",
                claim: "It is at least two.",
                here: "It is given.",
                kind: self.1,
                needs: self.2,
                columns: Columns {
                    panel: "panel",
                    series: "series",
                    x: "x",
                    y: "y",
                },
                plot: Plot::bars("x", "y"),
            }
        }

        fn measure(&self, run: &mut Run<'_>) -> Result<()> {
            run.add(Point::new("", "number", "here", self.0));
            Ok(())
        }

        fn judge(&self, data: &Data, shape: &mut Shape) {
            shape.at_least("two", "2", data.median("", "number", "here"), 2.0);
        }
    }

    struct Silent;

    impl Progress for Silent {
        fn expect(&self, _: usize) {}
        fn step(&self, _: &str) {}
        fn say(&self, _: &str) {}
    }

    fn record(number: f64, kind: Kind, quick: bool) -> Record {
        let settings = Settings {
            quick,
            ..Settings::default()
        };
        reproduce(&Number(number, kind, NEEDS), &settings, &Silent).unwrap()
    }

    #[test]
    fn a_record_without_its_build_says_so() {
        let mut record = record(2.0, Kind::Exact, false);
        assert!(record.measured_on().contains("; built from "));
        record.machine.build = None;
        let sentence = record.measured_on();
        assert!(
            sentence.contains("a commit that this record does not name"),
            "{sentence}"
        );
    }

    #[test]
    fn a_claim_that_holds_is_no_complaint() {
        let record = record(2.0, Kind::Exact, false);
        assert_eq!(record.complaint(None), None);
        assert!(
            record.notes[0].contains("100000 cores"),
            "{:?}",
            record.notes
        );
        assert!(record.to_string().contains("holds: at least"), "{record}");
    }

    #[test]
    fn a_claim_that_does_not_hold_is_named_unless_it_did_not_hold_before() {
        let failed = record(1.5, Kind::Exact, false);
        let complaint = failed.complaint(None).unwrap();
        let expected = "\n  number: \"two\" (here: 1.50) FAILS: it is below 2";
        assert_eq!(complaint, expected);
        let held = record(2.5, Kind::Exact, false);
        assert_eq!(failed.complaint(Some(&held)).unwrap(), expected);
        assert_eq!(failed.complaint(Some(&failed)), None);
    }

    #[test]
    fn a_verdict_on_a_paper_is_a_complaint_if_it_is_worse_than_recorded() {
        let with = |grade| {
            let mut record = record(2.5, Kind::Exact, false);
            record.verdicts.insert("lead".to_owned(), grade);
            record
        };
        let [none, weak, full] = [Grade::NotReproduced, Grade::Weaker, Grade::Reproduced].map(with);
        assert_eq!(none.complaint(None), None);
        assert_eq!(none.complaint(Some(&none)), None);
        assert_eq!(full.complaint(Some(&weak)), None);
        let complaint = weak.complaint(Some(&full)).unwrap();
        let expected = "\n  number: `lead` is weaker, and the record has: reproduced";
        assert_eq!(complaint, expected);
    }

    #[test]
    fn a_quick_run_judges_what_is_exact_and_nothing_else() {
        let complaint = |kind, quick| record(1.5, kind, quick).complaint(None);
        assert_eq!(complaint(Kind::Timing, true), None);
        assert_eq!(complaint(Kind::Simulated, true), None);
        assert!(complaint(Kind::Exact, true).is_some());
        assert!(complaint(Kind::Simulated, false).is_some());
        assert!(complaint(Kind::Timing, false).is_some());
    }

    #[test]
    fn what_the_machine_lacks_is_said() {
        let settings = Settings::default();
        let many_cores = Needs {
            cores: 100_000,
            ..NEEDS
        };
        let much_memory = Needs {
            memory_mib: 1 << 40,
            ..NEEDS
        };
        for (needs, lacks) in [(many_cores, "100000 cores"), (much_memory, "free memory")] {
            let figure = Number(2.0, Kind::Exact, needs);
            let error = reproduce(&figure, &settings, &Silent).unwrap_err();
            assert!(error.is::<Unmet>(), "{error:#}");
            assert!(error.to_string().contains(lacks), "{error:#}");
        }
    }
}
