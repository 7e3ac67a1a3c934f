//! The top floor: the program that measures. Every claim can be checked with one command.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments of arguments are help texts, where brackets mean what may be left out"
)]

mod abuse;
mod accelerator;
mod calibrate;
mod echo;
mod figure;
mod hit_ratio;
mod itself;
mod load;
mod memory;
mod native;
mod peer_name;
mod peers;
mod progress;
mod store;
mod tail;
mod transports;
mod versus;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use glimmer_figures::Machine;
use glimmer_measure::machine;
use serde::Serialize;
use std::{path::PathBuf, process::ExitCode};

/// The command line.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// The whole program.
pub fn main() -> ExitCode {
    glimmer_cli::run(|arguments: Arguments| arguments.run())
}

/// Benchmark this cache, and compare it with others
///
/// Absolute figures on a shared machine say little. Every comparison therefore runs in one
/// invocation, takes the candidates in turn, repeats, and prints ratios with their spread beside
/// the machine's own ceilings.
#[derive(Debug, Parser)]
#[command(name = "glimmer-bench", version)]
struct Arguments {
    /// Do not raise the priority of this session
    ///
    /// By default, timing commands ask the scheduler to prefer this session of processes over
    /// others, where it permits that.
    #[arg(long, global = true)]
    keep_priority: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Load(Box<load::Arguments>),
    Versus(versus::Arguments),
    Tail(Box<tail::Arguments>),
    Accelerator(accelerator::Arguments),
    Store(store::Arguments),
    Memory(memory::Arguments),
    Native(native::Arguments),
    Transports(transports::Arguments),
    HitRatio(hit_ratio::Arguments),
    Abuse(abuse::Arguments),
    Calibrate(calibrate::Arguments),
    Echo(echo::Arguments),
    Figure(figure::Arguments),
    #[command(name = "self")]
    Itself(itself::Arguments),
    /// Print where and with what the command that is given is run, as it stands below tables
    ///
    /// For records of other programs.
    Machine {
        /// The command
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

impl What {
    /// Whether it measures the time of processes in this session only, so that other work on the
    /// machine can only add noise.
    fn wants_quiet(&self) -> bool {
        match self {
            What::Versus(_) | What::Tail(_) | What::Store(_) => true,
            What::Accelerator(_) | What::Native(_) | What::Transports(_) | What::Itself(_) => true,
            // Figures ask for it themselves if they measure time.
            What::Figure(_) | What::Calibrate(_) | What::Echo(_) => false,
            What::Abuse(arguments) => arguments.starts_servers(),
            What::Load(_) | What::Memory(_) | What::HitRatio(_) | What::Machine { .. } => false,
        }
    }

    /// Whether its tables are of this machine alone. Figures have a record of it.
    fn is_of_this_machine(&self) -> bool {
        match self {
            What::Memory(_) | What::HitRatio(_) | What::Machine { .. } => true,
            // It says so itself, also where our server fails.
            What::Abuse(_) => false,
            _ => self.wants_quiet(),
        }
    }
}

impl Arguments {
    /// Runs the benchmark, and prints its tables and where they were measured.
    fn run(&self) -> anyhow::Result<()> {
        if !self.keep_priority && self.what.wants_quiet() {
            machine::raise_priority();
        }
        let mut machine = Machine::here(&[]);
        self.measure()?;
        if let What::Machine { command } = &self.what {
            machine.command = command.join(" ");
        }
        if self.what.is_of_this_machine() {
            println!("\n{machine}");
        }
        Ok(())
    }

    fn measure(&self) -> anyhow::Result<()> {
        match &self.what {
            What::Load(arguments) => arguments.run(),
            What::Versus(arguments) => arguments.run(),
            What::Tail(arguments) => arguments.run(),
            What::Accelerator(arguments) => arguments.run(),
            What::Store(arguments) => arguments.run(),
            What::Memory(arguments) => arguments.run(),
            What::Native(arguments) => arguments.run(),
            What::Transports(arguments) => arguments.run(),
            What::HitRatio(arguments) => arguments.run(),
            What::Abuse(arguments) => arguments.run(),
            What::Calibrate(arguments) => arguments.run(),
            What::Echo(arguments) => arguments.run(),
            What::Figure(arguments) => arguments.run(),
            What::Itself(arguments) => arguments.run(),
            What::Machine { .. } => Ok(()),
        }
    }
}

/// Reports progress on stderr, so that stdout contains only the result.
fn progress(line: &str) {
    eprintln!("{line}");
}

/// Splits a line into arguments.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(Into::into).collect()
}

/// A result with the machine on which it was measured.
#[derive(Serialize)]
struct Placed<'a, R> {
    machine: Machine,
    #[serde(flatten)]
    report: &'a R,
}

impl<R> Placed<'_, R> {
    fn here(report: &R) -> Placed<'_, R> {
        Placed {
            machine: Machine::here(&[]),
            report,
        }
    }
}

/// Fails if a file for results cannot be written. Asked before they are measured. What the file
/// holds stays until then.
fn ensure_writable(file: &Option<PathBuf>) -> anyhow::Result<()> {
    // The reader of a pipe would take this for the end.
    let Some(file) = file.as_ref().filter(|it| !it.exists() || it.is_file()) else {
        return Ok(());
    };
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file);
    opened
        .map(drop)
        .with_context(|| format!("writing {}", file.display()))
}

/// Writes a result as JSON, for machines, if a file is named.
fn write_json(file: &Option<PathBuf>, result: &impl Serialize) -> anyhow::Result<()> {
    let Some(file) = file else {
        return Ok(());
    };
    let json = serde_json::to_vec_pretty(result)?;
    std::fs::write(file, json).with_context(|| format!("writing {}", file.display()))
}
