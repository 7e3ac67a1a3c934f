//! The stages of the test suite and of continuous integration, in order, with times and a summary.

use crate::side_by_side::{self, Outcome};
use crate::tools::{self, Tool};
use crate::{clients, floors, fuzz, instructions, loom, miri, packet_program, process, rtl, sim};
use anyhow::bail;
use clap::ValueEnum;
use std::time::Instant;

/// Seconds per fuzz target in the test suite. `cargo xtask fuzz` takes longer.
pub const FUZZ_SECONDS: u32 = 5;

/// What tests of packet programs need. They say it themselves if it is missing.
const NAMESPACES: &[Tool] = &[Tool {
    probe: &["ip", "-V"],
    packages: &["iproute2"],
    without: "tests of packet programs, in network namespaces",
}];

/// One part of the test suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// `cargo test` over the workspace: unit, property, oracle, stress and command tests
    Crates,
    /// The model checker on the code that threads share
    Loom,
    /// The model checker again, with one fence or recheck removed at a time: each must be noticed
    Weakened,
    /// The oracles and races of tiny tables under Miri
    Miri,
    /// Whole servers and clients in virtual time, other seeds each time
    Sim,
    /// The simulator with one bug planted at a time: it must find each
    Planted,
    /// Instructions per request, which have budgets
    Instructions,
    /// The fuzz targets, a few seconds each
    Fuzz,
    /// The accelerator's circuit: lint, proofs, simulation and its coverage, and a server behind it
    Circuit,
    /// Real memcached clients against the running server
    Clients,
}

impl Stage {
    /// Stages that want the machine for themselves: they wait for servers.
    const ALONE: [Stage; 3] = [Stage::Crates, Stage::Circuit, Stage::Clients];

    /// Stages that compute, and use one core for most of their time. They run one per core, the
    /// longest first.
    const SIDE_BY_SIDE: [Stage; 7] = [
        Stage::Instructions,
        Stage::Loom,
        Stage::Miri,
        Stage::Fuzz,
        Stage::Planted,
        Stage::Sim,
        Stage::Weakened,
    ];

    /// Its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.expect("no stage is hidden").get_name().to_owned()
    }

    fn run(self) -> anyhow::Result<()> {
        match self {
            Stage::Crates => {
                tools::install(NAMESPACES);
                process::run_tests(&mut process::cargo(&[
                    "test",
                    "--workspace",
                    // The stage of the circuit runs these: it installs what they need.
                    "--exclude",
                    "glimmer-accel-rtl",
                    "--exclude",
                    "glimmer-cosim",
                    "--no-fail-fast",
                ]))
            }
            Stage::Loom => loom::check(),
            Stage::Weakened => loom::check_weakened(None),
            Stage::Miri => miri::check(&miri::Seeds::default()),
            Stage::Sim => sim::check(),
            Stage::Planted => sim::check_planted(None),
            Stage::Instructions => instructions::check(),
            Stage::Fuzz => fuzz::check(FUZZ_SECONDS, &[]),
            Stage::Circuit => rtl::check(),
            Stage::Clients => clients::check(),
        }
    }
}

/// Runs the whole suite, or only the given stages, one after the other.
pub fn test(only: &[Stage]) -> anyhow::Result<()> {
    let mut report = Report::default();
    if only.is_empty() {
        report.whole_suite();
    } else {
        report.one_by_one(only);
    }
    report.close()
}

/// Runs every check that a change must pass.
pub fn ci() -> anyhow::Result<()> {
    let mut report = Report::default();
    report.stage("format", || {
        process::run(&mut process::cargo(&["fmt", "--all", "--check"]))
    });
    report.stage("floors", floors::check);
    report.stage("packet program", || packet_program::build(true));
    report.stage("clippy", || {
        process::run(&mut process::cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--keep-going",
            "--",
            "-D",
            "warnings",
        ]))
    });
    report.stage("documentation", || {
        process::run(
            process::cargo(&[
                "doc",
                "--workspace",
                "--no-deps",
                "--keep-going",
                "--document-private-items",
            ])
            .env("RUSTDOCFLAGS", "-D warnings"),
        )
    });
    report.whole_suite();
    report.close()
}

/// The result of each stage. A failed stage does not stop the following ones, so that one run shows
/// everything.
#[derive(Default)]
struct Report {
    stages: Vec<Outcome>,
}

impl Report {
    fn whole_suite(&mut self) {
        self.one_by_one(&Stage::ALONE);
        self.side_by_side(&Stage::SIDE_BY_SIDE);
    }

    fn one_by_one(&mut self, stages: &[Stage]) {
        for &stage in stages {
            self.stage(&stage.name(), || stage.run());
        }
    }

    fn side_by_side(&mut self, stages: &[Stage]) {
        let names: Vec<String> = stages.iter().map(|stage| stage.name()).collect();
        println!(
            "==> {}: one per core; the output of each follows when it ends\n",
            names.join(", ")
        );
        let outcomes = side_by_side::run(&names);
        self.stages.extend(outcomes.expect("a fault is an outcome"));
    }

    fn stage(&mut self, name: &str, run: impl FnOnce() -> anyhow::Result<()>) {
        println!("==> {name}");
        let start = Instant::now();
        let fault = run().err().map(|error| format!("{error:#}"));
        let took = start.elapsed();
        match &fault {
            None => println!("==> {name}: passed in {:.0} s\n", took.as_secs_f64()),
            Some(fault) => println!(
                "==> {name}: FAILED after {:.0} s: {fault}\n",
                took.as_secs_f64()
            ),
        }
        self.stages.push((name.to_owned(), took, fault));
    }

    fn close(self) -> anyhow::Result<()> {
        println!("stage            result   seconds");
        for (name, took, fault) in &self.stages {
            let result = if fault.is_none() { "passed" } else { "FAILED" };
            println!("{name:<16} {result}  {:>7.0}", took.as_secs_f64());
        }
        let failed = self
            .stages
            .iter()
            .filter(|(_, _, fault)| fault.is_some())
            .count();
        println!(
            "stages: {} passed, {failed} failed",
            self.stages.len() - failed
        );
        for (name, _, fault) in &self.stages {
            if let Some(fault) = fault {
                println!("{name}: {fault}");
            }
        }
        if failed > 0 {
            bail!("{failed} of {} stages failed", self.stages.len());
        }
        Ok(())
    }
}
