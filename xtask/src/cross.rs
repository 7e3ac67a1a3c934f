//! Checks the code for another architecture: the server must compile, and the store's tests run in
//! an emulator.
//!
//! The emulator executes on this machine's processor, which keeps its own memory order. Reorderings
//! that the other architecture allows are the model checker's task.

use crate::process::{cargo, program, run};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The emulator, with the path of the C library.
const RUNNER: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// The store's tests.
const TESTS: &[&str] = &["--lib", "--test", "tables"];

/// Tests that are skipped. The first reserves 4 TiB of addresses, and the emulator's page table for
/// them would fill the machine's memory. The second counts operations, which do not depend on the
/// architecture, and takes minutes. The others are about the amount and page size of memory.
const SKIPPED: &[&str] = &[
    "a_refused_mapping_takes_nobody_elses_memory_along",
    "work::",
    "cache_mode_memory::",
    "commons::",
    "eviction_rules::",
    "memc3_memory::",
];

const TOOLS: &[Tool] = &[
    Tool {
        probe: &[LINKER],
        packages: &["gcc-aarch64-linux-gnu"],
        without: "linking for aarch64",
    },
    Tool {
        probe: &["test", "-e", "/usr/aarch64-linux-gnu/lib/crt1.o"],
        packages: &["libc6-dev-arm64-cross"],
        without: "linking for aarch64",
    },
    Tool {
        probe: &["qemu-aarch64"],
        packages: &["qemu-user"],
        without: "running what was built for aarch64",
    },
];

/// Checks the server and runs the store's tests. Fails if that is not possible.
pub fn check() -> anyhow::Result<()> {
    let has_tools = tools::install(TOOLS);
    if !has_standard_library()? {
        let mut add = program("rustup", &["target", "add", TARGET]);
        run(&mut add).context("the standard library for aarch64 is missing")?;
    }
    if !has_tools {
        bail!("tools for aarch64 are missing");
    }
    run(&mut build(&["check", "-p", "glimmer-server"]))?;
    let mut tests = build(&["test", "-p", "glimmer-store", "--no-fail-fast"]);
    tests.args(TESTS).arg("--");
    for name in SKIPPED {
        tests.args(["--skip", name]);
    }
    run(&mut tests)
}

/// Whether the standard library for the other architecture is installed, in whatever way.
fn has_standard_library() -> anyhow::Result<bool> {
    let mut rustc = program("rustc", &["--print", "target-libdir", "--target", TARGET]);
    let output = rustc.output().context("cannot start rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(output.status.success() && std::path::Path::new(&folder).is_dir())
}

fn build(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command
        .args(["--target", TARGET])
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER);
    command
}
