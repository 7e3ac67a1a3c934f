//! Builds the Debian package of the server, and tries it in a clean root of Debian.

use crate::process::{self, program, run};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The release of cargo-deb that builds the package. It is compiled once, into target/tools.
const CARGO_DEB: &str = "3.8.0";
/// What the package is put through.
const TRIAL: &str = include_str!("trial.sh");
/// Seconds that the trial may take.
const TRIAL_S: &str = "120";
/// The version of a package that differs from the one that was built by its version alone.
const NEXT_VERSION: &str = "0.1.0-2";

const PRERM: &str = include_str!("prerm");
const POSTRM: &str = include_str!("postrm");

const ROOT_MAKERS: &[Tool] = &[Tool {
    probe: &["mmdebstrap", "--version"],
    packages: &["mmdebstrap"],
    without: "the trial of the package in a clean root",
}];

/// What to do with the package.
#[derive(Debug, clap::Args)]
pub struct Package {
    /// Install it in a clean root of Debian, use, upgrade, remove and purge it
    ///
    /// Needs root and a Debian mirror, and installs mmdebstrap if it is missing.
    #[arg(long = "try")]
    is_tried: bool,
}

impl Package {
    /// Builds the package, and tries it if that is asked for.
    pub fn build(&self) -> anyhow::Result<()> {
        let folder = process::target_dir().join("package");
        fs::create_dir_all(&folder)?;
        let package = debian(&folder)?;
        println!("{}", package.display());
        match self.is_tried {
            true => try_out(&package, &folder),
            false => Ok(()),
        }
    }
}

/// Builds the Debian package.
fn debian(folder: &Path) -> anyhow::Result<PathBuf> {
    let programs = ["-p", "glimmer", "-p", "glimmer-top", "--bins"];
    run(process::cargo(&["build", "--release"]).args(programs))?;
    run(process::cargo(&["run", "--quiet", "-p", "glimmer-packaging", "--"]).arg(folder))?;
    let unit = fs::read_to_string("contrib/systemd/glimmer.service")?;
    let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
    fs::write(folder.join("glimmer.service"), unit)?;
    // cargo-deb adds to these what enables, starts and stops the service. The socket unit is there
    // for those who enable it, and only has to go with the package.
    let scripts = folder.join("scripts");
    fs::create_dir_all(&scripts)?;
    for (name, text) in [("prerm", PRERM), ("postrm", POSTRM)] {
        fs::write(scripts.join(name), text)?;
    }
    for old in packages(folder)? {
        fs::remove_file(old)?;
    }
    let tools = process::target_dir().join("tools");
    let tool = tools.join("bin/cargo-deb");
    if !tool.exists() {
        let wanted = ["install", "cargo-deb", "--locked", "--version", CARGO_DEB];
        run(process::cargo(&wanted).arg("--root").arg(&tools))?;
    }
    let arguments = ["-p", "glimmer", "--no-build", "--output"];
    run(program(&tool, &arguments).arg(folder))?;
    let package = packages(folder)?.pop();
    package.context("cargo-deb has written no package")
}

/// The packages in a folder.
fn packages(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let entries = entries.collect::<anyhow::Result<Vec<_>>>()?;
    let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("deb"));
    Ok(entries.into_iter().filter(is_package).collect())
}

/// Puts the package through [`TRIAL`] in a root that has nothing else installed, without a network.
fn try_out(package: &Path, folder: &Path) -> anyhow::Result<()> {
    if !process::is_root()? || !tools::install(ROOT_MAKERS) {
        bail!("--try makes a root of Debian: run it as root, with mmdebstrap");
    }
    let root = std::path::absolute(folder.join("root"))?;
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    // A mirror that was copied once has an old list, which is as good for this.
    let any_age = "--aptopt=Acquire::Check-Valid-Until \"false\"";
    let options = ["--variant=minbase", any_age, &release()?];
    run(program("mmdebstrap", &options).arg(&root))?;
    fs::copy(package, root.join("glimmer.deb"))?;
    next_version(package, &root.join("glimmer-next.deb"), folder)?;
    fs::write(root.join("trial.sh"), TRIAL)?;
    let inside = format!(
        "ip link set lo up && mount -t proc proc {root}/proc && \
         exec chroot {root} /bin/sh /trial.sh",
        root = root.display()
    );
    let apart = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    run(program("timeout", &[TRIAL_S])
        .args(apart)
        .args(["sh", "-c", &inside]))
}

/// The name of this machine's release of Debian, for whose libraries the package was built.
fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release")?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.context("this is no release of Debian")?.to_owned())
}

/// The same package with another version.
fn next_version(package: &Path, next: &Path, folder: &Path) -> anyhow::Result<()> {
    let unpacked = folder.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    run(program("dpkg-deb", &["-R"]).args([package, &unpacked]))?;
    let control = unpacked.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let version = text.lines().find(|line| line.starts_with("Version:"));
    let version = version.context("a package has a version")?;
    let text = text.replace(version, &format!("Version: {NEXT_VERSION}"));
    fs::write(&control, text)?;
    run(program("dpkg-deb", &["--root-owner-group", "-b"]).args([&unpacked, next]))
}
