//! Stages that run one per core, each in a process of its own, so that their outputs stay apart.

use crate::lanes::one_per_core;
use crate::process::program;
use anyhow::Context as _;
use std::io::{Read as _, Seek as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A stage's name, how long it took, and what was wrong.
pub type Outcome = (String, Duration, Option<String>);

/// Runs the stages with these names. Each one's output is printed when it ends.
pub fn run(names: &[String]) -> anyhow::Result<Vec<Outcome>> {
    one_per_core(names, |name| {
        let start = Instant::now();
        let fault = stage(name).err().map(|error| format!("{error:#}"));
        Ok((name.clone(), start.elapsed(), fault))
    })
}

/// This program. An earlier stage may have replaced its file, so that a path from
/// [`std::env::current_exe`] would lead to nothing.
const ITSELF: &str = "/proc/self/exe";

/// Runs one stage and prints its output in one piece.
fn stage(name: &str) -> anyhow::Result<()> {
    let mut output = tempfile::tempfile().context("a file for the output")?;
    let status = program(ITSELF, &["test", "--only", name])
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
