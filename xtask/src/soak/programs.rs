//! Test programs, to be run without cargo, and which of their tests draw a seed.

use super::stages::{Kind, Stage, Which};
use crate::process;
use anyhow::{Context, bail};
use cargo_metadata::{Message, TargetKind};
use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a random test prints before its seed.
const SEED: &str = "GLIMMER_SEED=";

/// One test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Arguments with which cargo runs it, such as `-p glimmer-store --test tables`.
    pub selected: String,
    path: PathBuf,
    /// The folder in which `cargo test` would run it.
    folder: PathBuf,
}

impl Program {
    /// Runs it with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null());
        command
    }

    /// The names of its tests that contain `name`.
    pub fn tests(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let output = self.command(&["--list", "--format=terse"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let ignored = self.command(&["--list", "--format=terse", "--ignored"]);
        let ignored = { ignored }.output()?;
        let ignored = String::from_utf8_lossy(&ignored.stdout).into_owned();
        let is_ignored = |test: &str| {
            let mut lines = ignored.lines();
            lines.any(|line| line.strip_suffix(": test") == Some(test))
        };
        let chosen = names.filter(|test| test.contains(name) && !is_ignored(test));
        Ok(chosen.map(str::to_owned).collect())
    }

    /// The names of those tests that draw a seed, by running all of them once.
    pub fn seeded(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let tests = self.tests(name)?;
        if tests.is_empty() {
            return Ok(tests);
        }
        let output = self.command(&["--show-output", name]).output()?;
        let seeded = seeded(&String::from_utf8_lossy(&output.stdout));
        Ok(tests
            .into_iter()
            .filter(|test| seeded.contains(test))
            .collect())
    }
}

/// The tests whose output, as the test harness shows it, has a seed.
fn seeded(shown: &str) -> BTreeSet<String> {
    let mut seeded = BTreeSet::new();
    let mut test = None;
    for line in shown.lines() {
        let head = line.strip_prefix("---- ");
        if let Some(name) = head.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test = Some(name);
        } else if line.starts_with(SEED) {
            seeded.extend(test.map(str::to_owned));
        }
    }
    seeded
}

/// Builds the tests of these crates.
pub fn build(which: Which) -> anyhow::Result<Vec<Program>> {
    let mut cargo = process::cargo(&[
        "test",
        "--no-run",
        "--profile=soak",
        "--message-format=json-render-diagnostics",
    ]);
    match which {
        Which::Others => {
            cargo.arg("--workspace");
            for name in Stage::all().flat_map(named) {
                cargo.args(["--exclude", name]);
            }
        }
        _ => {
            for name in which.named() {
                cargo.args(["--package", name]);
            }
        }
    }
    let mut cargo = cargo
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
            let manifest = &artifact.manifest_path;
            let folder = manifest.parent().expect("a manifest has a folder");
            let target = artifact.target;
            let chosen = match target.kind.first() {
                Some(TargetKind::Test) => format!("--test {}", target.name),
                Some(TargetKind::Bin) => format!("--bin {}", target.name),
                _ => "--lib".to_owned(),
            };
            programs.push(Program {
                selected: format!("-p {} {chosen}", package(manifest)?),
                path: path.into(),
                folder: folder.into(),
            });
        }
    }
    let status = cargo.wait()?;
    if !status.success() {
        bail!("cargo test --no-run: {status}");
    }
    programs.sort_by(|one, other| one.selected.cmp(&other.selected));
    Ok(programs)
}

fn named(stage: Stage) -> &'static [&'static str] {
    match stage.kind() {
        Kind::Crates(which) => which.named(),
        _ => &[],
    }
}

/// The name of the crate with this manifest.
fn package(manifest: &cargo_metadata::camino::Utf8Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(manifest)?;
    let manifest: toml::Value = toml::from_str(&text)?;
    let name = manifest["package"]["name"].as_str();
    Ok(name.context("a crate has a name")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_with_a_seed_are_recognised_by_their_output() {
        let shown = "running 3 tests\ntest a::b ... ok\n\nsuccesses:\n\n\
             ---- a::b stdout ----\nGLIMMER_SEED=7\n\n---- c stdout ----\nno seed\n\n\
             successes:\n    a::b\n\nfailures:\n\n---- d stdout ----\n2 workers\nGLIMMER_SEED=9\n";
        let found: Vec<String> = seeded(shown).into_iter().collect();
        assert_eq!(found, ["a::b", "d"]);
    }
}
