//! Replays recorded traces of public repositories against our server and memcached, and writes
//! `docs/results/replays.txt`.

mod record;
mod traces;

use crate::process::{self, program};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use traces::Trace;

/// What is written.
const RECORD: &str = "docs/results/replays.txt";

#[derive(Args)]
pub struct Replays {
    /// The folder with clones of the repositories
    folder: PathBuf,
    /// The memcached beside ours
    #[arg(long, value_name = "PATH")]
    memcached: PathBuf,
    /// Only these, such as `lirs/cs`; the record keeps the others
    names: Vec<String>,
}

impl Replays {
    pub fn run(&self) -> anyhow::Result<()> {
        let traces = traces::all();
        let order: Vec<&str> = traces.iter().map(Trace::name).collect();
        for name in &self.names {
            let list = || format!("no trace is named {name}; there are {}", order.join(", "));
            ensure!(order.contains(&name.as_str()), list());
        }
        let is_chosen =
            |name: &str| self.names.is_empty() || self.names.iter().any(|it| it == name);
        // What is missing shows before the first of many minutes.
        let mut chosen = Vec::new();
        for trace in traces.iter().filter(|trace| is_chosen(trace.name())) {
            chosen.push((trace, trace.find(&self.folder)?));
        }
        let peer = self.peer()?;
        process::released()?;
        let mut outputs = record::read(&fs::read_to_string(RECORD).unwrap_or_default());
        let (begun, mut failed) = (Instant::now(), Vec::new());
        for (done, (trace, file)) in chosen.iter().enumerate() {
            let name = trace.name();
            let left = minutes_left(begun, done, chosen.len());
            println!("{} of {}: {name}{left}", done + 1, chosen.len());
            match self.replay(trace, file, &peer) {
                Ok(output) => {
                    outputs.retain(|(other, _)| other != name);
                    outputs.push((name.to_owned(), output));
                    outputs.sort_by_key(|(name, _)| order.iter().position(|it| it == name));
                    // Written each time, so that an interruption loses one trace alone.
                    fs::write(RECORD, record::written(&outputs)?)?;
                }
                Err(error) => {
                    println!("{name}: FAILED: {error:#}");
                    failed.push(name);
                }
            }
        }
        if !failed.is_empty() {
            bail!(
                "not replayed, and as before in {RECORD}: {}",
                failed.join(", ")
            );
        }
        println!("{RECORD} is written; `cargo xtask results` has the page follow it");
        Ok(())
    }

    /// The memcached as the benchmark names and finds it.
    fn peer(&self) -> anyhow::Result<String> {
        let path = self.memcached.display();
        let output = program(&self.memcached, &["-V"]).output();
        let output = output.with_context(|| format!("cannot start {path}"))?;
        let version = String::from_utf8_lossy(&output.stdout);
        let version = version.trim().strip_prefix("memcached ");
        let version = version.with_context(|| format!("{path} is no memcached"))?;
        Ok(format!("memcached-{version}={path}"))
    }

    /// Replays one trace. Returns what the benchmark printed, without the path of memcached.
    fn replay(&self, trace: &Trace, file: &Path, peer: &str) -> anyhow::Result<String> {
        let converted = trace.convert(file)?;
        let bench = process::target_dir().join("release/glimmer-bench");
        let output = program(bench, &["hit-ratio", "--trace-file"])
            .arg(converted)
            .args(["--peers", "none", "--peer", peer])
            .args(&trace.arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "glimmer-bench: {}", output.status);
        let printed = String::from_utf8(output.stdout)?;
        let output = printed.replace(&format!("={}", self.memcached.display()), "=memcached");
        // A run without figures is a failure, and none of the record.
        record::written(&[(trace.name().to_owned(), output.trim().to_owned())])?;
        Ok(output.trim().to_owned())
    }
}

/// What is left, if the others take as long as those that are done.
fn minutes_left(begun: Instant, done: usize, all: usize) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = begun.elapsed().as_secs_f64() / done as f64 * (all - done) as f64;
    format!(", about {:.0} min left", (seconds / 60.0).ceil())
}
