//! Programs and libraries that a stage needs. Missing ones are installed in one go where that is
//! possible; otherwise their names are printed.

use crate::process::{apt_install, cargo, exists, program, run, target_dir};
use std::path::PathBuf;
use std::process::Stdio;

/// A program or library that a stage needs.
pub struct Tool {
    /// A program on the search path. With arguments, a command that succeeds if the tool is
    /// installed.
    pub probe: &'static [&'static str],
    /// The Debian packages that contain it.
    pub packages: &'static [&'static str],
    /// What is skipped without it.
    pub without: &'static str,
}

impl Tool {
    /// Whether it is installed.
    fn is_here(&self) -> bool {
        match self.probe {
            [name] => exists(name),
            [name, arguments @ ..] => program(name, arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
            [] => unreachable!("every tool has a probe"),
        }
    }
}

/// The path of a program of crates.io, in this version. It is compiled once, into target/tools, and
/// not for speed: it runs for seconds.
pub fn compiled(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let folder = target_dir().join("tools").join(format!("{name}-{version}"));
    let tool = folder.join("bin").join(name);
    if !tool.exists() {
        let wanted = ["install", name, "--locked", "--version", version];
        run(cargo(&wanted)
            .arg("--root")
            .arg(&folder)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"))?;
    }
    Ok(tool)
}

/// Installs missing tools where that is possible, and prints what is skipped otherwise. Returns
/// whether all tools are installed now.
pub fn install(tools: &[Tool]) -> bool {
    let mut missing: Vec<&Tool> = tools.iter().filter(|tool| !tool.is_here()).collect();
    if missing.is_empty() {
        return true;
    }
    let packages: Vec<&str> = missing
        .iter()
        .flat_map(|tool| tool.packages)
        .copied()
        .collect();
    if let Err(error) = apt_install(&packages) {
        println!("cannot install {}: {error:#}", packages.join(", "));
    }
    missing.retain(|tool| !tool.is_here());
    for tool in &missing {
        println!(
            "{} is missing, so this is left out: {}. To have it: apt-get install {}",
            tool.probe.join(" "),
            tool.without,
            tool.packages.join(" ")
        );
    }
    missing.is_empty()
}
