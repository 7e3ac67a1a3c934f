//! The programs that `cargo test` builds, to be run without cargo.

use crate::process;
use anyhow::{Context, bail};
use cargo_metadata::Message;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One test program.
pub struct Program {
    /// Its crate and target, such as `glimmer-store tables`.
    pub name: String,
    path: PathBuf,
    /// The folder in which `cargo test` would run it.
    folder: PathBuf,
}

impl Program {
    /// Runs its tests whose names contain `name`.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.path);
        if !name.is_empty() {
            command.arg(name);
        }
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null());
        command
    }
}

/// Builds the tests of every crate.
pub fn build() -> anyhow::Result<Vec<Program>> {
    let mut cargo = process::cargo(&[
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ])
    .stdin(Stdio::null())
    .stdout(Stdio::piped())
    .spawn()
    .context("cannot start cargo")?;
    let messages = cargo.stdout.take().expect("it is piped");
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(messages)) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.profile.test
            && let Some(path) = artifact.executable
        {
            let folder = artifact
                .manifest_path
                .parent()
                .expect("a manifest has a folder");
            let package = folder.file_name().unwrap_or_default();
            programs.push(Program {
                name: format!("{package} {}", artifact.target.name),
                path: path.into(),
                folder: folder.into(),
            });
        }
    }
    let status = cargo.wait()?;
    if !status.success() {
        bail!("cargo test --no-run: {status}");
    }
    Ok(programs)
}
