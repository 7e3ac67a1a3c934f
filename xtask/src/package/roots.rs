//! Roots of Debian, and programs that run in them alone.

use crate::process::{self, program, run};
use crate::tools::{self, Tool};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Seconds that a trial may take.
const TRIAL_S: &str = "900";

/// MiB of items that have to survive what a package is put through.
const FILL_MIB: u32 = 1024;

/// What the trials of packages begin with.
const PRELUDE: &str = include_str!("trial.sh");

const ROOT_MAKERS: &[Tool] = &[Tool {
    probe: &["mmdebstrap", "--version"],
    packages: &["mmdebstrap"],
    without: "the trial of packages in a clean root",
}];

/// Makes a root of this machine's release of Debian with these packages beside the essential ones.
pub fn make(folder: &Path, name: &str, include: &[&str]) -> anyhow::Result<PathBuf> {
    if !process::is_root()? || !tools::install(ROOT_MAKERS) {
        bail!("--try makes a root of Debian: run it as root, with mmdebstrap");
    }
    let root = empty(folder, name)?;
    // A mirror that was copied once has an old list, which is as good for this.
    let any_age = "--aptopt=Acquire::Check-Valid-Until \"false\"";
    let include: Vec<String> = include.iter().map(|it| format!("--include={it}")).collect();
    run(program("mmdebstrap", &["--variant=minbase", any_age])
        .args(include)
        .arg(release()?)
        .arg(&root))?;
    Ok(root)
}

/// The path of a root that is not there any more.
pub fn empty(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let root = std::path::absolute(folder.join(name))?;
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    Ok(root)
}

/// The text of a trial that stores this much.
pub fn trial(text: &str, fill_mib: u32) -> String {
    format!("fill_mib={fill_mib}\n{PRELUDE}{text}")
}

/// Runs a trial in a root, without a network and other processes.
pub fn run_in(root: &Path, trial: &str) -> anyhow::Result<()> {
    fs::write(root.join("trial.sh"), self::trial(trial, FILL_MIB))?;
    let inside = format!(
        "mount -t proc proc {root}/proc && mkdir -p {root}/dev/shm && \
         mount -t tmpfs -o mode=1777 shm {root}/dev/shm && exec chroot {root} /bin/sh /trial.sh",
        root = root.display()
    );
    run_apart(&inside)
}

/// Runs a command of the shell, without a network, other processes, and mounts that stay.
pub fn run_apart(command: &str) -> anyhow::Result<()> {
    let apart = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    let command = format!("ip link set lo up && mount -t proc proc /proc && {command}");
    run(program("timeout", &[TRIAL_S])
        .args(apart)
        .args(["sh", "-c", &command]))
}

/// The name of this machine's release of Debian, for whose libraries packages are built.
fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release")?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.context("this is no release of Debian")?.to_owned())
}
