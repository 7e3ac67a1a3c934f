//! What a release consists of, and what of it has to be done by a person.

use crate::package::{self, Kind};
use crate::process::{self, program, run};
use crate::{deny, floors, tools};
use anyhow::{Context, bail};
use cargo_metadata::MetadataCommand;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release of cargo-cyclonedx that lists what a program is built from. It is compiled once.
const CARGO_CYCLONEDX: &str = "0.5.9";
const CHANGELOG: &str = "CHANGELOG.md";

/// What to do for a release.
#[derive(Debug, clap::Args)]
pub struct Release {
    /// Publish nothing. There is no other way yet: a person publishes
    #[arg(long, required = true)]
    dry_run: bool,
    /// Try each package in a root of its own, which needs root and a Debian mirror
    #[arg(long = "try")]
    is_tried: bool,
}

impl Release {
    /// Builds everything that is published into target/release-files, and says what is left to do.
    pub fn run(&self) -> anyhow::Result<()> {
        debug_assert!(self.dry_run);
        let version = version()?;
        let mut left = Vec::new();
        changelog(&version, &mut left)?;
        worktree(&version, &mut left)?;
        floors::check()?;
        deny::check()?;
        if deny::advisories().is_err() {
            left.push(
                "look for known faults of dependencies where the RustSec database can be had: \
                 cargo xtask deny --advisories"
                    .to_owned(),
            );
        }
        let folder = process::target_dir().join("release-files");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let mut files = Vec::new();
        for kind in Kind::ALL {
            println!("release: {kind:?}");
            files.extend(kind.build(self.is_tried)?);
        }
        files.push(sbom(&package::folder())?);
        let mut names = Vec::new();
        for file in &files {
            let name = file.file_name().context("a file has a name")?;
            fs::copy(file, folder.join(name))?;
            names.push(name.to_owned());
        }
        checksums(&folder, &names)?;
        if !self.is_tried {
            left.push("try the packages: cargo xtask release --dry-run --try".to_owned());
        }
        left.extend(LAST.iter().map(|step| step.replace("VERSION", &version)));
        println!(
            "release {version}: {} files are in {}",
            files.len(),
            folder.display()
        );
        println!("What is left for a person:");
        for (number, step) in left.iter().enumerate() {
            println!("{:3}. {step}", number + 1);
        }
        Ok(())
    }
}

/// What a program cannot do, or must not do by itself.
const LAST: &[&str] = &[
    "see that continuous integration has passed for this commit, and the measurements of \
     docs/results.md are of this version",
    "sign the checksums (SHA256SUMS)",
    "tag the commit: git tag -s vVERSION",
    "publish the crates, those that others depend on first: cargo publish --workspace",
    "build the image for each architecture from contrib/container/Containerfile, and push it",
    "upload target/release-files with the section of CHANGELOG.md",
    "begin the next version: `version` in Cargo.toml and in the dependencies of the workspace, the \
     version of the rpm in crates/glimmer/Cargo.toml, and a section Unreleased in CHANGELOG.md",
];

/// The version of the workspace, which all published crates have.
fn version() -> anyhow::Result<String> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let packages = metadata.workspace_packages();
    let server = packages.iter().find(|it| it.name == "glimmer");
    Ok(server.context("there is a server")?.version.to_string())
}

/// The changelog has a section for this version, with a date.
fn changelog(version: &str, left: &mut Vec<String>) -> anyhow::Result<()> {
    let text = fs::read_to_string(CHANGELOG)?;
    let heading = format!("## {version} - ");
    match text.lines().find_map(|line| line.strip_prefix(&*heading)) {
        None => bail!("{CHANGELOG} has no section \"{heading}DATE\""),
        Some("unreleased") => left.push(format!("write the date into {CHANGELOG}")),
        Some(_) => {}
    }
    Ok(())
}

/// Everything is committed, and the version is not taken.
fn worktree(version: &str, left: &mut Vec<String>) -> anyhow::Result<()> {
    let output = |command: &mut Command| -> anyhow::Result<String> {
        Ok(String::from_utf8(command.output()?.stdout)?)
    };
    let changed = output(&mut program("git", &["status", "--porcelain"]))?;
    if !changed.is_empty() {
        left.push("commit what is changed here, and do this again".to_owned());
    }
    let tag = format!("v{version}");
    if !output(program("git", &["tag", "--list"]).arg(&tag))?.is_empty() {
        bail!("the tag {tag} is there already: a release has a new version");
    }
    Ok(())
}

/// Lists what the server is built from, in the format of CycloneDX.
fn sbom(folder: &Path) -> anyhow::Result<PathBuf> {
    let tool = tools::compiled("cargo-cyclonedx", CARGO_CYCLONEDX)?;
    let manifest = "crates/glimmer/Cargo.toml";
    let arguments = [
        "cyclonedx",
        "--format",
        "json",
        "--describe",
        "binaries",
        "--spec-version",
        "1.5",
        "-q",
    ];
    run(program(&tool, &arguments).args(["--manifest-path", manifest]))?;
    let place = folder.join("glimmer.cdx.json");
    fs::rename("crates/glimmer/glimmer_bin.cdx.json", &place)
        .context("cargo-cyclonedx has written no list")?;
    // It writes one for each program of the workspace, into the folder of each.
    for crate_ in MetadataCommand::new()
        .no_deps()
        .exec()?
        .workspace_packages()
    {
        let crate_folder = crate_.manifest_path.parent();
        for entry in fs::read_dir(crate_folder.context("a manifest lies in a folder")?)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(".cdx.json") {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(place)
}

/// Writes the sums of the files into a file beside them.
fn checksums(folder: &Path, names: &[std::ffi::OsString]) -> anyhow::Result<()> {
    let sums = program("sha256sum", &[])
        .args(names)
        .current_dir(folder)
        .output()?;
    if !sums.status.success() {
        bail!("sha256sum: {}", sums.status);
    }
    fs::write(folder.join("SHA256SUMS"), sums.stdout)?;
    Ok(())
}
