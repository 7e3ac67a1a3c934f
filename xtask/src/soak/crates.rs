//! Runs tests of crates, each in a process of its own, so that a failure, a crash and a hang belong
//! to one test and one seed.

use super::Budget;
use super::record::Record;
use super::stages::{self, Which};
use crate::lanes;
use crate::process::{cargo, run_until};
use crate::programs::{self, Program};
use anyhow::{Context as _, bail};
use std::io::{Read as _, Seek as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A test that runs this long counts as one that hangs.
const HANGS: Duration = Duration::from_secs(900);
/// A test that has failed this often runs no more.
const FAILURES_MAX: u32 = 5;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(60);

/// One test.
pub struct Test {
    program: Program,
    name: String,
    failures: AtomicU32,
}

/// Builds the programs, and finds their tests whose names contain `name`.
pub fn build(which: Which, name: &str) -> anyhow::Result<Vec<Test>> {
    let mut tests = Vec::new();
    let mut test = cargo(&["test", "--profile=soak"]);
    match which {
        Which::Others => {
            let excluded = stages::named().into_iter();
            let excluded = excluded.flat_map(|name| ["--exclude", name]);
            test.arg("--workspace").args(excluded);
        }
        Which::Seeded(crates) | Which::All(crates) => {
            test.args(crates.iter().flat_map(|name| ["--package", name]));
        }
    }
    for program in programs::build(test)? {
        let names = match which {
            Which::Seeded(_) => program.seeded(name)?,
            Which::All(_) | Which::Others => program.tests(name)?,
        };
        tests.extend(names.into_iter().map(|name| Test {
            program: program.clone(),
            name,
            failures: AtomicU32::new(0),
        }));
    }
    if tests.is_empty() {
        bail!("no test by that name draws a seed");
    }
    for test in &tests {
        println!("{} {}", test.program.selected, test.name);
    }
    Ok(tests)
}

/// Runs every test as often as the budget says. All have had about as many seeds at any time.
pub fn run(tests: &[Test], lanes: usize, budget: Budget, record: &Record) -> anyhow::Result<()> {
    let told = Mutex::new(Instant::now());
    let runs: Vec<usize> = (0..budget.times as usize * tests.len()).collect();
    // A long test of one round keeps nobody from the next round.
    lanes::at_a_time(lanes, &runs, |&run| {
        let test = &tests[run % tests.len()];
        if budget.is_spent() || test.failures.load(Relaxed) >= FAILURES_MAX {
            return Ok(());
        }
        test.run(record)?;
        if (run + 1).is_multiple_of(tests.len()) {
            record.count_round();
            let mut told = told.lock().expect("no lane has ended");
            if told.elapsed() >= PROGRESS {
                let round = (run + 1) / tests.len();
                println!("round {round} of {}: {}", budget.times, record.line());
                *told = Instant::now();
            }
        }
        Ok(())
    })?;
    if budget.is_spent() {
        println!("the time is over");
    }
    Ok(())
}

impl Test {
    fn run(&self, record: &Record) -> anyhow::Result<()> {
        let seed = record.seed();
        let mut output = tempfile::tempfile().context("a file for the output")?;
        let mut command =
            self.program
                .command(&["--exact", &self.name, "--nocapture", "--test-threads=1"]);
        command
            .env("GLIMMER_SEED", seed.to_string())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let status = run_until(&mut command, HANGS)?;
        output.rewind()?;
        let mut said = Vec::new();
        output.read_to_end(&mut said)?;
        record.count(1);
        record.count_states_in(&String::from_utf8_lossy(&said));
        if status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let what = status.map_or("hangs".to_owned(), |status| status.to_string());
        let failures = self.failures.fetch_add(1, Relaxed) + 1;
        let given_up = match failures {
            FAILURES_MAX => "; it runs no more",
            _ => "",
        };
        let repeats = format!(
            "GLIMMER_SEED={seed} cargo test --profile soak {} -- --exact {}",
            self.program.selected, self.name
        );
        let log = format!("{}-{seed}.log", self.name.replace("::", "-"));
        record.failed(format!("{repeats} ({what}{given_up})"), &log, &said)
    }
}
