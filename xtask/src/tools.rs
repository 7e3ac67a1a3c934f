//! Programs and libraries of the machine that some stage needs: looked for, installed in one go where that
//! is possible, and named where not.

use crate::process::{apt_install, exists, program};
use std::process::Stdio;

/// Something that some stage needs.
pub struct Tool {
    /// A program on the search path; with arguments, a command that succeeds if the thing is there.
    pub probe: &'static [&'static str],
    /// The Debian packages that bring it.
    pub packages: &'static [&'static str],
    /// What is left out without it.
    pub without: &'static str,
}

impl Tool {
    /// Whether the machine has it.
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

/// Installs what is missing where that is possible, and says what is left out where it is not.
/// Returns whether the machine has all of it now.
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
