//! Counts how often each test has run and failed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// How often one test has run and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    runs: u32,
    failures: u32,
}

/// The results so far. The output of failed runs is kept in a folder.
pub struct Tally {
    tests: BTreeMap<String, Count>,
    logs: PathBuf,
}

impl Tally {
    /// An empty tally. Creates the folder if it does not exist.
    pub fn new(logs: &Path) -> anyhow::Result<Tally> {
        fs::create_dir_all(logs)?;
        Ok(Tally {
            tests: BTreeMap::new(),
            logs: logs.to_owned(),
        })
    }

    /// Adds the results of a program with Rust's test harness.
    pub fn libtest(&mut self, round: u32, program: &str, output: &Output) -> anyhow::Result<()> {
        let text = String::from_utf8_lossy(&output.stdout);
        let results = text.lines().filter_map(|line| {
            let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
            Some((format!("{program} {name}"), result))
        });
        let results: Vec<_> = results
            .filter(|(_, result)| ["ok", "FAILED"].contains(result))
            .map(|(name, result)| (name, result == "ok"))
            .collect();
        self.take(round, program, results, output)
    }

    /// Adds the results of `pytest -rA`.
    pub fn pytest(&mut self, round: u32, output: &Output) -> anyhow::Result<()> {
        let text = String::from_utf8_lossy(&output.stdout);
        let results = text.lines().filter_map(|line| {
            let (result, rest) = line.split_once(' ')?;
            let name = rest.split(" - ").next()?.to_owned();
            match result {
                "PASSED" => Some((name, true)),
                "FAILED" | "ERROR" => Some((name, false)),
                _ => None,
            }
        });
        let results: Vec<_> = results.collect();
        self.take(round, "clients", results, output)
    }

    fn take(
        &mut self,
        round: u32,
        program: &str,
        mut results: Vec<(String, bool)>,
        output: &Output,
    ) -> anyhow::Result<()> {
        if !output.status.success() && results.iter().all(|&(_, passed)| passed) {
            // The program crashed or hung before it could name the test.
            results.push((format!("{program} (as a whole)"), false));
        }
        for (name, passed) in &results {
            let count = self.tests.entry(name.clone()).or_default();
            count.runs += 1;
            count.failures += u32::from(!passed);
        }
        if results.iter().any(|&(_, passed)| !passed) {
            let log = self
                .logs
                .join(format!("{round}-{}.log", program.replace(' ', "-")));
            fs::write(log, [&output.stdout[..], &output.stderr].concat())?;
        }
        Ok(())
    }

    /// The number of failed runs over all tests.
    pub fn failures(&self) -> u32 {
        self.tests.values().map(|count| count.failures).sum()
    }

    /// Prints a line for each test that has failed.
    pub fn print_failures(&self) {
        for (name, count) in self.tests.iter().filter(|(_, count)| count.failures > 0) {
            println!(
                "{:>5} of {:>5} runs failed: {name}",
                count.failures, count.runs
            );
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: u32 = self.tests.values().map(|count| count.runs).sum();
        let tests = self.tests.len();
        write!(
            f,
            "{tests} tests, {runs} runs, {} failures",
            self.failures()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn output(code: i32, stdout: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: Vec::new(),
        }
    }

    fn tally() -> Tally {
        let folder = format!("glimmer-soak-{}", std::process::id());
        Tally::new(&std::env::temp_dir().join(folder)).unwrap()
    }

    #[test]
    fn runs_and_failures_are_counted_by_test() {
        let mut tally = tally();
        let passes = "running 2 tests\ntest a::b ... ok\ntest c ... ok\n\ntest result: ok.";
        let fails = "test a::b ... ok\ntest c ... FAILED\n";
        tally
            .libtest(1, "store tables", &output(0, passes))
            .unwrap();
        tally
            .libtest(2, "store tables", &output(101, fails))
            .unwrap();
        let pytest =
            "..F\nPASSED x.py::one\nFAILED x.py::two - assert 1 == 2\nSKIPPED [1] x.py:3: no\n";
        tally.pytest(1, &output(1, pytest)).unwrap();
        let count = |runs, failures| Count { runs, failures };
        assert_eq!(tally.tests["store tables a::b"], count(2, 0));
        assert_eq!(tally.tests["store tables c"], count(2, 1));
        assert_eq!(tally.tests["x.py::one"], count(1, 0));
        assert_eq!(tally.tests["x.py::two"], count(1, 1));
        assert_eq!((tally.tests.len(), tally.failures()), (4, 2));
        fs::remove_dir_all(&tally.logs).unwrap();
    }

    #[test]
    fn a_program_that_crashes_is_a_failure() {
        let mut tally = tally();
        tally
            .libtest(1, "node lifecycle", &output(134, "test a ... "))
            .unwrap();
        assert_eq!(tally.failures(), 1);
    }
}
