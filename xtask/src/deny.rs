//! What the workspace depends on: licences, sources, crates in more than one version, and known
//! faults. `deny.toml` has the rules.

use crate::process::{program, run, target_dir};
use crate::tools::{self, Tool};
use crate::venv;
use std::path::Path;

/// The release of cargo-deny. It is not compiled, which would take minutes.
const PINS: &str = "xtask/pins/deny.txt";

const PYTHON: &[Tool] = &[Tool {
    probe: &["python3", "-c", "import ensurepip"],
    packages: &["python3", "python3-venv"],
    without: "the check of what the workspace depends on",
}];

/// What to check beside licences, duplicates and sources.
#[derive(Debug, clap::Args)]
pub struct Deny {
    /// Known faults of crates and versions that were withdrawn, too
    ///
    /// Fetches the RustSec database, which is not on crates.io.
    #[arg(long)]
    advisories: bool,
}

impl Deny {
    /// Fails if a crate is not allowed.
    pub fn check(&self) -> anyhow::Result<()> {
        let checks: &[&str] = match self.advisories {
            true => &["advisories"],
            false => &[],
        };
        check_all(checks)
    }
}

/// Checks licences, duplicates and sources. Takes a second, and a few when cargo-deny is fetched.
pub fn check() -> anyhow::Result<()> {
    check_all(&[])
}

/// Checks known faults, by a database that is not on crates.io.
pub fn advisories() -> anyhow::Result<()> {
    check_all(&["advisories"])
}

fn check_all(more: &[&str]) -> anyhow::Result<()> {
    let folder = target_dir().join("tools/deny");
    if !tools::install(PYTHON) {
        println!("deny: SKIPPED");
        return Ok(());
    }
    venv::python(&folder, Path::new(PINS))?;
    let arguments = ["--locked", "--log-level", "error", "check"];
    let checks = ["licenses", "bans", "sources"];
    run(program(folder.join("bin/cargo-deny"), &arguments)
        .args(checks)
        .args(more))
}
