//! Fetches a suite's tests into a folder of its own.

use super::catalogue::Suite;
use super::{BUILT, environment};
use crate::process::{apt_install, exists, program};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A suite's tests, or why they are missing.
pub enum Fetched {
    /// The tests were fetched.
    Ready {
        /// The folder.
        folder: PathBuf,
        /// The version that the fetching script printed.
        version: String,
    },
    /// Fetching failed.
    Missing(String),
}

/// Fetches the tests of an entry, unless the same entry was fetched before.
pub fn fetch(suite: &Suite) -> anyhow::Result<Fetched> {
    let folder = std::path::absolute(Path::new(BUILT).join(suite.folder()))?;
    let (stamp, work) = (folder.join("fetched-by"), folder.join("work"));
    if let Ok(text) = std::fs::read_to_string(&stamp)
        && let Some(version) = text.strip_prefix(&suite.fetch)
    {
        return Ok(Fetched::Ready {
            folder: work,
            version: version.trim().to_owned(),
        });
    }
    if let Err(reason) = bring_tools(suite) {
        return Ok(Fetched::Missing(reason));
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&work)?;
    println!("{}: fetching", suite.name);
    let output = program("bash", &["-euo", "pipefail", "-c", &suite.fetch])
        .current_dir(&work)
        .envs(environment(suite)?)
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Ok(Fetched::Missing(format!(
            "cannot be fetched: {}",
            last_line(&complaint)
        )));
    }
    let version = last_line(&String::from_utf8_lossy(&output.stdout)).to_owned();
    std::fs::write(&stamp, format!("{}\n{version}", suite.fetch))?;
    Ok(Fetched::Ready {
        folder: work,
        version,
    })
}

/// Installs missing programs and packages, or returns their names.
fn bring_tools(suite: &Suite) -> Result<(), String> {
    let missing = || suite.needs.iter().filter(|(program, _)| !exists(program));
    let mut packages: Vec<&str> = missing().map(|(_, package)| package.as_str()).collect();
    packages.extend(suite.debian.iter().filter_map(|package| {
        let is_here = program("dpkg", &["-s", package])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        (!is_here).then_some(package.as_str())
    }));
    if packages.is_empty() {
        return Ok(());
    }
    let result = apt_install(&packages);
    match missing().next() {
        Some((program, package)) => Err(format!("{program} is missing (Debian: {package})")),
        None => result.map_err(|error| format!("{}: {error:#}", packages.join(", "))),
    }
}

/// The last line that is not blank.
pub fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev();
    lines
        .find(|line| !line.trim().is_empty())
        .unwrap_or("")
        .trim()
}
