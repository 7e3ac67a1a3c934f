//! The compiled packet program, which is committed so that building the server takes no clang. It
//! is compiled by one version of clang from headers of its own, so it is the same everywhere.

use crate::process;
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::fs;
use std::path::Path;

const FOLDER: &str = "accel/xdp";
const OBJECT: &str = "accel/xdp/program.o";
const CLANG: &str = "clang-14";

const TOOLS: &[Tool] = &[Tool {
    probe: &[CLANG],
    packages: &["clang-14"],
    without: "compiling the packet program; the committed object is used",
}];

const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-std=gnu11",
    "-nostdinc",
    "-ffreestanding",
    "-fno-strict-aliasing",
    "-fno-addrsig",
    "-fno-ident",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-I../../crates/hotset/include",
    "-c",
    "program.c",
    "-o",
];

/// Compiles the packet program and writes the object, or compares it with the committed one. A
/// machine without the compiler keeps the committed object; in continuous integration that is a
/// failure.
pub fn build(check: bool) -> anyhow::Result<()> {
    if !tools::install(TOOLS) {
        if std::env::var_os("CI").is_some() || !check {
            bail!("{CLANG} is missing");
        }
        println!("packet program: SKIPPED, {OBJECT} is used as it is");
        return Ok(());
    }
    let made = process::target_dir().join("packet-program.o");
    fs::create_dir_all(process::target_dir())?;
    let made = std::path::absolute(made)?;
    process::run(
        process::program(CLANG, FLAGS)
            .arg(&made)
            .current_dir(FOLDER),
    )?;
    if !check {
        fs::copy(&made, OBJECT).with_context(|| format!("cannot write {OBJECT}"))?;
        println!("packet program: {OBJECT} is written");
        return Ok(());
    }
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {path:?}"));
    if read(&made)? != read(Path::new(OBJECT))? {
        bail!("{OBJECT} is not what {CLANG} makes of its sources: cargo xtask packet-program");
    }
    println!("packet program: {OBJECT} is what {CLANG} makes of its sources");
    Ok(())
}
