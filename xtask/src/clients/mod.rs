//! Real memcached clients against the running server: sets up what they need, then runs `tests/clients` under pytest.

mod libraries;
mod tools;

use crate::process::{self, program, run};

const TESTS: &str = "tests/clients";

/// Builds the server and runs every client test against it.
pub fn check() -> anyhow::Result<()> {
    tools::install();
    let python = libraries::python()?;
    libraries::build()?;
    libraries::wheel(&python)?;
    // With the tests, whose dependencies ask for more features: what `cargo test` has built is then built already.
    run(&mut process::cargo(&[
        "build",
        "--workspace",
        "--bins",
        "--tests",
    ]))?;
    let server = process::target_dir().join("debug/glimmer");
    let server = std::path::absolute(&server)?;
    run(program(
        &python,
        &["-m", "pytest", TESTS, "-q", "-p", "no:cacheprovider"],
    )
    .env("GLIMMER_BIN", &server)
    .env("PYTHONDONTWRITEBYTECODE", "1"))
}
