//! Runs a program under callgrind.

use crate::process::{cargo, program, run, target_dir};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TOOLS: &[Tool] = &[Tool {
    probe: &["valgrind"],
    packages: &["valgrind"],
    without: "counting instructions",
}];

/// Whether callgrind is installed, now that it was tried.
pub fn is_here() -> bool {
    tools::install(TOOLS)
}

/// The programs that are counted. One build makes them all, so each crate is compiled once, and its
/// features do not depend on which program is counted.
const PROGRAMS: &[&str] = &[
    "--package=glimmer-engine",
    "--example=requests",
    "--package=glimmer",
    "--bin=glimmer",
    "--package=glimmer-client",
    "--example=reads",
    "--package=glimmer-microbench",
    "--example=operations",
    // Tables by others, and what drives them.
    "--no-default-features",
];

/// Has callgrind forget what it has counted before the programs say so.
pub const FROM: &str = "--zero-before=*count_from_here";

/// Where the programs are that are counted.
pub fn folder() -> PathBuf {
    target_dir().join("callgrind").join(PROFILE)
}

/// A profile of the root `Cargo.toml`.
const PROFILE: &str = "counted";

/// Builds what is counted so that valgrind can run it: system calls go through the C library. The
/// server is compiled for one worker and the default table alone. Returns the path of one of these
/// programs.
pub fn build(file: &str) -> anyhow::Result<PathBuf> {
    run(cargo(&["build", "--profile", PROFILE])
        .args(PROGRAMS)
        .env("RUSTFLAGS", "--cfg=rustix_use_libc --cfg=counted")
        .env("CARGO_TARGET_DIR", target_dir().join("callgrind")))?;
    Ok(folder().join(file))
}

/// A command that runs a program under callgrind.
pub fn command(options: &[&str], counted: &Path) -> Command {
    command_into(Path::new("/dev/null"), options, counted)
}

/// The same, which writes what each line of code has cost to a file.
pub fn command_into(profile: &Path, options: &[&str], counted: &Path) -> Command {
    let mut command = program("valgrind", &["--tool=callgrind"]);
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(profile);
    command.arg(out).args(options).arg(counted);
    command
}

/// The instructions that callgrind counted.
pub fn collected(command: &Command, output: &Output) -> anyhow::Result<u64> {
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    match collected.and_then(|(_, number)| number.trim().parse().ok()) {
        Some(number) if output.status.success() => Ok(number),
        _ => bail!("{command:?}: {}\n{said}", output.status),
    }
}

/// Runs a command of [`command`] to its end, and returns what it counted.
pub fn count(mut command: Command) -> anyhow::Result<u64> {
    let output = command.output().context("cannot start valgrind")?;
    match collected(&command, &output)? {
        // A function that was compiled into its callers is not found by its name.
        0 => bail!("callgrind counted nothing: {command:?}"),
        count => Ok(count),
    }
}
