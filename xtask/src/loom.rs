//! Runs the model checker, and shows that it notices defects.
//!
//! A crate whose code threads share has tests named `loom_*`, and a `weakenings.txt` with one line
//! per fence or recheck that its argument needs: `name<TAB>test<TAB>what it removes`. The test is
//! one test, a whole file of tests, or `file test`. With `GLIMMER_WEAKEN=name` in the environment
//! the code omits that fence or recheck, and the test must fail. Code that several test files
//! exercise has a line for each of them.
//!
//! Both come out the same as long as a crate and what it is built from stay the same, so the test
//! suite leaves those crates out that have passed as they are (`passed`).

use crate::passed::{Check, Inputs, Which};
use crate::programs::{self, Program};
use crate::{lanes, process};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is built for the model checker of a crate's tests.
const TESTS: &[&str] = &["tests/loom_", "tests/support/"];

/// A weakening is noticed within seconds. One that runs this long counts as unnoticed.
const WEAKENED_LIMIT: Duration = Duration::from_secs(300);

/// Runs every loom test of these crates on the unmodified code.
pub fn check(which: Which) -> anyhow::Result<()> {
    let crates = crates(which, "loom")?;
    if crates.is_empty() {
        return Ok(());
    }
    programs::run(&built(&names(&crates))?, &[])?;
    crates.iter().try_for_each(|(_, check)| check.note())
}

/// Runs each weakening of these crates and requires its test to fail.
pub fn check_weakened(which: Which) -> anyhow::Result<()> {
    let crates = crates(which, "weakened")?;
    let mut variants = variants()?;
    variants.retain(|variant| crates.iter().any(|(name, _)| *name == variant.package));
    if variants.is_empty() {
        return Ok(());
    }
    weaken(&variants, &built(&names(&crates))?)?;
    crates.iter().try_for_each(|(_, check)| check.note())
}

/// Runs the weakenings whose names contain this.
pub fn check_weakened_named(part: &str) -> anyhow::Result<()> {
    let mut variants = variants()?;
    variants.retain(|variant| variant.name.contains(part));
    if variants.is_empty() {
        bail!("no weakened variant by that name: see the crates' weakenings.txt");
    }
    weaken(&variants, &built_all()?)
}

/// Runs each weakening and requires its test to fail.
fn weaken(variants: &[Variant], programs: &[Program]) -> anyhow::Result<()> {
    let verdicts = lanes::one_per_core(variants, |variant| {
        let verdict = variant.try_out(programs)?;
        println!("weakened {}: {}", variant.name, verdict.words());
        Ok(verdict)
    })?;
    let rows: Vec<_> = variants.iter().zip(verdicts).collect();
    println!(
        "\n{:<10} {:<28} {:<78} removed",
        "verdict", "variant", "test"
    );
    for (variant, verdict) in &rows {
        println!(
            "{:<10} {:<28} {:<78} {}",
            verdict.words(),
            variant.name,
            variant.test,
            variant.removes
        );
    }
    let noticed = rows
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Noticed)
        .count();
    println!(
        "weakened: {noticed} passed, {} failed",
        rows.len() - noticed
    );
    if noticed < rows.len() {
        bail!("{} weakened variants went unnoticed", rows.len() - noticed);
    }
    Ok(())
}

fn crate_dirs() -> anyhow::Result<Vec<PathBuf>> {
    let mut dirs: Vec<PathBuf> = std::fs::read_dir("crates")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    dirs.sort();
    Ok(dirs)
}

fn package_name(dir: &Path) -> String {
    format!(
        "glimmer-{}",
        dir.file_name().unwrap_or_default().to_string_lossy()
    )
}

fn crates_with_loom_tests() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for dir in crate_dirs()? {
        let Ok(tests) = std::fs::read_dir(dir.join("tests")) else {
            continue;
        };
        let is_loom =
            |file: std::fs::DirEntry| file.file_name().to_string_lossy().starts_with("loom_");
        if tests.filter_map(Result::ok).any(is_loom) {
            names.push(package_name(&dir));
        }
    }
    if names.is_empty() {
        bail!("no crate has a tests/loom_*.rs");
    }
    Ok(names)
}

/// The crates with loom tests that are checked, each with its check, whose name begins like this.
fn crates(which: Which, kind: &str) -> anyhow::Result<Vec<(String, Check)>> {
    let mut crates = Vec::new();
    for name in crates_with_loom_tests()? {
        let inputs = Inputs {
            paths: &["xtask/src/loom.rs"],
            package: Some(&name),
            tests: TESTS,
        };
        let check = Check::new(&format!("{kind} {name}"), inputs)?;
        if which == Which::All || !check.is_left_out() {
            crates.push((name, check));
        }
    }
    Ok(crates)
}

fn names(crates: &[(String, Check)]) -> Vec<&str> {
    crates.iter().map(|(name, _)| &**name).collect()
}

