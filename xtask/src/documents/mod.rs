//! Runs the commands that documents show, and compares what they print with what the documents say.
//!
//! Each document is a shell script: its blocks, in order. The script runs in namespaces of its own,
//! with ports, addresses and a file system that nobody else sees, so that a server has the port
//! that the document gives it. [`blocks`] says how a document describes the run of a block.

mod blocks;
mod clean;
mod compare;
#[cfg(test)]
mod links;
#[cfg(test)]
mod numbers;
mod peer;
pub mod results;
mod script;

use crate::lanes;
use crate::process::{self, program};
use crate::tools::{self, Tool};
use anyhow::{Context as _, bail};
use script::{Pace, Plan};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What makes the namespaces, and what runs in them.
const APART: &str = include_str!("apart.sh");
const STAND_INS: &str = "xtask/src/documents/stand_ins";

/// A document beside those: the examples in the help of all commands.
const HELP: &str = "the examples of --help";
const HELP_BLOCKS: &str = "```console\n$ examples-of-help\n```\n";

/// A document that takes this long hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Programs in commands of documents.
const TOOLS: &[Tool] = &[
    Tool {
        probe: &["ip", "-V"],
        packages: &["iproute2"],
        without: "the trial of documents",
    },
    Tool {
        probe: &["nc"],
        packages: &["netcat-openbsd"],
        without: "commands of documents with nc",
    },
    Tool {
        probe: &["redis-cli"],
        packages: &["redis-tools"],
        without: "commands of documents with redis-cli",
    },
    Tool {
        probe: &["openssl"],
        packages: &["openssl"],
        without: "commands of documents with openssl",
    },
    Tool {
        probe: &["memcached", "-V"],
        packages: &["memcached"],
        without: "commands of documents with memcached",
    },
    Tool {
        probe: &["ethtool", "--version"],
        packages: &["ethtool"],
        without: "commands of documents with ethtool",
    },
    Tool {
        probe: &["curl"],
        packages: &["curl"],
        without: "commands of documents with curl",
    },
];

/// Which documents to run.
#[derive(Debug, clap::Args)]
pub struct Documents {
    /// Only these, such as `docs/tls.md`
    documents: Vec<PathBuf>,
    /// Run commands as they are shown, and not as their markers shorten them
    #[arg(long)]
    full: bool,
    /// Follow documents in a clean root of Debian: a clone, real builds, nothing shortened
    ///
    /// Without names: README.md and three pages. Prints the transcript. Needs root and a Debian
    /// mirror, takes a quarter of an hour, and is not part of the test suite.
    #[arg(long, conflicts_with = "full")]
    clean_root: bool,
    /// With --clean-root: build without optimisation, which shows the same mistakes sooner
    #[arg(long, requires = "clean_root")]
    unoptimised: bool,
}

impl Documents {
    pub fn run(&self) -> anyhow::Result<()> {
        if self.clean_root {
            return clean::follow(&self.documents, self.unoptimised);
        }
        let build = [
            "build",
            "-p",
            "glimmer",
            "-p",
            "glimmer-bench",
            "-p",
            "glimmer-top",
        ];
        process::run(&mut process::cargo(&build))?;
        let documents = match &self.documents[..] {
            [] => all()?,
            some => some.to_vec(),
        };
        let pace = if self.full { Pace::Full } else { Pace::Quick };
        run(&documents, pace)
    }
}

/// Runs all documents, with programs that are built.
pub fn check() -> anyhow::Result<()> {
    run(&all()?, Pace::Quick)
}

fn all() -> anyhow::Result<Vec<PathBuf>> {
    let mut documents = pages()?;
    documents.push(HELP.into());
    Ok(documents)
}

/// Every page of the repository, in the order of names.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let every = [
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.md",
    ];
    let mut git = program("git", &every);
    let listed = git.current_dir(process::repository()).output()?;
    let listed = String::from_utf8(listed.stdout).context("names of pages")?;
    let mut pages: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
    pages.retain(|page| process::repository().join(page).exists());
    if pages.is_empty() {
        bail!("git lists no pages");
    }
    pages.sort();
    pages.dedup();
    Ok(pages)
}

fn run(documents: &[PathBuf], pace: Pace) -> anyhow::Result<()> {
    tools::install(TOOLS);
    if !apart(":")?.status.success() {
        let without = "the commands of documents need namespaces (unshare, and root or user ones)";
        if std::env::var_os("CI").is_some() {
            bail!("{without}");
        }
        println!("SKIPPED: {without}");
        return Ok(());
    }
    let trials = lanes::one_per_core(documents, |document| Trial::of(document, pace))?;
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (reason, place) in trials.iter().flat_map(|trial| &trial.skipped) {
        reasons.entry(reason).or_default().push(place.clone());
    }
    for (reason, places) in &reasons {
        println!("not run, {reason}: {}", places.join(", "));
    }
    let ran: usize = trials.iter().map(|trial| trial.commands).sum();
    let left_out: usize = reasons.values().map(Vec::len).sum();
    println!(
        "{} documents: {ran} commands run, {left_out} not",
        documents.len()
    );
    let faults: Vec<String> = trials.into_iter().flat_map(|trial| trial.faults).collect();
    if !faults.is_empty() {
        bail!(
            "{} commands of documents fail:\n  {}",
            faults.len(),
            faults.join("\n  ")
        );
    }
    Ok(())
}

