//! Proves what the table says, and requires that each planted bug breaks its proof.
//!
//! Yosys makes a transition system of a module with its properties, and z3 looks for a
//! counterexample. A proof by induction has two parts: no counterexample within its steps after
//! power-up, and none that begins in any state in which properties and invariants held for as many
//! steps. Planted bugs are looked for after power-up alone and without the invariants, so what is
//! found is a property that fails in a run that can happen.

use super::proofs::{self, Bug, Proof};
use super::sources;
use crate::lanes;
use crate::process::{program, run, target_dir};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A solver that runs this long counts as not having answered. On a quiet machine each takes less
/// than 20 seconds; other stages of the test suite run at the same time.
const LIMIT_S: u32 = 180;

/// Proves everything and plants every bug.
pub fn check(containing: Option<&str>) -> anyhow::Result<()> {
    let (proofs, bugs) = proofs::table()?;
    let mut tasks = Vec::new();
    for proof in &proofs {
        tasks.push(Task { proof, bug: None });
    }
    for bug in &bugs {
        let proof = proofs.iter().find(|proof| proof.name == bug.proof);
        let proof = proof.context("the table is checked")?;
        tasks.push(Task {
            proof,
            bug: Some(bug),
        });
    }
    tasks.retain(|task| containing.is_none_or(|part| task.name().contains(part)));
    if tasks.is_empty() {
        bail!("no proof or bug by that name");
    }
    let files = sources::files()?;
    let folder = target_dir().join("rtl/formal");
    std::fs::create_dir_all(&folder)?;
    let results = lanes::one_per_core(&tasks, |task| {
        let begun = Instant::now();
        let verdict = task.run(&files, &folder)?;
        Ok((verdict, begun.elapsed().as_secs_f64()))
    })?;
    println!(
        "{:<10} {:>7}  {:<26} what",
        "verdict", "seconds", "proof or bug"
    );
    let mut faults = Vec::new();
    for (task, (verdict, seconds)) in tasks.iter().zip(&results) {
        let (is_good, word) = match (verdict, task.bug) {
            (Verdict::Holds, None) => (true, "proved"),
            (Verdict::Fails(_), None) => (false, "FAILS"),
            (Verdict::Holds, Some(_)) => (false, "MISSED"),
            (Verdict::Fails(_), Some(_)) => (true, "found"),
            (Verdict::Silent, _) => (false, "TIMED OUT"),
        };
        println!(
            "{word:<10} {seconds:>7.1}  {:<26} {}",
            task.name(),
            task.what()
        );
        if let (Verdict::Fails(reason), false) = (verdict, is_good) {
            println!("{reason}");
        }
        if !is_good {
            faults.push(task.name());
        }
    }
    println!(
        "formal: {} passed, {} failed",
        results.len() - faults.len(),
        faults.len()
    );
    if !faults.is_empty() {
        bail!("{}", faults.join(", "));
    }
    Ok(())
}

/// One run: a proof, or a bug that must break it.
struct Task<'a> {
    proof: &'a Proof,
    bug: Option<&'a Bug>,
}

enum Verdict {
    Holds,
    /// A property fails; what the solver's driver printed.
    Fails(String),
    /// There was no answer in time.
    Silent,
}

impl Task<'_> {
    fn name(&self) -> &str {
        self.bug.map_or(&*self.proof.name, |bug| {
            bug.define.trim_start_matches("BUG_")
        })
    }

    fn what(&self) -> &str {
        self.bug.map_or(&self.proof.what, |bug| &bug.what)
    }

    fn run(&self, files: &[PathBuf], folder: &Path) -> anyhow::Result<Verdict> {
        let system = folder.join(format!("{}-{}.smt2", self.proof.name, self.name()));
        run(&mut program(
            "yosys",
            &["-q", "-p", &self.script(files, &system)],
        ))?;
        let steps = self.bug.map_or(self.proof.steps, |bug| bug.steps);
        let from_reset = solve(&system, steps, false)?;
        if self.bug.is_some() || !self.proof.is_induction {
            return Ok(from_reset);
        }
        match from_reset {
            Verdict::Holds => solve(&system, steps, true),
            other => Ok(other),
        }
    }

    /// Outputs that no property reads are removed, so that the solver does not see their logic.
    fn script(&self, files: &[PathBuf], system: &Path) -> String {
        let Proof {
            module, parameters, ..
        } = self.proof;
        let defines = match self.bug {
            Some(bug) => format!("-D{}", bug.define),
            None => "-DFORMAL_INVARIANTS".to_owned(),
        };
        let mut parameter = String::new();
        for (name, value) in parameters {
            parameter += &format!("-set {name} {value} ");
        }
        if !parameter.is_empty() {
            parameter = format!("chparam {parameter} {module};");
        }
        format!(
            "read_verilog -formal -sv -Iaccel/formal -DFORMAL_{} {defines} {}; {parameter} \
             prep -top {module}; flatten; memory_map; delete -output o:*; opt_clean -purge; \
             async2sync; opt -fast; opt_clean -purge; dffunmap; write_smt2 -wires {}",
            module.to_uppercase(),
            sources::words(files),
            system.display()
        )
    }
}

fn solve(system: &Path, steps: u32, induction: bool) -> anyhow::Result<Verdict> {
    let mut command = program("timeout", &[&LIMIT_S.to_string(), "yosys-smtbmc"]);
    command.args([
        "-s",
        "z3",
        "--unroll",
        "--noprogress",
        "-t",
        &steps.to_string(),
    ]);
    if induction {
        command.arg("-i");
    }
    let output = command
        .arg(system)
        .output()
        .context("cannot start timeout")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(match output.status.code() {
        Some(0) => Verdict::Holds,
        Some(124) => Verdict::Silent,
        // A solver that cannot start has refuted nothing.
        Some(1) if said.contains("Assert failed") => {
            let lines = said.lines().filter(|line| line.contains("Assert failed"));
            Verdict::Fails(lines.collect::<Vec<_>>().join("\n"))
        }
        _ => bail!("{command:?}: {}\n{said}", output.status),
    })
}
