//! Runs the fuzz targets, guided by coverage, for a bounded time each.
//!
//! This works with stable Rust: the compiler includes the coverage pass, and libFuzzer comes with a
//! crate that the targets link. Only the sanitizers need the nightly compiler, and the code under
//! test has no unsafe blocks.

use crate::process::{self, exists, program, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const FUZZ: &str = "fuzz";

/// Coverage options for libFuzzer: counters at every edge, their addresses, and the operands of
/// comparisons.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 \
     -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

/// An input that takes longer counts as a hang.
const INPUT_SECONDS_MAX: u32 = 5;

/// A target that uses more memory counts as growing without bound.
const MEMORY_MIB_MAX: u32 = 512;

/// Runs each target, or only the named ones, from the committed corpus. Fails at the first crash,
/// hang or memory growth.
pub fn check(seconds: u32, chosen: &[String]) -> anyhow::Result<()> {
    let Some(built) = build()? else {
        return Ok(());
    };
    for name in targets()? {
        if chosen.is_empty() || chosen.contains(&name) {
            run(&mut built.command(&name, seconds)?)?;
        }
    }
    Ok(())
}

/// The targets, built.
pub struct Built {
    /// Where they are, with what they have found.
    folder: PathBuf,
    host: String,
}

/// Builds them. `None`, which is printed, if that is not possible here.
pub fn build() -> anyhow::Result<Option<Built>> {
    if !exists("c++") {
        println!(
            "c++ is missing, so the fuzz targets are left out. To have it: apt-get install g++"
        );
        return Ok(None);
    }
    let host = process::host()?;
    let folder = std::path::absolute(process::target_dir().join("fuzz"))?;
    run(
        process::cargo(&["build", "--release", "--bins", "--manifest-path"])
            .arg(format!("{FUZZ}/Cargo.toml"))
            // Naming the target keeps these flags away from build scripts.
            .args(["--target", &host, "--target-dir"])
            .arg(&folder)
            .env("RUSTFLAGS", COVERAGE),
    )?;
    Ok(Some(Built { folder, host }))
}

/// The names of the targets, from their files.
pub fn targets() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(Path::new(FUZZ).join("fuzz_targets"))? {
        if let Some(name) = entry?.path().file_stem() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

impl Built {
    /// Runs a target from the committed corpus for this time.
    pub fn command(&self, name: &str, seconds: u32) -> anyhow::Result<Command> {
        let Built { folder, host } = self;
        let executable = folder.join(host).join("release").join(name);
        // New inputs go into the first corpus; the committed one is only read.
        let found = folder.join("found").join(name);
        let committed = Path::new(FUZZ).join("corpus").join(name);
        std::fs::create_dir_all(&found)?;
        println!("{name}: {seconds} s");
        let mut command = program(executable, &[]);
        command
            .arg(&found)
            .args(committed.exists().then_some(committed))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
            .arg(format!(
                "-artifact_prefix={}/failed-{name}-",
                folder.display()
            ))
            .args(["-print_final_stats=1", "-verbosity=0"]);
        let words = Path::new(FUZZ).join(format!("{name}.dict"));
        if words.exists() {
            command.arg(format!("-dict={}", words.display()));
        }
        Ok(command)
    }
}
