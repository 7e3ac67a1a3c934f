//! Fetches client libraries from their languages' registries, each into a folder of the checkout
//! and at the version that is pinned beside the tests.

use super::TESTS;
use crate::process::{exists, program, run};
use crate::venv::{self, unless_made};
use anyhow::Context;
use std::path::{Path, PathBuf};

const VENV: &str = ".venv";
/// One folder per language; `tests/clients/languages.py` looks there.
const BUILT: &str = ".clients";

/// Fetches and builds the libraries of the installed languages. The tests of a language that is not
/// installed are skipped, and say so.
pub fn build() -> anyhow::Result<()> {
    if exists("go") {
        go()?;
    }
    if exists("mvn") && exists("javac") {
        java()?;
    }
    if exists("npm") && exists("node") {
        node()?;
    }
    Ok(())
}

/// The Python of an environment that has exactly what `requirements.txt` pins.
pub fn python() -> anyhow::Result<PathBuf> {
    venv::python(Path::new(VENV), &Path::new(TESTS).join("requirements.txt"))
}

/// Builds the wheel of our own native client, and installs it.
pub fn wheel(python: &Path) -> anyhow::Result<()> {
    let wheels = Path::new(BUILT).join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    run(program(
        python,
        &["-m", "maturin", "build", "--quiet", "--profile", "dev"],
    )
    .args(["--features", "planted-panic"])
    .args(["--manifest-path", "crates/client-py/Cargo.toml", "--out"])
    .arg(&wheels))?;
    let wheel = std::fs::read_dir(&wheels)?.next();
    let wheel = wheel.context("maturin builds a wheel")??.path();
    run(program(
        python,
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--force-reinstall",
        ],
    )
    .arg(wheel))
}

fn go() -> anyhow::Result<()> {
    let client = std::path::absolute(Path::new(BUILT).join("go/client"))?;
    // Go itself knows what has changed.
    run(program("go", &["build", "-o"])
        .arg(client)
        .arg(".")
        .current_dir(Path::new(TESTS).join("go")))
}

fn java() -> anyhow::Result<()> {
    let folder = Path::new(BUILT).join("java");
    let pins = Path::new(TESTS).join("java/pom.xml");
    let jars = std::path::absolute(folder.join("jars"))?;
    unless_made(&folder, &pins, || {
        run(
            program("mvn", &["-q", "-B", "dependency:copy-dependencies", "-f"])
                .arg(&pins)
                .arg(format!("-DoutputDirectory={}", jars.display())),
        )
    })
}

fn node() -> anyhow::Result<()> {
    let folder = Path::new(BUILT).join("node");
    let source = Path::new(TESTS).join("node");
    let pins = source.join("package-lock.json");
    unless_made(&folder, &pins, || {
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(source.join(file), folder.join(file))?;
        }
        run(program("npm", &["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder))
    })
}
