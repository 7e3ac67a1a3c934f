//! The entries of `tests/suites/suites.toml`.

use super::TESTS;
use super::outcome::Format;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The test suite of one client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The client's name, and of the suite's folder in `tests/suites`.
    pub name: String,
    /// Whose tests they are.
    pub about: String,
    /// Programs that the commands need, each with the Debian package that brings it.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// Debian packages that bring no program.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Fetches the tests into the current folder, and what they need. The last line that it prints is the version.
    pub fetch: String,
    /// Flags that the server is started with.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The server's port, where the tests insist on one.
    pub port: Option<u16>,
    /// Runs the tests in the folder against the server at `$HOST` and `$PORT`.
    pub run: String,
    /// How the command's output names the tests.
    pub format: Format,
    /// Why tests fail, by a part of their names.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

impl Suite {
    /// The name of the folder that the suite is fetched into: the suite's name without spaces, which some build systems refuse.
    pub fn folder(&self) -> String {
        self.name.replace(|c: char| !c.is_alphanumeric(), "-")
    }

    /// Parts of tests' names, and why those fail. The longest part comes first.
    pub fn notes(&self) -> Vec<(String, String)> {
        let mut notes: Vec<_> = self.notes.clone().into_iter().collect();
        notes.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
        notes
    }
}

#[derive(Deserialize)]
struct Catalogue {
    suite: Vec<Suite>,
}

/// Every entry, in the order of the file.
pub fn read() -> anyhow::Result<Vec<Suite>> {
    let path = Path::new(TESTS).join("suites.toml");
    let text = std::fs::read_to_string(&path)?;
    let catalogue: Catalogue =
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(catalogue.suite)
}
