//! The test suites of memcached's clients, run against our server and against memcached.
//!
//! `tests/suites/suites.toml` has an entry for each. What an entry fetches lies in `.suites`, outside the repository's history. The table of
//! what passed and what failed is written to `docs/client-suites.md`.

mod catalogue;
mod fetch;
mod outcome;
mod server;
mod table;

use anyhow::{Context, bail};
use catalogue::Suite;
use fetch::Fetched;
use outcome::Outcomes;
use server::{Kind, Server};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::process::{self, program, run};

/// Where the entries are, and tests that stand in for a suite that no package carries.
const TESTS: &str = "tests/suites";
/// What is fetched and built, one folder for each suite.
const BUILT: &str = ".suites";
/// No suite takes longer with either server.
const PATIENCE_S: &str = "900";

/// One suite with both servers.
struct Report {
    name: String,
    about: String,
    notes: Vec<(String, String)>,
    result: Result<Results, String>,
}

/// What passed and what failed.
struct Results {
    version: String,
    glimmer: Outcomes,
    memcached: Outcomes,
}

/// Runs the named suites, or all of them, and enters what they found into the table. An error if a test fails with our server, passes with
/// memcached, and the catalogue does not say why.
pub fn check(chosen: &[String]) -> anyhow::Result<()> {
    let suites = catalogue::read()?;
    for name in chosen {
        if !suites.iter().any(|suite| suite.name == *name) {
            let names: Vec<_> = suites.iter().map(|suite| suite.name.as_str()).collect();
            bail!("{name} is none of the suites: {}", names.join(", "));
        }
    }
    run(&mut process::cargo(&["build", "-p", "glimmer", "--bins"]))?;
    let mut reports = Vec::new();
    for suite in &suites {
        if chosen.is_empty() || chosen.contains(&suite.name) {
            reports.push(report(suite)?);
        }
    }
    let order: Vec<_> = suites.into_iter().map(|suite| suite.name).collect();
    table::enter(&order, &reports)?;
    let unexplained: Vec<_> = reports.iter().flat_map(Report::unexplained).collect();
    if !unexplained.is_empty() {
        bail!(
            "tests that fail with our server alone:\n  {}",
            unexplained.join("\n  ")
        );
    }
    Ok(())
}

/// Runs one suite with both servers. A suite that cannot be run is reported, and is no error.
fn report(suite: &Suite) -> anyhow::Result<Report> {
    let result = match fetch::fetch(suite)? {
        Fetched::Ready { folder, version } => match outcomes(suite, &folder) {
            Ok((glimmer, memcached)) => Ok(Results {
                version,
                glimmer,
                memcached,
            }),
            Err(error) => Err(format!("{error:#}")),
        },
        Fetched::Missing(reason) => Err(reason),
    };
    match &result {
        Ok(results) => println!(
            "{}: Glimmer {}, memcached {}",
            suite.name, results.glimmer, results.memcached
        ),
        Err(reason) => println!("{}: not run: {reason}", suite.name),
    }
    Ok(Report {
        name: suite.name.clone(),
        about: suite.about.clone(),
        notes: suite.notes(),
        result,
    })
}

fn outcomes(suite: &Suite, folder: &Path) -> anyhow::Result<(Outcomes, Outcomes)> {
    let glimmer = outcomes_with(suite, folder, Kind::Glimmer)?;
    Ok((glimmer, outcomes_with(suite, folder, Kind::Memcached)?))
}

/// Runs the suite's command while a server listens on a port of its own.
fn outcomes_with(suite: &Suite, folder: &Path, kind: Kind) -> anyhow::Result<Outcomes> {
    let server = Server::start(kind, &suite.flags, suite.port)?;
    let log = folder.join(format!("{kind}.log"));
    let output = std::fs::File::create(&log)?;
    // The script's own exit code says no more than the tests that it lists.
    program(
        "timeout",
        &["--kill-after=10", PATIENCE_S, "bash", "-uc", &suite.run],
    )
    .current_dir(folder)
    .envs(environment(suite)?)
    .env("PATH", server.path())
    .env("SERVER", kind.to_string())
    .env("HOST", server::HOST)
    .env("PORT", server.port().to_string())
    .stdin(Stdio::null())
    .stdout(output.try_clone()?)
    .stderr(output)
    .status()
    .context("cannot start timeout or bash")?;
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    let outcomes = Outcomes::of(&text, suite.format);
    if outcomes.is_empty() {
        bail!(
            "no test ran with {kind}, whose log ends with: {}",
            fetch::last_line(&text)
        );
    }
    Ok(outcomes)
}

/// What a suite's commands are told besides the server.
fn environment(suite: &Suite) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    Ok(vec![
        ("SUITES", std::path::absolute(TESTS)?),
        (
            "TESTS",
            std::path::absolute(Path::new(TESTS).join(&suite.name))?,
        ),
        (
            "GLIMMER",
            std::path::absolute(process::target_dir().join("debug/glimmer"))?,
        ),
    ])
}

impl Report {
    /// Tests that fail with our server, pass with memcached, and have no note.
    fn unexplained(&self) -> Vec<String> {
        let Ok(results) = &self.result else {
            return Vec::new();
        };
        let failed = results.failed_here_alone();
        failed
            .filter(|test| self.note(test).is_none())
            .map(|test| format!("{}: {test}", self.name))
            .collect()
    }

    /// Why a test fails.
    fn note(&self, test: &str) -> Option<&str> {
        let mut notes = self.notes.iter();
        let found = notes.find(|(part, _)| test.contains(part.as_str()));
        found.map(|(_, why)| why.as_str())
    }
}

impl Results {
    fn failed_here_alone(&self) -> impl Iterator<Item = &str> {
        let failed = self.glimmer.failed();
        failed.filter(|test| self.memcached.has_passed(test))
    }
}
