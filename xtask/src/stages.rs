//! The stages of the test suite and of continuous integration.

use crate::passed::Which;
use crate::report::Report;
use crate::tools::{self, Tool};
use crate::{
    clients, deny, documents, dpdk, floors, fuzz, instructions, loom, miri, package,
    packet_program, process, programs, rtl, sim,
};
use clap::ValueEnum;
use std::process::Command;

/// Seconds per fuzz target in the test suite. `cargo xtask fuzz` takes longer.
pub const FUZZ_SECONDS: u32 = 4;

/// Minutes of the whole suite, and of continuous integration, on two cores with nothing else to do,
/// from a clean clone.
const SUITE_MINUTES: u32 = 25;
const CI_MINUTES: u32 = 28;

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
    /// The transport over ports that DPDK drives, if it can be installed
    Dpdk,
    /// Lints of all crates; continuous integration alone has it
    Clippy,
    /// The documentation of all crates, and the commands that documents show; continuous
    /// integration alone has it
    Documentation,
}

/// Stages of the suite. They run one per core, and begin in this order: the longest first, and
/// those that need the tests of all crates when these are built. Stages that wait for servers leave
/// their core to others.
const SUITE: [Stage; 11] = [
    Stage::Instructions,
    Stage::Crates,
    Stage::Loom,
    Stage::Miri,
    Stage::Fuzz,
    Stage::Clients,
    Stage::Circuit,
    Stage::Planted,
    Stage::Sim,
    Stage::Dpdk,
    Stage::Weakened,
];

impl Stage {
    /// Its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.expect("no stage is hidden").get_name().to_owned()
    }

    fn run(self) -> anyhow::Result<()> {
        match self {
            Stage::Crates => crates(),
            Stage::Loom => loom::check(Which::Changed),
            Stage::Weakened => loom::check_weakened(Which::Changed),
            Stage::Miri => miri::check_stage(),
            Stage::Sim => sim::check(),
            Stage::Planted => sim::check_planted(),
            Stage::Instructions => instructions::check(Which::Changed),
            Stage::Fuzz => fuzz::check(FUZZ_SECONDS, &[]),
            Stage::Circuit => rtl::check(),
            Stage::Clients => clients::check(),
            Stage::Dpdk => dpdk::check(),
            Stage::Clippy => clippy(),
            Stage::Documentation => documentation(),
        }
    }
}

/// Runs the whole suite, or only the given stages, one after the other.
pub fn test(only: &[Stage]) -> anyhow::Result<()> {
    let mut report = Report::new();
    if only.is_empty() {
        println!(
            "test: {} stages, about {SUITE_MINUTES} minutes on two cores from a clean clone",
            SUITE.len()
        );
        report.side_by_side(&names(SUITE));
    }
    for &stage in only {
        report.stage(&stage.name(), || stage.run());
    }
    report.close()
}

/// Runs every check that a change must pass.
pub fn ci() -> anyhow::Result<()> {
    println!("ci: about {CI_MINUTES} minutes on two cores from a clean clone");
    let mut report = Report::new();
    report.stage("format", || {
        process::run(&mut process::cargo(&["fmt", "--all", "--check"]))
    });
    report.stage("floors", floors::check);
    report.stage("dependencies", deny::check);
    report.stage("packet program", || packet_program::build(true));
    // Lints are known early. The documentation uses all cores, also where no other stage is left.
    let first = [Stage::Clippy].into_iter();
    let stages = first.chain(SUITE).chain([Stage::Documentation]);
    report.side_by_side(&names(stages));
    report.close()
}

fn names(stages: impl IntoIterator<Item = Stage>) -> Vec<String> {
    stages.into_iter().map(Stage::name).collect()
}

/// The tests of all crates, except those of the circuit: its stage installs what they need.
fn crates() -> anyhow::Result<()> {
    tools::install(NAMESPACES);
    let mut programs = programs::of_workspace()?;
    programs.retain(|program| !rtl::PACKAGES.contains(&&*program.package));
    // What is built for the tests has the server, too.
    let tests = programs::run(&programs, &[("GLIMMER_SERVER_BUILT", "1")]);
    let examples = process::run_tests(&mut process::cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
    ]));
    tests.and(examples)
}

fn clippy() -> anyhow::Result<()> {
    process::run(&mut process::cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Has cargo use the crates that [`clippy`] has checked, as `cargo clippy` itself names them. It
/// would otherwise check each of ours again before it documents those that depend on it. Where
/// Clippy is missing, it does.
fn as_clippy_checked(cargo: &mut Command) -> anyhow::Result<&mut Command> {
    let driver = process::sysroot()?.join("bin/clippy-driver");
    if driver.exists() {
        let arguments = ["-D", "warnings"].map(|argument| format!("{argument}__CLIPPY_HACKERY__"));
        cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
        cargo.env("CLIPPY_ARGS", arguments.concat());
    }
    Ok(cargo)
}

fn documentation() -> anyhow::Result<()> {
    let mut pages = process::cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--keep-going",
        "--document-private-items",
    ]);
    // These pages have private items, so links to them lead somewhere.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    let pages = process::run(as_clippy_checked(&mut pages)?.env("RUSTDOCFLAGS", flags));
    programs::of_workspace()?;
    pages.and(documents::check()).and(package::small::check())
}
