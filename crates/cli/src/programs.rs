//! The three programs are installed in one folder, and each finds the others there.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// The exit code if a program is missing: `EX_UNAVAILABLE` of `sysexits.h`, "a support program does
/// not exist".
pub const EXIT_MISSING: u8 = 69;

/// One of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The server.
    Server,
    /// Benchmarks and figures.
    Bench,
    /// The live view of a server.
    Top,
}

impl Program {
    /// The name of the executable and of its package.
    pub fn name(self) -> &'static str {
        match self {
            Program::Server => "glimmer",
            Program::Bench => "glimmer-bench",
            Program::Top => "glimmer-top",
        }
    }

    /// The folder of its package in the repository.
    fn package_folder(self) -> &'static str {
        match self {
            Program::Server => "crates/glimmer",
            Program::Bench => "crates/bench",
            Program::Top => "crates/top",
        }
    }

    /// The path of its executable, in the folder of the running executable after resolving symbolic
    /// links.
    ///
    /// # Errors
    ///
    /// If it does not exist. The error names the command that builds it.
    pub fn find(self) -> Result<PathBuf, Missing> {
        let this = env::current_exe().ok();
        let folder = this.as_deref().and_then(Path::parent);
        let file = folder.map(|folder| folder.join(self.name()));
        file.filter(|file| file.is_file()).ok_or_else(|| Missing {
            program: self,
            folder: folder.map(Path::to_owned),
        })
    }
}

/// A program that should lie beside the running one is missing.
#[derive(Debug)]
pub struct Missing {
    program: Program,
    /// The folder that was searched, if the system reports where the running executable is.
    folder: Option<PathBuf>,
}

impl Missing {
    /// The one command that builds the program and puts it into the folder.
    fn command(&self) -> String {
        let (name, package) = (self.program.name(), self.program.package_folder());
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let last = folder.file_name().and_then(|last| last.to_str());
        match (last, folder.parent()) {
            (Some("debug"), _) => format!("cargo build -p {name}"),
            (Some("release"), _) | (None, _) => format!("cargo build --release -p {name}"),
            (Some("bin"), Some(root)) if root.ends_with(".cargo") => {
                format!("cargo install --path {package}")
            }
            (Some("bin"), Some(root)) => {
                format!("cargo install --path {package} --root {}", root.display())
            }
            _ => format!(
                "cargo build --release -p {name} && cp target/release/{name} {}",
                folder.display()
            ),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the program {}", self.program.name())?;
        match &self.folder {
            Some(folder) => write!(out, " is not in {}", folder.display())?,
            None => write!(
                out,
                " cannot be found: the system does not report where this program is"
            )?,
        }
        write!(out, "; build it: {}", self.command())
    }
}

impl std::error::Error for Missing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_fits_the_folder() {
        for (folder, command) in [
            ("/src/target/debug", "cargo build -p glimmer-top"),
            (
                "/src/target/release",
                "cargo build --release -p glimmer-top",
            ),
            ("/home/a/.cargo/bin", "cargo install --path crates/top"),
            (
                "/usr/local/bin",
                "cargo install --path crates/top --root /usr/local",
            ),
            (
                "/opt/cache",
                "cargo build --release -p glimmer-top && cp target/release/glimmer-top /opt/cache",
            ),
        ] {
            let missing = Missing {
                program: Program::Top,
                folder: Some(folder.into()),
            };
            assert_eq!(
                missing.to_string(),
                format!("the program glimmer-top is not in {folder}; build it: {command}")
            );
        }
    }

    #[test]
    fn what_is_not_beside_this_executable_is_missing() {
        let missing = Program::Server.find().unwrap_err();
        assert!(
            missing.to_string().contains("glimmer is not in /"),
            "{missing}"
        );
    }
}
