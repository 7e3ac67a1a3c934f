//! What a stage has behind it.

use crate::process::{cpu_time, program};
use anyhow::Context as _;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// What a line begins with by which a test says how many states it has tried (`glimmer_seeds`).
const STATES: &str = "GLIMMER_STATES=";

/// Seeds and failures of a stage so far.
pub struct Record {
    name: String,
    /// Output of failed runs.
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    seeds: u64,
    /// States that tests have counted.
    states: u64,
    /// How often all of the stage ran, in units of what continuous integration does.
    rounds: f64,
    failures: Vec<String>,
    begun: Instant,
    /// CPU time of programs that had ended when the stage began.
    cpu_before: Duration,
}

impl Record {
    /// Nothing yet.
    pub fn new(name: String, folder: PathBuf) -> Record {
        let state = State {
            seeds: 0,
            states: 0,
            rounds: 0.0,
            failures: Vec::new(),
            begun: Instant::now(),
            cpu_before: cpu_time(),
        };
        let state = Mutex::new(state);
        Record {
            name,
            folder,
            state,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with it")
    }

    /// The stage's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A seed for the next run.
    pub fn seed(&self) -> u64 {
        // A number of at most 32 bits is easy to type again.
        u64::from(RandomState::new().build_hasher().finish() as u32)
    }

    /// The times begin now: everything is built.
    pub fn begin(&self) {
        let mut state = self.state();
        (state.begun, state.cpu_before) = (Instant::now(), cpu_time());
    }

    /// Adds seeds.
    pub fn count(&self, seeds: u64) {
        self.state().seeds += seeds;
    }

    /// Adds the states that a run says it has tried.
    pub fn count_states_in(&self, said: &str) {
        let counts = said.lines().filter_map(|line| line.strip_prefix(STATES));
        self.state().states += counts.filter_map(|it| it.parse::<u64>().ok()).sum::<u64>();
    }

    /// All of the stage has run once more.
    pub fn count_round(&self) {
        self.state().rounds += 1.0;
    }

    /// The stage has run for this many times what continuous integration gives it.
    pub fn count_rounds(&self, rounds: f64) {
        self.state().rounds += rounds;
    }

    /// Notes a failure: a command that repeats it. Keeps and names its output.
    pub fn failed(&self, repeats: String, log: &str, output: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(log);
        std::fs::write(&path, output).with_context(|| format!("cannot write {path:?}"))?;
        println!("FAILED: {repeats}\n  {}", path.display());
        self.state().failures.push(repeats);
        Ok(())
    }

    /// The stage is over.
    pub fn end(self) -> Summary {
        let state = self.state.into_inner().expect("no thread panics with it");
        Summary {
            core_hours: state.cpu() / 3600.0,
            name: self.name,
            seeds: state.seeds,
            states: state.states,
            rounds: state.rounds,
            failures: state.failures,
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let state = self.state();
        format!(
            "{}: {} seeds{}, {} failures, {:.0} s, {:.0} s of CPU time",
            self.name,
            grouped(state.seeds),
            of_states(state.states),
            state.failures.len(),
            state.begun.elapsed().as_secs_f64(),
            state.cpu(),
        )
    }
}

impl State {
    fn cpu(&self) -> f64 {
        cpu_time().saturating_sub(self.cpu_before).as_secs_f64()
    }
}

/// A stage that is over.
pub struct Summary {
    name: String,
    seeds: u64,
    states: u64,
    rounds: f64,
    /// Commands that repeat them.
    pub failures: Vec<String>,
    core_hours: f64,
}

impl Summary {
    /// Its row in the table of CONTRIBUTING.md.
    fn row(&self, date: &str, commit: &str) -> String {
        let Summary {
            name,
            seeds,
            states,
            rounds: times,
            failures,
            core_hours: hours,
        } = self;
        let seeds = grouped(*seeds) + &of_states(*states);
        let failures = failures.len();
        format!("| `{name}` | {seeds} | {times:.0} | {failures} | {hours:.2} | {date} | {commit} |")
    }
}

/// The table as CONTRIBUTING.md has it.
pub fn table(summaries: &[Summary]) -> anyhow::Result<String> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default();
    let commit = program("git", &["describe", "--always", "--dirty"]).output()?;
    let commit = String::from_utf8_lossy(&commit.stdout).trim().to_owned();
    let mut lines = vec![
        "| stage | seeds | times what CI runs | failures | core hours | date | commit |".to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    lines.extend(summaries.iter().map(|summary| summary.row(date, &commit)));
    Ok(lines.join("\n"))
}

/// What is said of the states that tests have counted, if any has.
fn of_states(states: u64) -> String {
    match states {
        0 => String::new(),
        _ => format!(", of {} states", grouped(states)),
    }
}

/// 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_ran_and_when() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::new("store".into(), folder.path().to_owned());
        record.count(1_234);
        record.count_states_in("GLIMMER_SEED=7\nGLIMMER_STATES=5000\nGLIMMER_STATES=321\n");
        record.count_round();
        record.failed("again".into(), "a.log", b"output").unwrap();
        assert!(
            record
                .line()
                .starts_with("store: 1,234 seeds, of 5,321 states, 1 failures, ")
        );
        let summary = record.end();
        assert_eq!(summary.failures, ["again"]);
        let row = summary.row("2026-01-02", "abc");
        let expected = "| `store` | 1,234, of 5,321 states | 1 | 1 | 0.00 | 2026-01-02 | abc |";
        assert_eq!(row, expected);
        let log = std::fs::read(folder.path().join("a.log")).unwrap();
        assert_eq!(log, b"output");
    }
}
