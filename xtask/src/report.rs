//! What each stage came to: printed as it ends, and as a table at the end.

use crate::lanes::one_per_core;
use crate::process::{self, program};
use anyhow::{Context as _, bail};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// This program. An earlier stage may have replaced its file, so that a path from
/// [`std::env::current_exe`] would lead to nothing.
const ITSELF: &str = "/proc/self/exe";

/// A stage that has ended.
struct Outcome {
    name: String,
    took: Duration,
    /// CPU time of all the programs that it started.
    cpu: Duration,
    /// What was wrong.
    fault: Option<String>,
}

/// The result of each stage. A failed stage does not stop the following ones, so that one run shows
/// everything.
pub struct Report {
    begun: Instant,
    stages: Vec<Outcome>,
}

impl Report {
    /// Nothing yet. The time begins.
    pub fn new() -> Report {
        Report {
            begun: Instant::now(),
            stages: Vec::new(),
        }
    }

    /// Runs one stage, with its output on the terminal.
    pub fn stage(&mut self, name: &str, run: impl FnOnce() -> anyhow::Result<()>) {
        println!("==> {name}");
        let (start, cpu_before) = (Instant::now(), process::cpu_time());
        let outcome = Outcome {
            fault: run().err().map(|error| format!("{error:#}")),
            took: start.elapsed(),
            cpu: process::cpu_time().saturating_sub(cpu_before),
            name: name.to_owned(),
        };
        println!("==> {}\n", outcome.line());
        self.stages.push(outcome);
    }

    /// Runs the stages with these names one per core, each in a process of its own, so that their
    /// outputs stay apart. Prints a line when one ends. The output of one that fails follows in
    /// full; of others it is in a file.
    pub fn side_by_side(&mut self, names: &[String]) {
        let logs = process::target_dir().join("suite");
        println!("the output of each stage: {}/STAGE.log", logs.display());
        let running = Mutex::new(Vec::<String>::new());
        let outcomes = one_per_core(names, |name| {
            running.lock().expect("no panic").push(name.clone());
            let outcome = alone(name, logs.join(format!("{name}.log")));
            let mut running = running.lock().expect("no panic");
            running.retain(|other| other != name);
            let so_far = clock(self.begun.elapsed());
            println!("[{so_far}] {}", outcome.line());
            if !running.is_empty() {
                println!("        running: {}", running.join(", "));
            }
            Ok(outcome)
        });
        self.stages.extend(outcomes.expect("a fault is an outcome"));
    }

    /// Prints the table. Fails if a stage has failed.
    pub fn close(self) -> anyhow::Result<()> {
        println!("\nstage            result   seconds  CPU seconds");
        for Outcome {
            name,
            took,
            cpu,
            fault,
        } in &self.stages
        {
            let result = if fault.is_none() { "passed" } else { "FAILED" };
            let [took, cpu] = [took, cpu].map(Duration::as_secs_f64);
            println!("{name:<16} {result}  {took:>7.0}  {cpu:>11.0}");
        }
        let faults: Vec<_> = self.stages.iter().filter_map(Outcome::fault).collect();
        println!(
            "stages: {} passed, {} failed, in {}",
            self.stages.len() - faults.len(),
            faults.len(),
            clock(self.begun.elapsed())
        );
        for (name, fault) in &faults {
            println!("{name}: {fault}");
        }
        if !faults.is_empty() {
            bail!("{} of {} stages failed", faults.len(), self.stages.len());
        }
        Ok(())
    }
}

impl Outcome {
    fn fault(&self) -> Option<(&str, &str)> {
        Some((&self.name, self.fault.as_ref()?))
    }

    fn line(&self) -> String {
        let [took, cpu] = [self.took, self.cpu].map(|time| time.as_secs_f64());
        let times = format!("{took:.0} s, {cpu:.0} s of CPU time");
        match &self.fault {
            None => format!("{}: passed in {times}", self.name),
            Some(fault) => format!("{}: FAILED after {times}: {fault}", self.name),
        }
    }
}

/// Runs one stage in a process of its own, with its output in a file.
fn alone(name: &str, log: PathBuf) -> Outcome {
    let start = Instant::now();
    let run = || {
        std::fs::create_dir_all(log.parent().expect("it is in a folder"))?;
        let output = std::fs::File::create(&log)?;
        let status = program(ITSELF, &["test", "--only", name])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("cannot start the stage {name}"))?;
        let said = std::fs::read(&log)?;
        anyhow::Ok((
            status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        ))
    };
    let (fault, cpu) = match run() {
        Ok((true, said)) => {
            // What was left out shows also where all is well.
            let is_note = |line: &&str| line.contains("SKIPPED") || line.contains("left out");
            said.lines()
                .filter(is_note)
                .for_each(|line| println!("{line}"));
            (None, cpu(name, &said))
        }
        Ok((false, said)) => {
            println!("{said}");
            (Some(fault(name, &said)), cpu(name, &said))
        }
        Err(error) => (Some(format!("{error:#}")), None),
    };
    Outcome {
        name: name.to_owned(),
        took: start.elapsed(),
        cpu: cpu.unwrap_or_default(),
        fault,
    }
}

/// What the stage says was wrong: the last line that begins with its name, and the indented ones
/// after it.
fn fault(name: &str, said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned());
    let last = lines.iter().rposition(|line| of(line).is_some());
    let Some((mut fault, place)) = last.and_then(|place| Some((of(lines[place])?, place))) else {
        return "see its output above".to_owned();
    };
    let more = lines[place + 1..].iter();
    for line in more.take_while(|line| line.starts_with("  ")) {
        fault += "\n";
        fault += line;
    }
    fault
}

/// The CPU time that the stage says it took: the last column of its row.
fn cpu(name: &str, said: &str) -> Option<Duration> {
    let mut lines = said.lines().rev();
    let row = lines.find(|line| line.split_whitespace().next() == Some(name))?;
    let seconds = row.split_whitespace().last()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stages_fault_and_its_cpu_time_are_found_in_its_output() {
        let said = "==> loom\n==> loom: FAILED after 3 s: no\n\nstage result seconds CPU seconds\n\
             loom             FAILED       33           61\nstages: 0 passed\n\
             loom: one test\n  test a ... FAILED\nxtask: 1 of 1\n";
        assert_eq!(fault("loom", said), "one test\n  test a ... FAILED");
        assert_eq!(cpu("loom", said), Some(Duration::from_secs(61)));
        assert_eq!(fault("miri", said), "see its output above");
        assert_eq!(cpu("miri", said), None);
    }

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_secs(754)), "12:34");
    }
}
