//! The entries of `tests/suites/suites.toml`.

use super::TESTS;
use super::outcome::Format;
use super::server::Kind;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The test suite of one client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The client's name, which is also the name of the suite's folder in `tests/suites`.
    pub name: String,
    /// Whose tests these are.
    pub about: String,
    /// Programs that the commands need, with their Debian packages.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// Debian packages without a program.
    #[serde(default)]
    pub debian: Vec<String>,
    /// A script that fetches the tests and their dependencies into the current folder. Its last
    /// line of output is the version.
    pub fetch: String,
    /// The server that ours is compared with.
    #[serde(default)]
    pub peer: Kind,
    /// Flags of the server.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The server's port, if the tests require a certain one.
    pub port: Option<u16>,
    /// A script that runs the tests in the folder against the server at `$HOST` and `$PORT`.
    pub run: String,
    /// The format of the script's output.
    pub format: Format,
    /// Reasons for failing tests, by a part of their names.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

impl Suite {
    /// The folder of the suite: its name without spaces, which some build systems refuse.
    pub fn folder(&self) -> String {
        self.name.replace(|c: char| !c.is_alphanumeric(), "-")
    }

    /// Parts of test names with the reason for the failure, longest part first.
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

/// All entries, in the order of the file.
pub fn read() -> anyhow::Result<Vec<Suite>> {
    let path = Path::new(TESTS).join("suites.toml");
    let text = std::fs::read_to_string(&path)?;
    let catalogue: Catalogue =
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(catalogue.suite)
}
