//! Runs memcached's own test programs against our server.
//!
//! They are not part of this repository; the caller names a folder with memcached's source. The
//! test programs start `./memcached-debug` with memcached's flags and connect to it over a Unix or
//! TCP socket.

use crate::process::{self, program, run};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Output;

/// Time limit of a test program in seconds. With memcached itself none takes longer.
const PATIENCE_S: &str = "180";

/// Test programs of features that this server does not have: memcached's proxy, and storage on
/// flash.
const ELSEWHERE: &[&str] = &["proxy", "extstore"];

/// Test programs of TLS begin so. They need Perl's `IO::Socket::SSL`, and skip everything unless a
/// variable asks for them.
const TLS: &str = "ssl_";

/// Runs the named test programs, or all that concern features of this server, and prints a table.
/// Fails unless all pass.
pub fn check(source: &Path, server: Option<PathBuf>, chosen: &[String]) -> anyhow::Result<()> {
    let server = match server {
        Some(server) => std::path::absolute(server)?,
        None => {
            run(&mut process::cargo(&["build", "-p", "glimmer", "--bins"]))?;
            std::path::absolute(process::target_dir().join("debug/glimmer"))?
        }
    };
    let folder = lay_out(source, &server)?;
    let names = test_names(&folder, chosen)?;
    let mut failed = 0;
    for name in &names {
        let outcome = tried(&folder, name)?;
        failed += usize::from(!outcome.passed);
        println!("{name:<28} {outcome}");
    }
    println!("{} passed, {failed} failed", names.len() - failed);
    if failed > 0 {
        bail!("{failed} of {} test programs failed", names.len());
    }
    Ok(())
}

/// What came out of each test program that concerns features of this server: those of TLS, or the
/// others.
pub fn outcomes(
    source: &Path,
    server: &Path,
    is_tls: bool,
) -> anyhow::Result<Vec<(String, Outcome)>> {
    let folder = lay_out(source, server)?;
    let mut names = test_names(&folder, &[])?;
    names.retain(|name| name.starts_with(TLS) == is_tls);
    let mut outcomes = Vec::new();
    for name in names {
        let outcome = tried(&folder, &name)?;
        println!("{name:<28} {outcome}");
        outcomes.push((name, outcome));
    }
    Ok(outcomes)
}

/// Runs one test program.
fn tried(folder: &Path, name: &str) -> anyhow::Result<Outcome> {
    let output = program("timeout", &["--kill-after=5", PATIENCE_S, "perl"])
        .arg(format!("t/{name}"))
        .envs(name.starts_with(TLS).then_some(("SSL_TEST", "1")))
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .context("cannot start timeout or perl")?;
    Ok(Outcome::of(&output))
}

/// A folder that looks to the test programs like a fresh build of memcached.
fn lay_out(source: &Path, server: &Path) -> anyhow::Result<PathBuf> {
    let source = std::path::absolute(source)?;
    let folder = std::path::absolute(process::target_dir().join("memcached-tests"))?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let tests = source.join("t");
    if !tests.is_dir() {
        bail!(
            "{} has no folder t: is it memcached's source?",
            source.display()
        );
    }
    std::os::unix::fs::symlink(tests, folder.join("t"))?;
    std::os::unix::fs::symlink(server, folder.join("memcached-debug"))?;
    // Their helper that stops a server which outlives its test.
    run(program("cc", &["-o"])
        .arg(folder.join("timedrun"))
        .arg(source.join("timedrun.c")))?;
    Ok(folder)
}

/// File names in `t`, in order.
fn test_names(folder: &Path, chosen: &[String]) -> anyhow::Result<Vec<String>> {
    if !chosen.is_empty() {
        let with_suffix = |name: &String| format!("{}.t", name.trim_end_matches(".t"));
        return Ok(chosen.iter().map(with_suffix).collect());
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("t"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".t") && !ELSEWHERE.iter().any(|part| name.contains(part)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The output of a test program, in the Test Anything Protocol.
pub struct Outcome {
    passed: bool,
    steps_passed: usize,
    steps_planned: Option<String>,
    /// The first failed step, or the last error message if the program died earlier.
    fault: String,
}

impl Outcome {
    /// Whether all of it passed.
    pub fn has_passed(&self) -> bool {
        self.passed
    }

    fn of(output: &Output) -> Outcome {
        let report = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        // The plan may come first or last.
        let plan = report.lines().find_map(|line| line.strip_prefix("1.."));
        let steps_passed = report
            .lines()
            .filter(|line| line.starts_with("ok "))
            .count();
        let first_failed = report.lines().find(|line| line.starts_with("not ok "));
        let last_complaint = complaints.lines().rfind(|line| !line.starts_with('#'));
        Outcome {
            passed: output.status.success() && first_failed.is_none(),
            steps_passed,
            steps_planned: plan.map(str::to_owned),
            fault: match (first_failed, output.status.code()) {
                (Some(line), _) => line.to_owned(),
                (None, Some(124 | 137)) => format!("not done after {PATIENCE_S} s"),
                (None, _) => last_complaint.unwrap_or_default().to_owned(),
            },
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let planned = self.steps_planned.as_deref().unwrap_or("?");
        if self.passed {
            write!(f, "passed   {planned}")
        } else {
            write!(
                f,
                "FAILED   {} of {planned}: {}",
                self.steps_passed, self.fault
            )
        }
    }
}