/// The loom tests of all crates.
pub fn built_all() -> anyhow::Result<Vec<Program>> {
    let crates = crates_with_loom_tests()?;
    built(&crates.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The loom tests of these crates, in a target folder of their own so that other builds keep their
/// artifacts.
fn built(crates: &[&str]) -> anyhow::Result<Vec<Program>> {
    let mut command = process::cargo(&["test", "--profile", "loom", "--test", "loom_*"]);
    command
        .args(crates.iter().flat_map(|name| ["--package", name]))
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", process::target_dir().join("loom"));
    programs::build(command)
}

struct Variant {
    package: String,
    name: String,
    test: String,
    removes: String,
}

fn variants() -> anyhow::Result<Vec<Variant>> {
    let mut variants = Vec::new();
    for dir in crate_dirs()? {
        let file = dir.join("weakenings.txt");
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            variants.push(
                parse_variant(&package_name(&dir), line)
                    .with_context(|| format!("{}: {line:?}", file.display()))?,
            );
        }
    }
    Ok(variants)
}

fn parse_variant(package: &str, line: &str) -> anyhow::Result<Variant> {
    let mut fields = line
        .split('\t')
        .map(str::trim)
        .filter(|field| !field.is_empty());
    let (Some(name), Some(test), Some(removes), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        bail!("expected name, test, and what it removes, separated by tabs");
    };
    Ok(Variant {
        package: package.into(),
        name: name.into(),
        test: test.into(),
        removes: removes.into(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The test failed, as it must.
    Noticed,
    /// The test passed: it does not depend on what was removed.
    Passed,
    /// The test exceeded the time limit.
    TimedOut,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Verdict::Noticed => "noticed",
            Verdict::Passed => "PASSED",
            Verdict::TimedOut => "TIMED OUT",
        }
    }
}

impl Variant {
    fn try_out(&self, programs: &[Program]) -> anyhow::Result<Verdict> {
        let mut programs: Vec<&Program> = programs
            .iter()
            .filter(|program| program.package == self.package)
            .collect();
        let is_file = |name: &str| programs.iter().any(|program| program.target == name);
        let (file, filter) = match self.test.split_once(' ') {
            Some((file, test)) => (Some(file), Some(test)),
            None if is_file(&self.test) => (Some(&*self.test), None),
            None => (None, Some(&*self.test)),
        };
        programs.retain(|program| file.is_none_or(|file| program.target == file));
        let logs = process::target_dir().join("loom").join("weakened");
        std::fs::create_dir_all(&logs)?;
        let log_path = logs.join(format!("{} {}.log", self.name, self.test));
        let log = std::fs::File::create(&log_path)?;
        let mut verdict = Verdict::Passed;
        for program in programs {
            let arguments: Vec<&str> = filter.into_iter().chain(["--exact"]).collect();
            let mut command = program.command(&arguments);
            command
                .env("GLIMMER_WEAKEN", &self.name)
                .stdout(log.try_clone()?)
                .stderr(log.try_clone()?);
            match process::run_until(&mut command, WEAKENED_LIMIT)? {
                Some(status) if status.success() => continue,
                Some(_) => verdict = Verdict::Noticed,
                None => verdict = Verdict::TimedOut,
            }
            break;
        }
        let output = String::from_utf8_lossy(&std::fs::read(&log_path)?).into_owned();
        // A filter that matches nothing also succeeds, and a test that cannot start also fails.
        if !has_run_a_test(&output) {
            bail!(
                "variant {}: there is no test {} in {}:\n{output}",
                self.name,
                self.test,
                self.package
            );
        }
        Ok(verdict)
    }
}

fn has_run_a_test(output: &str) -> bool {
    let started = output
        .lines()
        .filter_map(|line| line.strip_prefix("running "));
    started
        .filter_map(|rest| rest.split(' ').next())
        .any(|count| count != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_three_fields() {
        let variant = parse_variant(
            "glimmer-store",
            "tail-recheck\treader_sees_tail\tthe second look at the tail",
        )
        .unwrap();
        assert_eq!(
            (variant.name.as_str(), variant.test.as_str()),
            ("tail-recheck", "reader_sees_tail")
        );
        assert!(parse_variant("glimmer-store", "tail-recheck reader_sees_tail").is_err());
    }

    #[test]
    fn a_run_without_tests_is_none() {
        assert!(has_run_a_test("\nrunning 1 test\nF\n"));
        assert!(has_run_a_test("running 0 tests\n\nrunning 2 tests\n"));
        assert!(!has_run_a_test(
            "running 0 tests\ntest result: ok. 0 passed"
        ));
        assert!(!has_run_a_test("error: no test target"));
    }

    #[test]
    fn tests_of_the_model_checker_have_only_files_that_count() {
        std::env::set_current_dir(process::repository()).unwrap();
        let mut counted = 0;
        for dir in crate_dirs().unwrap() {
            for entry in std::fs::read_dir(dir.join("tests")).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if !name.starts_with("loom_") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let elsewhere = text.lines().find(|line| {
                    let is_module = line.ends_with(';') && line.trim().starts_with("mod ");
                    let is_path = line.contains("#[path") && !line.contains("\"support/");
                    (is_module && !text.contains("#[path"))
                        || is_path
                        || line.contains("include_")
                        || line.contains("include!")
                });
                assert_eq!(elsewhere, None, "{}", path.display());
                counted += 1;
            }
        }
        assert!(counted > 0);
    }

    #[test]
    fn every_recorded_variant_is_well_formed() {
        std::env::set_current_dir(process::repository()).unwrap();
        variants().unwrap();
    }
}
