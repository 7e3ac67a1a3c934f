//! The scorecard of `docs/conformance.md`: what passed with this server, beside memcached.
//!
//! It has parts: memcached's own test programs, the test suites of clients, proxies, exporters and
//! recipes. Each part has its record in `docs/conformance`, a row for each thing that was tried,
//! with its date and commit. A run of some rows keeps the others, and the page is written from the
//! records alone.

mod clients;
mod exporters;
mod memcached;
mod page;
mod proxies;
mod recipes;
mod record;
mod script;

use crate::process::{self, program, run};
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use record::{Record, Row};
use std::path::{Path, PathBuf};

/// What the parts are run with.
#[derive(Args)]
pub struct Conformance {
    /// Only this part (may be given several times)
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Only these rows of the parts, such as `django`
    #[arg(long, requires = "only")]
    name: Vec<String>,
    /// The memcached beside ours; its proxy is tried if it was built with --enable-proxy
    #[arg(long, value_name = "PATH", default_value = "memcached")]
    memcached: PathBuf,
    /// The server to try instead of a build of this checkout
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// The folder with memcached's source, whose test programs are run
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
    /// Prometheus' memcached_exporter, which no registry has as a program
    #[arg(long, value_name = "PATH")]
    exporter: Option<PathBuf>,
    /// WordPress' drop-in object-cache.php, which no registry has
    #[arg(long, value_name = "FILE")]
    object_cache: Option<PathBuf>,
    /// Run nothing, and write the page from the records
    #[arg(long, conflicts_with = "only")]
    page: bool,
}

/// A part of the scorecard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// memcached's own test programs, given its source
    Memcached,
    /// The test suites of clients, as `cargo xtask suites` recorded them
    Clients,
    /// Proxies and clients that place keys on three servers, by `cargo xtask fleet`
    Proxies,
    /// Programs that read the statistics, for monitoring
    Exporters,
    /// The recipes of docs/recipes
    Recipes,
}

/// The parts in the order of the page.
const PARTS: [Part; 5] = [
    Part::Memcached,
    Part::Clients,
    Part::Proxies,
    Part::Exporters,
    Part::Recipes,
];

impl Part {
    /// Its name on the command line, and that of its record.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.expect("no part is hidden").get_name().to_owned()
    }

    fn run(self, with: &Tried) -> anyhow::Result<Vec<Row>> {
        match self {
            Part::Memcached => memcached::run(with),
            Part::Clients => clients::run(),
            Part::Proxies => proxies::run(with),
            Part::Exporters => exporters::run(with),
            Part::Recipes => recipes::run(with),
        }
    }
}

/// The programs that are tried, with absolute paths.
pub struct Tried {
    glimmer: PathBuf,
    memcached: PathBuf,
    source: Option<PathBuf>,
    exporter: Option<PathBuf>,
    object_cache: Option<PathBuf>,
    names: Vec<String>,
}

impl Tried {
    /// Whether a row is among those that were asked for.
    fn is_chosen(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|chosen| chosen == name)
    }

    /// Both servers, ours first.
    fn servers(&self) -> [&Path; 2] {
        [&self.glimmer, &self.memcached]
    }
}

impl Conformance {
    /// Runs parts, and writes their records and the page.
    pub fn run(self) -> anyhow::Result<()> {
        if !self.page {
            let parts = match &self.only[..] {
                [] => &PARTS,
                some => some,
            };
            let with = self.tried()?;
            for &part in parts {
                if part == Part::Memcached && self.only.is_empty() && self.source.is_none() {
                    println!(
                        "{}: its record stays, as --source is not given",
                        part.name()
                    );
                    continue;
                }
                let rows = part.run(&with)?;
                if rows.is_empty() && !self.name.is_empty() {
                    bail!("{} has no row {}", part.name(), self.name.join(", "));
                }
                let mut record = Record::read(&part.name())?;
                record.enter(rows, self.name.is_empty());
                record.write(&part.name())?;
            }
        }
        page::write()
    }

    fn tried(&self) -> anyhow::Result<Tried> {
        let glimmer = match &self.server {
            Some(server) => server.clone(),
            None => {
                run(&mut process::cargo(&["build", "-p", "glimmer", "--bins"]))?;
                process::target_dir().join("debug/glimmer")
            }
        };
        let whole = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        Ok(Tried {
            glimmer: std::path::absolute(glimmer)?,
            memcached: found(&self.memcached)?,
            source: whole(&self.source)?,
            exporter: whole(&self.exporter)?,
            object_cache: whole(&self.object_cache)?,
            names: self.name.clone(),
        })
    }
}

/// A program by its path, or by its name on the search path.
fn found(path: &Path) -> anyhow::Result<PathBuf> {
    let named = path.to_str().filter(|name| !name.contains('/'));
    let here = named.map_or_else(|| Some(path.to_owned()), process::find);
    let here = here.with_context(|| format!("{} is not installed", path.display()))?;
    if !here.is_file() {
        bail!("{} is no program", path.display());
    }
    Ok(std::path::absolute(here)?)
}

/// The version of memcached, such as `memcached 1.6.45`.
fn version_of(memcached: &Path) -> anyhow::Result<String> {
    let output = program(memcached, &["-V"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
