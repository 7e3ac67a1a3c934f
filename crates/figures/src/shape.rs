//! Claims of ours as code, and numbers side by side. What a paper states is judged by its ledger.

use std::fmt;

use glimmer_measure::{report::Table, stats::Spread};
use serde::{Deserialize, Serialize};

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds here as well.
    Holds,
    /// The claim does not hold, and the command fails.
    Fails(String),
    /// The claim could not be measured here.
    Open(String),
    /// Not a claim: two numbers side by side.
    Beside,
}

/// A claim or a number of the paper, and our result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The claim, or the name of the number.
    pub what: String,
    /// The paper's number or words.
    pub paper: String,
    /// Our result.
    pub ours: String,
    /// The bound for our number, if there is one. It may be weaker than the paper's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Our number, if the verdict is about one.
    #[serde(skip)]
    measured: Option<Measured>,
}

impl Finding {
    /// The verdict with its reason.
    pub fn told(&self) -> String {
        match (&self.verdict, &self.bound) {
            (Verdict::Holds, Some(bound)) => format!("holds: {bound}"),
            (verdict, _) => verdict.to_string(),
        }
    }
}

/// Collects findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// The findings in the order in which they were added.
    pub findings: Vec<Finding>,
}

/// A measured number, or repetitions of one, whose median counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    value: f64,
    spread: Option<Spread>,
}

impl From<f64> for Measured {
    fn from(value: f64) -> Measured {
        Measured {
            value,
            spread: None,
        }
    }
}

impl From<Spread> for Measured {
    fn from(spread: Spread) -> Measured {
        Measured {
            value: spread.median,
            spread: Some(spread),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.value.abs() {
            100.0.. => 0,
            10.0.. => 1,
            _ => 2,
        };
        match self.spread {
            Some(spread) if spread.min < spread.max => out.write_str(&spread.text(decimals)),
            _ => write!(out, "{:.decimals$}", self.value),
        }
    }
}

impl Shape {
    /// Adds a number of the paper with ours next to it, without a claim.
    pub fn beside(&mut self, what: &str, paper: &str, ours: Option<impl fmt::Display>) {
        self.add(
            what,
            paper,
            ours.map(|ours| ours.to_string()),
            None,
            Verdict::Beside,
        );
    }

    /// Shows the range of each number that has none yet: from the lowest to the highest of these
    /// findings, each of one repetition. A number that a repetition lacks has none.
    pub fn show_ranges(&mut self, each: &[Shape]) {
        for finding in &mut self.findings {
            let Some(Measured {
                value,
                spread: None,
            }) = finding.measured
            else {
                continue;
            };
            let of = |shape: &Shape| {
                let mut same = shape.findings.iter().filter(|it| it.what == finding.what);
                Some(same.next()?.measured?.value)
            };
            let Some(values) = each.iter().map(of).collect::<Option<Vec<f64>>>() else {
                continue;
            };
            let spread = Spread {
                median: value,
                min: values.iter().copied().fold(value, f64::min),
                max: values.iter().copied().fold(value, f64::max),
            };
            finding.ours = Measured::from(spread).to_string();
        }
    }

    /// Adds a claim that holds if `ours` is at least `bound`. Without a measurement it stays open.
    pub fn at_least(
        &mut self,
        claim: &str,
        paper: &str,
        ours: Option<impl Into<Measured>>,
        bound: f64,
    ) {
        let wrong = |value| (value < bound).then(|| format!("it is below {bound}"));
        self.compare(claim, paper, ours, format!("at least {bound}"), wrong);
    }

    /// Adds a claim that holds if `ours` is at most `bound`. Without a measurement it stays open.
    pub fn at_most(
        &mut self,
        claim: &str,
        paper: &str,
        ours: Option<impl Into<Measured>>,
        bound: f64,
    ) {
        let wrong = |value| (value > bound).then(|| format!("it is above {bound}"));
        self.compare(claim, paper, ours, format!("at most {bound}"), wrong);
    }

    /// Adds a claim that holds if `ours` lies between these bounds. Without a measurement it stays
    /// open.
    pub fn between(
        &mut self,
        claim: &str,
        paper: &str,
        ours: Option<impl Into<Measured>>,
        bounds: std::ops::RangeInclusive<f64>,
    ) {
        let range = format!("{} to {}", bounds.start(), bounds.end());
        let wrong = |value| (!bounds.contains(&value)).then(|| format!("it is not within {range}"));
        self.compare(claim, paper, ours, range.clone(), wrong);
    }

