//! Miri, which interprets the tests and notices undefined behaviour. For each seed it also picks
//! another order of the threads, and other values that relaxed loads may return.

use crate::process::{self, exists, program, run};
use std::process::Command;

/// The toolchain that has Miri. Only nightly ones do, and not every one of them.
const TOOLCHAIN: &str = "nightly-2026-05-20";

/// Seeds in the test suite; `cargo xtask miri` can take more.
pub const SEEDS: u32 = 1;

/// With tree borrows, a borrow of a part of a log costs nothing until it is used. The other model
/// looks at each of its words, which takes several times as long.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-permissive-provenance";

/// Unit tests of code that works on shared words. They have one thread, so one seed does. The
/// other unit tests take too long under Miri.
const UNIT_TESTS: &[&str] = &["--lib", "--", "evict::", "heap::write::"];

/// The oracles and races of all tables, at sizes that Miri can take.
const TINY_TESTS: &[&str] = &["--test", "tables", "--", "tiny::"];

/// Runs the tests, those of tiny tables with this many seeds. Where Miri cannot be had, says so
/// and leaves them out.
pub fn check(seeds: u32) -> anyhow::Result<()> {
    if !exists("rustup") {
        println!("miri: SKIPPED: rustup is missing. To have it: https://rustup.rs");
        return Ok(());
    }
    if !is_installed() && run(&mut install()).is_err() {
        println!(
            "miri: SKIPPED: rustup could not install Miri. To have it: {:?}",
            install()
        );
        return Ok(());
    }
    run(&mut test(UNIT_TESTS, FLAGS))?;
    let many = format!("{FLAGS} -Zmiri-many-seeds=0..{seeds}");
    run(&mut test(TINY_TESTS, &many))
}

/// Whether the toolchain is there, with Miri and the source of the standard library.
fn is_installed() -> bool {
    let mut list = program("rustup", &["component", "list", "--installed"]);
    let output = list.args(["--toolchain", TOOLCHAIN]).output();
    output.is_ok_and(|output| {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let has = |wanted| names.lines().any(|name| name.starts_with(wanted));
        output.status.success() && has("miri") && has("rust-src")
    })
}

fn install() -> Command {
    let mut command = program("rustup", &["toolchain", "install", TOOLCHAIN]);
    command.args(["--profile", "minimal", "--component", "miri,rust-src"]);
    command
}

/// `cargo miri test` of the store, built beside everything else.
fn test(tests: &[&str], flags: &str) -> Command {
    let mut command = program("rustup", &["run", TOOLCHAIN, "cargo", "miri", "test"]);
    command
        .args(["-p", "glimmer-store"])
        .args(tests)
        // Ours belong to the cargo that runs us, which is of another toolchain.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("MIRIFLAGS", flags)
        .env("CARGO_TARGET_DIR", process::target_dir().join("miri"));
    command
}
