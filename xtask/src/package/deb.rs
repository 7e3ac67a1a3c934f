//! The Debian package, by cargo-deb.

use super::{contents, roots, written};
use crate::process::{program, run};
use crate::tools;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// The release of cargo-deb that builds the package. It is compiled once.
const CARGO_DEB: &str = "3.8.0";
/// What the package is put through.
const TRIAL: &str = include_str!("deb_trial.sh");
/// The version of a package that differs from the one that was built by its version alone.
const NEXT_VERSION: &str = "0.1.0-2";
const PRERM: &str = include_str!("prerm");
const POSTRM: &str = include_str!("postrm");

/// Builds the package, and tries it in a root of Debian if that is asked for.
pub fn build(folder: &Path, is_tried: bool) -> anyhow::Result<Vec<PathBuf>> {
    contents(folder)?;
    // cargo-deb adds to these what enables, starts and stops the service. The socket unit is there
    // for those who enable it, and only has to go with the package.
    let scripts = folder.join("scripts");
    fs::create_dir_all(&scripts)?;
    for (name, text) in [("prerm", PRERM), ("postrm", POSTRM)] {
        fs::write(scripts.join(name), text)?;
    }
    let tool = tools::compiled("cargo-deb", CARGO_DEB)?;
    let arguments = ["-p", "glimmer", "--no-build", "--output"];
    let package = written(
        folder,
        "deb",
        || run(program(&tool, &arguments).arg(folder)),
    )?;
    if is_tried {
        try_out(&package, folder)?;
    }
    Ok(vec![package])
}

/// Puts the package through [`TRIAL`] in a root that has nothing else installed.
fn try_out(package: &Path, folder: &Path) -> anyhow::Result<()> {
    let root = roots::make(folder, "root", &[])?;
    fs::copy(package, root.join("glimmer.deb"))?;
    next_version(package, &root.join("glimmer-next.deb"), folder)?;
    roots::run_in(&root, TRIAL)
}

/// The same package with another version.
fn next_version(package: &Path, next: &Path, folder: &Path) -> anyhow::Result<()> {
    let unpacked = roots::empty(folder, "unpacked")?;
    run(program("dpkg-deb", &["-R"]).args([package, &unpacked]))?;
    let control = unpacked.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let version = text.lines().find(|line| line.starts_with("Version:"));
    let version = version.context("a package has a version")?;
    let text = text.replace(version, &format!("Version: {NEXT_VERSION}"));
    fs::write(&control, text)?;
    run(program("dpkg-deb", &["--root-owner-group", "-b"]).args([&unpacked, next]))
}
