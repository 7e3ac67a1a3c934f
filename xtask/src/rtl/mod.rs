//! Checks the circuit in `accel/rtl/`: lint, synthesizability, proofs, simulation with coverage,
//! and a real server behind it; and its size and clock.
//!
//! | file | idea |
//! | --- | --- |
//! | `needs` | the programs that this takes |
//! | `sources` | the circuit's files and tops |
//! | `lint` | Verilator's warnings, and Yosys as a second reader |
//! | `proofs` | the table of proofs and planted bugs |
//! | `formal` | proves each, and requires that each bug is found |
//! | `coverage` | what the simulation tests have not reached |
//! | `synthesis/` | LUTs, flip-flops, block RAMs, clock |

mod coverage;
mod formal;
mod lint;
mod needs;
mod proofs;
mod sources;
pub mod synthesis;

use crate::passed::{Check, Inputs};
use crate::programs::{self, Program};
use crate::{process, tools};
use anyhow::bail;
use clap::ValueEnum;
use std::time::Instant;

/// The crates whose tests need the circuit's tools: its simulation, and that behind a server.
pub const PACKAGES: [&str; 2] = ["glimmer-accel-rtl", "glimmer-cosim"];

/// Which checks of the circuit run.
#[derive(clap::Args)]
pub struct Circuit {
    /// Run only this check (may be given several times)
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// In `formal`: only proofs and bugs whose name contains this
    #[arg(long)]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Verilator's warnings, all of them, and Yosys as a second reader
    Lint,
    /// Proofs by solver, and planted bugs that must break them
    Formal,
    /// The tests of crates/accel-rtl, with planted bugs, and the coverage that they reach
    Simulation,
    /// The tests of crates/cosim: the simulated circuit between real clients and a real server
    Cosimulation,
}

/// What the checks of the circuit's sources depend on: these, and how they are checked.
const SOURCES: &[&str] = &[
    sources::RTL,
    "accel/cover",
    "accel/formal",
    "accel/waivers.vlt",
    "xtask/src/rtl",
];

/// A check that is not worth repeating as long as nothing changes: many more seeds of the
/// simulation's traffic are for `cargo xtask soak`. The co-simulation has a whole server, which
/// changes.
fn unchanging(part: Part) -> anyhow::Result<Option<Check>> {
    let (name, package) = match part {
        Part::Lint => ("lint of the circuit", None),
        Part::Formal => ("proofs of the circuit", None),
        Part::Simulation => ("simulation of the circuit", Some(PACKAGES[0])),
        Part::Cosimulation => return Ok(None),
    };
    let inputs = Inputs {
        paths: SOURCES,
        package,
        tests: &["tests/"],
    };
    Check::new(name, inputs).map(Some)
}

impl Circuit {
    /// Runs them. Builds the circuit's own crates alone.
    pub fn run(&self) -> anyhow::Result<()> {
        let build =
            |package: &str| programs::build(process::cargo(&["test", "--package", package]));
        self.check(build, false)
    }

    /// Runs them, or only what may come out otherwise than it did.
    fn check(
        &self,
        build: impl Fn(&str) -> anyhow::Result<Vec<Program>>,
        is_changed_only: bool,
    ) -> anyhow::Result<()> {
        if !tools::install(needs::TOOLS) {
            if std::env::var("CI").is_ok_and(|ci| ci == "true") {
                bail!("tools for the circuit are missing");
            }
            println!("circuit: SKIPPED, as tools are missing");
            return Ok(());
        }
        let parts = [
            Part::Lint,
            Part::Formal,
            Part::Simulation,
            Part::Cosimulation,
        ];
        for part in parts {
            if !self.only.is_empty() && !self.only.contains(&part) {
                continue;
            }
            let begun = Instant::now();
            let check = unchanging(part)?;
            if is_changed_only && check.as_ref().is_some_and(Check::is_left_out) {
                continue;
            }
            match part {
                Part::Lint => lint::check()?,
                Part::Formal => formal::check(self.name.as_deref())?,
                Part::Simulation => coverage::check(&build(PACKAGES[0])?)?,
                Part::Cosimulation => programs::run(&build(PACKAGES[1])?, &[])?,
            }
            if let Some(check) = check
                && self.name.is_none()
            {
                check.note()?;
            }
            println!("{part:?}: {:.0} s\n", begun.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// Runs all of them, with programs that are built together with those of other stages.
pub fn check() -> anyhow::Result<()> {
    let circuit = Circuit {
        only: Vec::new(),
        name: None,
    };
    let build = |package: &str| {
        let mut programs = programs::of_workspace()?;
        programs.retain(|program| program.package == package);
        Ok(programs)
    };
    circuit.check(build, true)
}
