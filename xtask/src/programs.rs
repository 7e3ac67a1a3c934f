//! The programs that `cargo test` builds, to be run without cargo.

use crate::lanes;
use crate::process;
use anyhow::{Context, bail};
use cargo_metadata::{Message, TargetKind};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs this long counts as one that hangs.
const HANGS: Duration = Duration::from_secs(1200);

/// What a random test prints before its seed.
const SEED: &str = "GLIMMER_SEED=";

/// One test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its crate.
    pub package: String,
    /// The file of its tests, without `.rs`, or the name of what its tests are inside of.
    pub target: String,
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
        let shown = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            println!("{}: FAILED: {}\n{shown}", self.selected, output.status);
        }
        let seeded = seeded(&shown);
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

/// The tests of the whole workspace. One command builds them for all stages: cargo builds a crate
/// again where fewer crates are chosen, as they ask for fewer features of what they share. Examples
/// are left to Clippy and to the count of instructions: no test runs one.
pub fn of_workspace() -> anyhow::Result<Vec<Program>> {
    build(process::cargo(&["test", "--workspace", "--tests"]))
}

/// Builds what this `cargo test` would run.
pub fn build(mut cargo: Command) -> anyhow::Result<Vec<Program>> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
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
            let package = package(manifest)?;
            programs.push(Program {
                selected: format!("-p {package} {chosen}"),
                package,
                target: target.name,
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

/// Runs programs, one per core at a time, with these variables in their environment. Prints a line
/// for each that passes and everything of each that fails. The error names the tests that failed.
pub fn run(programs: &[Program], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let faults = lanes::one_per_core(programs, |program| program.fault(variables))?;
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    if !faults.is_empty() {
        bail!("tests failed:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

impl Program {
    /// Runs all of its tests, and returns which of them failed.
    fn fault(&self, variables: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
        let begun = Instant::now();
        let mut output = tempfile::tempfile().context("a file for the output")?;
        let mut command = self.command(&[]);
        command
            .envs(variables.iter().copied())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let status = process::run_until(&mut command, HANGS)?;
        output.rewind()?;
        let mut said = Vec::new();
        output.read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let seconds = begun.elapsed().as_secs_f64();
        if status.is_some_and(|status| status.success()) {
            println!("{}: {} in {seconds:.1} s", self.selected, passed(&said));
            return Ok(None);
        }
        let how = status.map_or("it hangs".to_owned(), |status| status.to_string());
        println!(
            "{}: FAILED after {seconds:.1} s: {how}\n{said}",
            self.selected
        );
        let mut fault = format!("{}: {how}", self.selected);
        for test in said.lines().filter(|line| is_failed(line)) {
            write!(fault, "\n    {test}").expect("a string grows");
        }
        Ok(Some(fault))
    }
}

/// How many tests passed, in what the test harness prints.
fn passed(said: &str) -> &str {
    let mut lines = said.lines().rev();
    let result = lines.find_map(|line| line.strip_prefix("test result: ok. "));
    let counts = result.and_then(|counts| counts.split(';').next());
    counts.unwrap_or("no tests")
}

fn is_failed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with("FAILED")
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

    #[test]
    fn what_passed_and_what_failed_is_in_the_output() {
        let said = "running 2 tests\ntest a::b ... FAILED\ntest c ... ok\n\n\
             test result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.01s\n";
        assert_eq!(passed(said), "2 passed");
        assert_eq!(passed("Segmentation fault"), "no tests");
        let failed: Vec<&str> = said.lines().filter(|line| is_failed(line)).collect();
        assert_eq!(failed, ["test a::b ... FAILED"]);
    }
}
