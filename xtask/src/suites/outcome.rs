//! Parses the results of tests from the output of test runners.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The output format of a test runner.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `PASSED file::test`, of `pytest -rA`.
    Pytest,
    /// `test (class) ... ok`, of Python's unittest.
    Unittest,
    /// `--- PASS: Test`, of `go test -v`.
    Go,
    /// `test name ... ok`, of Rust's test harness.
    Rust,
    /// `Class#test = 0.00 s = .`, of Ruby's minitest with `-v`.
    Minitest,
    /// `PASS title [file]`, of PHP's run-tests.php.
    Phpt,
    /// `ok 1 test`, the Test Anything Protocol.
    Tap,
}

/// The result of a test. If several tests have the same name, a failure
/// outranks a pass, and a pass outranks a skipped test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The test did not run.
    Skipped,
    /// The test passed.
    Passed,
    /// The test failed.
    Failed,
}

use Outcome::{Failed, Passed, Skipped};

/// The result of each test, by name.
#[derive(Debug, Default)]
pub struct Outcomes(BTreeMap<String, Outcome>);

impl Outcomes {
    /// Parses a test runner's output.
    pub fn of(text: &str, format: Format) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for line in text.lines() {
            if let Some((name, outcome)) = format.read(line.trim_end()) {
                let known = outcomes.0.entry(name.to_owned()).or_insert(outcome);
                *known = outcome.max(*known);
            }
        }
        outcomes
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the tests that failed.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        let failed = self.0.iter().filter(|(_, outcome)| **outcome == Failed);
        failed.map(|(name, _)| name.as_str())
    }

    /// Whether a test passed.
    pub fn has_passed(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Passed)
    }

    /// The numbers of tests that passed and that failed.
    pub fn passed_and_failed(&self) -> (usize, usize) {
        (self.count(Passed), self.count(Failed))
    }

    /// The number of tests with this result.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.0.values().filter(|each| **each == outcome).count()
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.count(Passed), self.count(Failed));
        write!(f, "{passed} passed, {failed} failed")?;
        match self.count(Skipped) {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

impl Format {
    /// The test that a line names, and its result.
    fn read(self, line: &str) -> Option<(&str, Outcome)> {
        match self {
            Format::Pytest => {
                let (word, rest) = line.split_once(' ')?;
                let outcome = match word {
                    "PASSED" | "XFAIL" | "XPASS" => Passed,
                    "FAILED" | "ERROR" => Failed,
                    _ => return None,
                };
                // The reason follows the name.
                let name = rest.split(" - ").next()?;
                name.contains("::").then_some((name, outcome))
            }
            Format::Unittest => {
                let (name, word) = line.rsplit_once(" ... ")?;
                let outcome = match word {
                    "ok" | "expected failure" => Passed,
                    "FAIL" | "ERROR" => Failed,
                    _ if word.starts_with("skipped") => Skipped,
                    _ => return None,
                };
                Some((name, outcome))
            }
            Format::Go => {
                let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
                let outcome = match word {
                    "PASS" => Passed,
                    "FAIL" => Failed,
                    "SKIP" => Skipped,
                    _ => return None,
                };
                Some((rest.split(" (").next()?, outcome))
            }
            Format::Rust => {
                let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
                let outcome = match word {
                    "ok" => Passed,
                    "FAILED" => Failed,
                    _ if word.starts_with("ignored") => Skipped,
                    _ => return None,
                };
                Some((name, outcome))
            }
            Format::Minitest => {
                let (name, rest) = line.split_once(" = ")?;
                let outcome = match rest.rsplit_once("s = ")?.1 {
                    "." => Passed,
                    "F" | "E" => Failed,
                    "S" => Skipped,
                    _ => return None,
                };
                Some((name, outcome))
            }
            Format::Phpt => {
                let (word, name) = line.split_once(' ')?;
                let outcome = match word {
                    "PASS" => Passed,
                    "FAIL" => Failed,
                    "SKIP" => Skipped,
                    _ => return None,
                };
                // The reason for skipping a test follows its file.
                let name = &name[..=name.find(']')?];
                Some((name, outcome))
            }
            Format::Tap => {
                let line = line.trim_start();
                let (rest, outcome) = match line.strip_prefix("not ok ") {
                    Some(rest) => (rest, Failed),
                    None => (line.strip_prefix("ok ")?, Passed),
                };
                let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
                let is_skipped = directive.to_ascii_lowercase().starts_with("skip");
                let name = name.trim_start_matches(|c: char| c.is_ascii_digit());
                let name = name.trim_start_matches([' ', '-']);
                Some((name, if is_skipped { Skipped } else { outcome }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_names_its_tests() {
        for (format, text) in [
            (
                Format::Pytest,
                "PASSED t.py::a\nFAILED t.py::b - assert 1 - 2\nSKIPPED [1] t.py:3: no\n\
                 ERROR t.py::c",
            ),
            (
                Format::Unittest,
                "a (t.T.a) ... ok\nb (t.T.b) ... FAIL\nc (t.T.c) ... ERROR\n\
                 d (t.T.d) ... skipped 'no'",
            ),
            (
                Format::Go,
                "=== RUN a\n--- PASS: a (0.00s)\n    --- FAIL: a/b (0.00s)\n\
                 --- FAIL: c (0.00s)\n--- SKIP: d (0s)",
            ),
            (
                Format::Rust,
                "test a::b ... ok\ntest b ... FAILED\n\
                 test c ... FAILED\ntest d ... ignored, no\ntest result: FAILED.",
            ),
            (
                Format::Minitest,
                "A#test_a = 0.00 s = .\nB#b = 0.10 s = F\nC#c = 1.00 s = E\nD#d = 0.00 s = S",
            ),
            (
                Format::Phpt,
                "PASS a [a.phpt]\nFAIL b [b.phpt]\nFAIL c [c.phpt]\nSKIP d [d.phpt] reason: no",
            ),
            (
                Format::Tap,
                "1..4\nok 1 - a\nnot ok 2 - b\nnot ok 3 c # fails\nok 4 d # SKIP no",
            ),
        ] {
            let outcomes = Outcomes::of(text, format);
            let counts = [Passed, Failed].map(|outcome| outcomes.count(outcome));
            assert_eq!(counts, [1, 2], "{outcomes:?}");
        }
    }

    #[test]
    fn a_test_that_failed_once_has_failed() {
        let outcomes = Outcomes::of("ok a\nnot ok a\nok a\nok b # skip\nok b", Format::Tap);
        assert_eq!(outcomes.failed().collect::<Vec<_>>(), ["a"]);
        assert!(outcomes.has_passed("b"));
    }
}
