//! Writes manual pages and completions into a folder.

use std::path::PathBuf;

/// Write manual pages and completions
#[derive(Debug, clap::Parser)]
#[command(name = "glimmer-packaging")]
struct Arguments {
    /// The folder, which is made
    folder: PathBuf,
}

fn main() -> std::process::ExitCode {
    glimmer_cli::run(|arguments: Arguments| glimmer_packaging::write(&arguments.folder))
}
