//! The package for distributions with RPM, by cargo-generate-rpm. The manifest of `glimmer` says
//! what is in it.

use super::{contents, roots, written};
use crate::process::{program, run};
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};

/// The release of cargo-generate-rpm that builds the package. It is compiled once.
const CARGO_GENERATE_RPM: &str = "0.21.1";
/// What the package is put through.
const TRIAL: &str = include_str!("rpm_trial.sh");

/// Builds the package, and tries it in a root with RPM if that is asked for.
pub fn build(folder: &Path, is_tried: bool) -> anyhow::Result<Vec<PathBuf>> {
    contents(folder)?;
    let tool = tools::compiled("cargo-generate-rpm", CARGO_GENERATE_RPM)?;
    // Which libraries are needed is read from the programs themselves, on every machine alike.
    let package = |output: &Path, more: &[&str]| {
        let arguments = ["-p", "crates/glimmer", "--auto-req", "builtin", "-o"];
        run(program(&tool, &arguments).arg(output).args(more))
    };
    let built = written(folder, "rpm", || package(folder, &[]))?;
    if is_tried {
        let root = roots::make(folder, "root-rpm", &["rpm", "systemd"])?;
        fs::copy(&built, root.join("glimmer.rpm"))?;
        package(&root.join("glimmer-next.rpm"), &["-s", "release = \"2\""])?;
        roots::run_in(&root, TRIAL)?;
    }
    Ok(vec![built])
}
