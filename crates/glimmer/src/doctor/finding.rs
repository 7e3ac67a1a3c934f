//! A finding, as a line and as JSON.

use serde::Serialize;
use std::fmt::Write;

/// What a finding means for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing has to change.
    Ok,
    /// Something could be better.
    Hint,
    /// The server would not start, or would be ended later.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub about: &'static str,
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// Nothing has to change.
    pub fn ok(about: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            about,
            verdict: Verdict::Ok,
            found: found.into(),
            advice: None,
        }
    }

    /// Something could be better.
    pub fn hint(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding {
            verdict: Verdict::Hint,
            advice: Some(advice.into()),
            ..Finding::ok(about, found)
        }
    }

    /// The server would not start, or would be ended later.
    pub fn fault(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding {
            verdict: Verdict::Fault,
            ..Finding::hint(about, found, advice)
        }
    }
}

/// A line for each finding.
pub fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|it| it.about.len()).max().unwrap_or(0);
    let mut table = String::new();
    for Finding {
        about,
        verdict,
        found,
        advice,
    } in findings
    {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Hint => "hint",
            Verdict::Fault => "FAULT",
        };
        let advice = advice.iter().map(|advice| format!("; {advice}"));
        let advice: String = advice.collect();
        writeln!(table, "{verdict:5}  {about:width$}  {found}{advice}").expect("a string grows");
    }
    table
}
