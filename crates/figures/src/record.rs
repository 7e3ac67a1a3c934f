//! The record of a figure: its data, the machine, and the verdicts on the paper's claims.

use std::fmt::{self, Write};

use anyhow::{Result, bail, ensure};
use glimmer_measure::{machine as here, noise::SPREAD_MAX, progress::Progress};
use serde::{Deserialize, Serialize};

use crate::{
    Data, Figure, Finding, Kind, Machine, Run, Settings, Shape, Verdict, machine,
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
    /// The verdicts on the paper's claims.
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
        findings: Vec::new(),
    };
    record.judge(figure);
    Ok(record)
}

impl Record {
    /// Judges the data again, because claims may have been reworded since.
    pub fn judge(&mut self, figure: &dyn Figure) {
        let mut shape = Shape::default();
        figure.judge(&self.data, &mut shape);
        if self.quick && figure.spec().kind != Kind::Exact {
            for finding in &mut shape.findings {
                if finding.verdict != Verdict::Beside {
                    finding.verdict = Verdict::Open("a quick run proves nothing".to_owned());
                }
            }
        }
        self.findings = shape.findings;
    }

    /// The findings as a table.
    pub fn shape(&self) -> Shape {
        Shape {
            findings: self.findings.clone(),
        }
    }

    /// The spread of the machine's own figure relative to its median.
    pub fn noise(&self) -> Option<f64> {
        run::noise(&self.random_reads_per_s)
    }

    /// The claims that do not hold, as an error message; `None` if all hold.
    pub fn complaint(&self) -> Option<String> {
        let shape = self.shape();
        let mut text = String::new();
        for Finding {
            what,
            paper,
            ours,
            verdict,
            bound: _,
        } in shape.failures()
        {
            let _ = write!(
                text,
                "\n  {}: \"{what}\" (paper: {paper}; here: {ours}) {verdict}",
                self.name
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
        write!(out, "{}", self.shape())?;
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
    fn a_claim_that_holds_is_no_complaint() {
        let record = record(2.0, Kind::Exact, false);
        assert_eq!(record.complaint(), None);
        assert!(
            record.notes[0].contains("100000 cores"),
            "{:?}",
            record.notes
        );
        assert!(record.to_string().contains("holds: at least"), "{record}");
    }

    #[test]
    fn a_claim_that_does_not_hold_is_named() {
        let complaint = record(1.5, Kind::Exact, false).complaint().unwrap();
        assert_eq!(
            complaint,
            "\n  number: \"two\" (paper: 2; here: 1.50) FAILS: it is below 2"
        );
    }

    #[test]
    fn a_quick_run_judges_what_is_exact_and_nothing_else() {
        assert_eq!(record(1.5, Kind::Timing, true).complaint(), None);
        assert_eq!(record(1.5, Kind::Simulated, true).complaint(), None);
        assert!(record(1.5, Kind::Exact, true).complaint().is_some());
        assert!(record(1.5, Kind::Simulated, false).complaint().is_some());
        assert!(record(1.5, Kind::Timing, false).complaint().is_some());
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
