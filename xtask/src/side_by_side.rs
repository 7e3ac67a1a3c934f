//! Stages that run two at a time, each in a process of its own, so that their outputs stay apart.

use crate::process::program;
use anyhow::Context as _;
use std::io::{Read as _, Seek as _};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// A stage's name, how long it took, and what was wrong.
pub type Outcome = (String, Duration, Option<String>);

/// How many run at a time. A machine with more cores has them idle; one with fewer is not fit for
/// the suite.
const LANES: usize = 2;

/// Runs the stages with these names. Each one's output is printed when it ends.
pub fn run(names: Vec<String>) -> Vec<Outcome> {
    let waiting = Mutex::new(names.into_iter());
    let next = || waiting.lock().expect("no stage panics").next();
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let start = Instant::now();
                    let fault = stage(&name).err().map(|error| format!("{error:#}"));
                    let mut done = done.lock().expect("no stage panics");
                    done.push((name, start.elapsed(), fault));
                }
            });
        }
    });
    done.into_inner().expect("no stage panics")
}

/// Runs one stage and prints its output in one piece.
fn stage(name: &str) -> anyhow::Result<()> {
    let itself = std::env::current_exe().context("where is this program?")?;
    let mut output = tempfile::tempfile().context("a file for the output")?;
    let status = program(itself, &["test", "--only", name])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()
        .with_context(|| format!("cannot start the stage {name}"))?;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    println!("{text}");
    anyhow::ensure!(status.success(), "{}", fault(name, &text));
    Ok(())
}

/// What the stage says was wrong.
fn fault<'a>(name: &str, output: &'a str) -> &'a str {
    let lines = output.lines().rev();
    let mut faults = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    faults.next().unwrap_or("see its output above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_of_a_stage_is_found_in_its_output() {
        let output = "==> loom\n==> loom: FAILED after 3 s: no\nloom: one test\nError: 1 of 1\n";
        assert_eq!(fault("loom", output), "one test");
        assert_eq!(fault("miri", output), "see its output above");
    }
}
