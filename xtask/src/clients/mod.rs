//! Runs real memcached clients against the server: installs what they need, then runs
//! `tests/clients` with pytest.

mod libraries;
mod needs;

pub use libraries::python;

use crate::process::{self, program, run};
use crate::{programs, tools};
use std::path::PathBuf;
use std::process::Command;

const TESTS: &str = "tests/clients";

/// The client tests, ready to run.
pub struct Ready {
    python: PathBuf,
    server: PathBuf,
}

impl Ready {
    /// Runs all tests, unless the arguments for pytest select some.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let fixed = ["-m", "pytest", TESTS, "-q", "-p", "no:cacheprovider"];
        let mut command = program(&self.python, &fixed);
        command
            .args(arguments)
            .env("GLIMMER_BIN", &self.server)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// The Python of the tests, beside libraries of other languages, and with our own client.
pub fn with_libraries() -> anyhow::Result<PathBuf> {
    let python = libraries::python()?;
    libraries::build()?;
    libraries::wheel(&python)?;
    Ok(python)
}

/// Installs what the tests need and builds the server.
pub fn prepare() -> anyhow::Result<Ready> {
    // Tests skip what is still missing.
    tools::install(needs::TOOLS);
    let python = with_libraries()?;
    // The server and the examples are built together with those of other stages.
    programs::of_workspace()?;
    let server = process::target_dir().join("debug/glimmer");
    let server = std::path::absolute(&server)?;
    Ok(Ready { python, server })
}

/// Builds the server and runs every client test against it.
pub fn check() -> anyhow::Result<()> {
    run(&mut prepare()?.command(&[]))
}