    /// Adds any other claim. `holds` says whether it holds, `otherwise` what is wrong if not.
    pub fn claim(
        &mut self,
        claim: &str,
        paper: &str,
        ours: impl fmt::Display,
        holds: bool,
        otherwise: &str,
    ) {
        let verdict = match holds {
            true => Verdict::Holds,
            false => Verdict::Fails(otherwise.to_owned()),
        };
        self.add(claim, paper, Some(ours.to_string()), None, verdict);
    }

    /// The claims that do not hold.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        let failed = |finding: &&Finding| matches!(finding.verdict, Verdict::Fails(_));
        self.findings.iter().filter(failed)
    }

    fn compare(
        &mut self,
        claim: &str,
        paper: &str,
        ours: Option<impl Into<Measured>>,
        bound: String,
        wrong: impl Fn(f64) -> Option<String>,
    ) {
        let ours: Option<Measured> = ours.map(Into::into);
        // NaN fails every comparison, and must not count as a result that holds.
        let verdict = match ours {
            Some(Measured { value, .. }) if value.is_nan() => {
                Verdict::Fails("it is not a number".to_owned())
            }
            Some(Measured { value, .. }) => wrong(value).map_or(Verdict::Holds, Verdict::Fails),
            None => Verdict::Holds,
        };
        self.add(
            claim,
            paper,
            ours.map(|ours| ours.to_string()),
            Some(bound),
            verdict,
        );
        if let Some(finding) = self.findings.last_mut() {
            finding.measured = ours;
        }
    }

    fn add(
        &mut self,
        what: &str,
        paper: &str,
        ours: Option<String>,
        bound: Option<String>,
        verdict: Verdict,
    ) {
        let (ours, verdict) = match ours {
            Some(ours) => (ours, verdict),
            None => (
                "not measured".to_owned(),
                Verdict::Open("not measured here".to_owned()),
            ),
        };
        self.findings.push(Finding {
            what: what.to_owned(),
            paper: paper.to_owned(),
            ours,
            bound,
            verdict,
            measured: None,
        });
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => out.write_str("holds"),
            Verdict::Fails(why) => write!(out, "FAILS: {why}"),
            Verdict::Open(why) => write!(out, "open: {why}"),
            Verdict::Beside => Ok(()),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["claim", "paper", "here", "verdict"]);
        for finding in &self.findings {
            let verdict = finding.told();
            let cells = [&finding.what, &finding.paper, &finding.ours, &verdict];
            // A vertical bar would end the cell.
            table.row(cells.map(|cell| cell.replace('|', "\\|")));
        }
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_hold_fail_and_stay_open() {
        let mut shape = Shape::default();
        shape.at_least("ours wins", "4x", Some(4.5), 4.0);
        shape.at_least("ours wins", "4x", Some(3.9), 4.0);
        shape.at_least("ours wins", "4x", None::<f64>, 4.0);
        shape.at_most("small", "1", Some(Spread::of(&[0.5, 3.0, 0.7])), 1.0);
        shape.at_most("small", "1", Some(f64::NAN), 1.0);
        shape.between("near", "53%", Some(53.4), 50.0..=56.0);
        shape.between("near", "53%", Some(49.0), 50.0..=56.0);
        shape.claim("in order", "", "b a", false, "b is before a");
        shape.beside("peak", "76.9 Mops", Some("3.4 Mops"));
        let verdicts: Vec<String> = shape.findings.iter().map(Finding::told).collect();
        let expected = [
            "holds: at least 4",
            "FAILS: it is below 4",
            "open: not measured here",
            "holds: at most 1",
            "FAILS: it is not a number",
            "holds: 50 to 56",
            "FAILS: it is not within 50 to 56",
            "FAILS: b is before a",
            "",
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(shape.failures().count(), 4);
        assert!(shape.to_string().contains("0.70 (0.50..3.00)"), "{shape}");
    }

    #[test]
    fn a_number_is_shown_with_its_range_over_the_repetitions() {
        let of = |number: Option<f64>| {
            let mut shape = Shape::default();
            shape.at_least("ours wins", "", number, 1.0);
            shape
        };
        let mut shape = of(Some(1.01));
        shape.show_ranges(&[of(Some(1.03)), of(Some(1.01)), of(Some(0.97))]);
        assert_eq!(shape.findings[0].ours, "1.01 (0.97..1.03)");
        assert_eq!(shape.findings[0].verdict, Verdict::Holds);
        let mut shape = of(Some(1.01));
        shape.show_ranges(&[of(Some(1.03)), of(None)]);
        assert_eq!(shape.findings[0].ours, "1.01");
        shape.show_ranges(&[]);
        assert_eq!(shape.findings[0].ours, "1.01");
    }
}
