//! The simulator, and the proof that it would notice: bugs that are planted in the code one at a
//! time.
//!
//! `crates/sim/planted.txt` has one line for each: `name<TAB>first seed<TAB>what is wrong`. The
//! code has the bug if it is built with debug assertions, as for tests, and `GLIMMER_WEAKEN` names
//! it. The simulator has to find each within [`FOUND_WITHIN_S`] seconds. It looks from the first
//! seed on: a seed that once showed the bug. When the code changes, other seeds show it, which may
//! take longer to come by; then a new one can be noted.

use crate::passed::{Check, Inputs};
use crate::{process, programs};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// For how long the test suite simulates.
pub const SUITE_SECONDS: f64 = 45.0;
/// Within this time a planted bug has to be found.
const FOUND_WITHIN_S: f64 = 180.0;

/// What is simulated.
#[derive(clap::Args)]
pub struct Simulation {
    /// Begin no further seed after this many seconds
    #[arg(long, default_value_t = SUITE_SECONDS)]
    seconds: f64,
    /// The same in hours
    #[arg(long)]
    hours: Option<f64>,
    /// The first seed (default: the time)
    #[arg(long)]
    seed: Option<u64>,
    /// Run this seed alone, and print its history if it fails
    #[arg(long)]
    replay: Option<u64>,
    /// Pass over seeds whose server has no memory file
    #[arg(long)]
    memory_files: bool,
    /// Plant one bug at a time, and require that each is found
    #[arg(long)]
    weakened: bool,
    /// With --weakened: only bugs whose name contains this
    #[arg(long, requires = "weakened")]
    name: Option<String>,
}

impl Simulation {
    /// Runs it.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.weakened {
            process::run(&mut process::cargo(&["build", "-p", "glimmer-sim"]))?;
            return plant(self.name.as_deref());
        }
        let seconds = self.hours.map_or(self.seconds, |hours| hours * 3600.0);
        let mut command = process::cargo(&["run", "--quiet", "-p", "glimmer-sim", "--"]);
        match (self.replay, self.seed) {
            (Some(seed), _) => command.args(["--replay", &seed.to_string()]),
            (None, Some(seed)) => command.args(["--seed", &seed.to_string()]),
            (None, None) => &mut command,
        };
        if self.replay.is_none() {
            command.args(["--seconds", &seconds.to_string()]);
            command.args(self.memory_files.then_some("--memory-files"));
        }
        process::run(&mut command)
    }
}

/// Simulates other seeds each time, for as long as the test suite does.
pub fn check() -> anyhow::Result<()> {
    // Its program is built together with those of other stages.
    programs::of_workspace()?;
    let seconds = SUITE_SECONDS.to_string();
    process::run(Command::new(built()).args(["--seconds", &seconds]))
}

/// Plants each bug, and requires that a seed fails in time, unless all were found as everything is
/// now.
pub fn check_planted() -> anyhow::Result<()> {
    if unchanging()?.is_left_out() {
        return Ok(());
    }
    programs::of_workspace()?;
    plant(None)
}

/// The check of all planted bugs.
fn unchanging() -> anyhow::Result<Check> {
    let inputs = Inputs {
        paths: &["xtask/src/sim.rs"],
        package: Some("glimmer-sim"),
        tests: &[],
    };
    Check::new("bugs planted for the simulator", inputs)
}

/// The simulator's program.
fn built() -> PathBuf {
    process::target_dir().join("debug/glimmer-sim")
}

/// A planted bug.
struct Planted {
    name: String,
    first_seed: u64,
    what: String,
}

fn planted() -> anyhow::Result<Vec<Planted>> {
    let file = "crates/sim/planted.txt";
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            let [name, first_seed, what] = parts[..] else {
                bail!("{file}: {line:?}: a name, a seed and what is wrong, with tabs between them");
            };
            Ok(Planted {
                name: name.into(),
                first_seed: first_seed
                    .parse()
                    .with_context(|| format!("{file}: {line:?}"))?,
                what: what.trim().into(),
            })
        })
        .collect()
}

/// Plants the bugs whose names contain this, one at a time, and requires that a seed fails in time.
fn plant(containing: Option<&str>) -> anyhow::Result<()> {
    let check = unchanging()?;
    let mut bugs = planted()?;
    bugs.retain(|bug| containing.is_none_or(|part| bug.name.contains(part)));
    if bugs.is_empty() {
        bail!("no planted bug by that name: see crates/sim/planted.txt");
    }
    let program = built();
    // The same program finds nothing where nothing is planted.
    process::run(Command::new(&program).args(["--seed", "1", "--seconds", "5"]))?;
    println!("{:>8}  {:<28} what is wrong", "seconds", "planted bug");
    let mut missed = Vec::new();
    for bug in &bugs {
        let begun = Instant::now();
        let output = Command::new(&program)
            .env("GLIMMER_WEAKEN", &bug.name)
            .args(["--no-shrink", "--seed", &bug.first_seed.to_string()])
            .args(["--seconds", &FOUND_WITHIN_S.to_string()])
            .stdin(Stdio::null())
            .output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_found = !output.status.success();
        let seconds = match is_found {
            true => format!("{:.1}", begun.elapsed().as_secs_f64()),
            false => "MISSED".into(),
        };
        println!("{seconds:>8}  {:<28} {}", bug.name, bug.what);
        let panicked = String::from_utf8_lossy(&output.stderr).into_owned();
        let reasons = told.lines().chain(panicked.lines());
        let mut reasons = reasons.filter(|line| {
            !line.starts_with("sim: from") && (line.starts_with("sim: ") || line.contains("panic"))
        });
        if let Some(reason) = reasons.nth(1).filter(|_| is_found) {
            println!("          {reason}");
        }
        if !is_found {
            missed.push(&*bug.name);
        }
    }
    println!(
        "planted: {} found, {} missed",
        bugs.len() - missed.len(),
        missed.len()
    );
    if !missed.is_empty() {
        bail!("not found: {}", missed.join(", "));
    }
    match containing {
        Some(_) => Ok(()),
        None => check.note(),
    }
}
