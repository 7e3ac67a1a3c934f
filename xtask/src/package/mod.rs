//! Builds what the server is installed from, and tries each in a root of its own.

mod container;
pub mod crates;
mod deb;
mod kubernetes;
pub mod roots;
mod rpm;
pub mod small;

use crate::process::{self, run};
use anyhow::Context;
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// What to build, and what to do with it.
#[derive(Debug, clap::Args)]
pub struct Package {
    /// What to build
    #[arg(value_enum, default_values_t = [Kind::Deb])]
    kinds: Vec<Kind>,
    /// Install it in a clean root, use, upgrade and remove it
    ///
    /// Needs root and a Debian mirror, and installs what is missing as root on Debian.
    #[arg(long = "try")]
    is_tried: bool,
    /// Build nothing for speed: try with debug programs what a package is put through
    ///
    /// Needs root. Continuous integration does this.
    #[arg(long, conflicts_with_all = ["kinds", "is_tried"])]
    small: bool,
}

/// What the server can be installed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A package for Debian
    Deb,
    /// A package for distributions with RPM
    Rpm,
    /// The file system of a container, from a static build
    Container,
    /// Resources for Kubernetes, which are only checked
    Kubernetes,
    /// The crates that are published, each built from what it is published as
    Crates,
}

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::Crates,
        Kind::Deb,
        Kind::Rpm,
        Kind::Container,
        Kind::Kubernetes,
    ];

    /// Builds it, and tries it if that is asked for. Returns the files.
    pub fn build(self, is_tried: bool) -> anyhow::Result<Vec<PathBuf>> {
        let folder = folder();
        fs::create_dir_all(&folder)?;
        match self {
            Kind::Deb => deb::build(&folder, is_tried),
            Kind::Rpm => rpm::build(&folder, is_tried),
            Kind::Container => container::build(&folder, is_tried),
            Kind::Kubernetes => kubernetes::check(&folder),
            Kind::Crates => crates::build(&folder),
        }
    }
}

impl Package {
    /// Builds what is asked for.
    pub fn build(&self) -> anyhow::Result<()> {
        if self.small {
            run(&mut process::cargo(&[
                "build",
                "-p",
                "glimmer",
                "-p",
                "glimmer-top",
            ]))?;
            return small::check();
        }
        for kind in &self.kinds {
            for file in kind.build(self.is_tried)? {
                println!("{}", file.display());
            }
        }
        Ok(())
    }
}

/// Where everything is built.
pub fn folder() -> PathBuf {
    process::target_dir().join("package")
}

/// Builds what packages of distributions contain: programs, pages, completions and the unit.
fn contents(folder: &Path) -> anyhow::Result<()> {
    let programs = ["-p", "glimmer", "-p", "glimmer-top", "--bins"];
    run(process::cargo(&["build", "--release"]).args(programs))?;
    run(process::cargo(&["run", "--quiet", "-p", "glimmer-packaging", "--"]).arg(folder))?;
    let unit = fs::read_to_string("contrib/systemd/glimmer.service")?;
    let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
    fs::write(folder.join("glimmer.service"), unit)?;
    Ok(())
}

/// The files in a folder with this extension.
fn files(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let entries = entries.collect::<anyhow::Result<Vec<_>>>()?;
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|it| it == extension);
    Ok(entries.into_iter().filter(is_wanted).collect())
}

/// The one package that a tool writes into a folder, from which older ones are removed.
fn written(
    folder: &Path,
    extension: &str,
    write: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    for old in files(folder, extension)? {
        fs::remove_file(old)?;
    }
    write()?;
    let package = files(folder, extension)?.pop();
    package.with_context(|| format!("no .{extension} was written"))
}
