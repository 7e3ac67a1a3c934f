//! Real memcached clients against the running server: sets up Python and Debian packages, then runs `tests/clients` under pytest.

use crate::process::{self, exists, program, run};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

const TESTS: &str = "tests/clients";
const VENV: &str = ".venv";

/// A program that some client test needs, the Debian package that brings it, and what is left out without it.
const TOOLS: &[(&str, &str, &str)] = &[
    (
        "memccapable",
        "libmemcached-tools",
        "libmemcached's conformance tests",
    ),
    (
        "memcached",
        "memcached",
        "comparisons with memcached, reply by reply",
    ),
    ("python3", "python3", "every client test"),
];

/// Builds the server and runs every client test against it.
pub fn check() -> anyhow::Result<()> {
    install_tools();
    let python = environment()?;
    run(&mut process::cargo(&["build", "--workspace", "--bins"]))?;
    let server = process::target_dir().join("debug/glimmer");
    let server = std::path::absolute(&server)?;
    run(program(
        &python,
        &["-m", "pytest", TESTS, "-q", "-p", "no:cacheprovider"],
    )
    .env("GLIMMER_BIN", &server)
    .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Installs what is missing where that is possible, and says what is left out where it is not.
fn install_tools() {
    let missing: Vec<_> = TOOLS.iter().filter(|(tool, _, _)| !exists(tool)).collect();
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    if let Err(error) = apt_install(&packages) {
        println!("cannot install {}: {error:#}", packages.join(", "));
    }
    for (tool, package, without) in missing {
        if !exists(tool) {
            println!(
                "{tool} is missing, so this is left out: {without}. To have it: apt-get install {package}"
            );
        }
    }
}

fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    if !exists("apt-get") || !is_root()? {
        bail!("that takes root and apt-get");
    }
    run(&mut program("apt-get", &["update", "-q"]))?;
    run(program(
        "apt-get",
        &["install", "-q", "-y", "--no-install-recommends"],
    )
    .args(packages)
    .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_root() -> anyhow::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

/// The Python of an environment that has exactly what `requirements.txt` pins. Made, or made anew when the pins have changed.
fn environment() -> anyhow::Result<PathBuf> {
    let python = Path::new(VENV).join("bin/python");
    let pins = std::fs::read_to_string(Path::new(TESTS).join("requirements.txt"))?;
    let stamp = Path::new(VENV).join("installed-requirements.txt");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(python);
    }
    if run(&mut program("python3", &["-m", "venv", "--clear", VENV])).is_err() {
        apt_install(&["python3", "python3-venv"]).context(
            "python3 cannot make a virtual environment; install python3 and python3-venv",
        )?;
        run(&mut program("python3", &["-m", "venv", "--clear", VENV]))?;
    }
    let requirements = format!("{TESTS}/requirements.txt");
    run(&mut program(
        &python,
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            &requirements,
        ],
    ))?;
    std::fs::write(&stamp, pins)?;
    Ok(python)
}
