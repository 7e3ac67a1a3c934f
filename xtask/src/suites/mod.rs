//! Runs the test suites of memcached's clients against our server and against memcached, and those
//! of Redis' clients against our server and against Redis.
//!
//! `tests/suites/suites.toml` has an entry for each suite. Fetched files go to `.suites`, which git
//! ignores. The table of results goes to `docs/client-suites.md`.

mod catalogue;
mod fetch;
pub mod outcome;
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

/// The entries, and tests for clients whose packages have no test suite.
const TESTS: &str = "tests/suites";
/// Fetched and built files, one folder per suite.
const BUILT: &str = ".suites";
/// Time limit of a suite in seconds. No suite takes longer with either server.
const PATIENCE_S: &str = "900";

/// The results of one suite with both servers.
struct Report {
    name: String,
    about: String,
    peer: Kind,
    notes: Vec<(String, String)>,
    result: Result<Results, String>,
}

/// The results of a suite.
struct Results {
    version: String,
    glimmer: Outcomes,
    peer: Outcomes,
}

/// Runs the named suites, or all of them, and writes the results into the table. Fails if a test
/// fails with our server but passes with the other one, and the catalogue does not explain it.
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

/// Runs one suite with both servers. A suite that cannot run is reported but is not an error.
fn report(suite: &Suite) -> anyhow::Result<Report> {
    let result = match fetch::fetch(suite)? {
        Fetched::Ready { folder, version } => match outcomes(suite, &folder) {
            Ok((glimmer, peer)) => Ok(Results {
                version,
                glimmer,
                peer,
            }),
            Err(error) => Err(format!("{error:#}")),
        },
        Fetched::Missing(reason) => Err(reason),
    };
    match &result {
        Ok(results) => println!(
            "{}: Glimmer {}, {} {}",
            suite.name, results.glimmer, suite.peer, results.peer
        ),
        Err(reason) => println!("{}: not run: {reason}", suite.name),
    }
    Ok(Report {
        name: suite.name.clone(),
        about: suite.about.clone(),
        peer: suite.peer,
        notes: suite.notes(),
        result,
    })
}

fn outcomes(suite: &Suite, folder: &Path) -> anyhow::Result<(Outcomes, Outcomes)> {
    let glimmer = outcomes_with(suite, folder, Kind::Glimmer)?;
    Ok((glimmer, outcomes_with(suite, folder, suite.peer)?))
}

/// Runs the suite's script while a server listens on its own port.
fn outcomes_with(suite: &Suite, folder: &Path, kind: Kind) -> anyhow::Result<Outcomes> {
    let server = Server::start(kind, &suite.flags, suite.port)?;
    let log = folder.join(format!("{kind}.log"));
    let output = std::fs::File::create(&log)?;
    // The list of tests says more than the script's exit code, which is ignored.
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

/// Environment variables of a suite's scripts, in addition to the server's address.
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
    /// Tests that fail with our server, pass with the other one, and have no note.
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

    /// The reason why a test fails.
    fn note(&self, test: &str) -> Option<&str> {
        let mut notes = self.notes.iter();
        let found = notes.find(|(part, _)| test.contains(part.as_str()));
        found.map(|(_, why)| why.as_str())
    }
}

impl Results {
    fn failed_here_alone(&self) -> impl Iterator<Item = &str> {
        let failed = self.glimmer.failed();
        failed.filter(|test| self.peer.has_passed(test))
    }
}