/// What the run of one document came to.
#[derive(Default)]
struct Trial {
    commands: usize,
    /// Why, and where in the document.
    skipped: Vec<(String, String)>,
    faults: Vec<String>,
}

impl Trial {
    fn of(document: &Path, pace: Pace) -> anyhow::Result<Trial> {
        if document == Path::new(peer::DOCUMENT) {
            return peer::hold();
        }
        let text = match document.to_str() {
            Some(HELP) => HELP_BLOCKS.to_owned(),
            _ => fs::read_to_string(document)
                .with_context(|| format!("cannot read {}", document.display()))?,
        };
        let blocks = blocks::read(&text).with_context(|| document.display().to_string())?;
        let plan = script::write(&blocks, pace, process::is_root()?);
        let begun = Instant::now();
        let name = document.display().to_string().replace(['/', '.', ' '], "-");
        let out = std::path::absolute(process::target_dir().join("documents").join(name))?;
        if !plan.planned.is_empty() {
            execute(&plan, &out)?;
        }
        let trial = Trial {
            commands: plan.planned.len(),
            skipped: skipped(document, &plan),
            faults: faults(document, &plan, &out),
        };
        println!(
            "{}: {} commands in {:.1} s",
            document.display(),
            trial.commands,
            begun.elapsed().as_secs_f64()
        );
        Ok(trial)
    }
}

fn skipped(document: &Path, plan: &Plan<'_>) -> Vec<(String, String)> {
    let place = |line| format!("{}:{line}", document.display());
    let skipped = plan.skipped.iter();
    skipped
        .map(|it| (it.reason.to_owned(), place(it.block.line)))
        .collect()
}

/// Runs the script. What its commands print lies in the folder afterwards.
fn execute(plan: &Plan<'_>, out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let clone = out.join("clone");
    fs::create_dir_all(&clone)?;
    fs::write(out.join("script.sh"), &plan.text)?;
    let repository = process::repository();
    let programs = std::path::absolute(process::target_dir().join("debug"))?;
    // An earlier stage may have replaced the file of this process.
    let xtask = programs.join("xtask");
    let mut command = unshare("set -u\n".to_owned() + APART);
    command
        .env("out", out)
        .env("clone", &clone)
        .env("repository", &repository)
        .env("programs", &programs)
        .env("stand_ins", repository.join(STAND_INS))
        .env("XTASK", xtask)
        .env("LC_ALL", "C.UTF-8")
        .stdin(std::process::Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GLIMMER_")) {
        command.env_remove(name);
    }
    process::run_until(&mut command, HANGS)?;
    Ok(())
}

/// A command that runs this text of the shell in namespaces of its own.
fn unshare(text: String) -> std::process::Command {
    let mut command = program(
        "unshare",
        &["--net", "--mount", "--pid", "--fork", "--kill-child"],
    );
    if !process::is_root().unwrap_or(false) {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["bash", "-c", &text]);
    command
}

/// Tries whether there are namespaces.
fn apart(text: &str) -> anyhow::Result<std::process::Output> {
    Ok(unshare(text.to_owned()).output()?)
}

/// What differs from the document.
fn faults(document: &Path, plan: &Plan<'_>, out: &Path) -> Vec<String> {
    let read = |name: &str, kind: &str| {
        let text = fs::read(out.join(format!("{name}.{kind}"))).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    let mut faults = Vec::new();
    for planned in &plan.planned {
        let (block, step, name) = (planned.block, planned.step, &planned.name);
        let place = format!("{}:{}", document.display(), block.line);
        let first = step.command.lines().next().unwrap_or_default();
        let mut fault = |what: String| faults.push(format!("{place}: {first}\n{what}"));
        let before = 1..=block.marker.before.len();
        for hidden in before.filter(|_| planned.is_first) {
            let hidden = format!("{}.before.{hidden}", block.line);
            let status = read(&hidden, "status");
            if status.trim() != "0" {
                let printed = indented(&read(&hidden, "out"));
                fault(format!(
                    "    what its marker does before: {status}{printed}"
                ));
            }
        }
        let (status, printed) = (read(name, "status"), read(name, "out"));
        let is_last = planned.number == block.steps.len();
        let fails = block.marker.fails && is_last;
        let is_wrong = |status: &str| match block.marker.status {
            Some(wanted) => status.parse() != Ok(wanted),
            None => (status == "0") == fails,
        };
        match status.trim() {
            "" => fault("    was not reached".to_owned()),
            "running" => fault(format!("    does not end\n{}", indented(&printed))),
            status if is_wrong(status) => {
                fault(format!("    status {status}\n{}", indented(&printed)));
            }
            _ if step.output.is_empty() => {}
            _ => {
                let difference = compare::difference(&block.marker, &step.output, &printed);
                difference.into_iter().for_each(&mut fault);
            }
        }
    }
    faults
}

fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(12);
    let lines = lines[last..].iter().map(|line| format!("    | {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
