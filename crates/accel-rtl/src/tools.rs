//! The programs that simulation takes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, found.
#[derive(Clone, Debug, Hash)]
pub struct Tools {
    /// Verilator.
    pub verilator: PathBuf,
    /// Its version, as it prints it.
    pub version: String,
    /// The folder of its C++ headers and runtime.
    pub include: PathBuf,
    /// A C++ compiler.
    pub compiler: String,
}

/// What to do if Verilator is missing.
const ADVICE: &str = "install them with: apt-get install verilator g++";

impl Tools {
    /// Looks for the programs.
    ///
    /// # Errors
    ///
    /// What is missing, and how to get it.
    pub fn find() -> Result<Tools, String> {
        let verilator =
            PathBuf::from(std::env::var_os("VERILATOR").unwrap_or_else(|| "verilator".into()));
        let version = output(&verilator, &["--version"])
            .ok_or_else(|| format!("Verilator is missing; {ADVICE}"))?;
        let root = output(&verilator, &["--getenv", "VERILATOR_ROOT"]).unwrap_or_default();
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        if output(Path::new(&compiler), &["--version"]).is_none() {
            return Err(format!("the C++ compiler {compiler} is missing; {ADVICE}"));
        }
        Ok(Tools {
            include: Path::new(root.trim()).join("include"),
            verilator,
            version,
            compiler,
        })
    }

    /// The programs, or `None` with a note on standard error, upon which a test passes untried.
    ///
    /// # Panics
    ///
    /// If they are missing where CI is true: there a test that tries nothing is a failure.
    pub fn for_test() -> Option<Tools> {
        match Tools::find() {
            Ok(tools) => Some(tools),
            Err(missing) => {
                let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
                assert!(!in_ci, "{missing}");
                eprintln!("not tried: {missing}");
                None
            }
        }
    }
}

fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}
