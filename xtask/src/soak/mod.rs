//! Runs every test many times. If a test fails once in a hundred runs, either the test or the
//! tested code is broken.

mod binaries;
mod tally;

use crate::{clients, process};
use anyhow::bail;
use std::time::{Duration, Instant};
use tally::Tally;

/// The parts of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The tests of the crates, each test program by itself
    Crates,
    /// The real clients against the running server
    Clients,
}

/// Runs `rounds` rounds, or fewer if `hours` pass earlier. Fails if any test failed.
pub fn check(rounds: u32, hours: Option<f64>, only: &[Part], name: &str) -> anyhow::Result<()> {
    let runs = |part| only.is_empty() || only.contains(&part);
    let programs = match runs(Part::Crates) {
        true => binaries::build()?,
        false => Vec::new(),
    };
    let clients = match runs(Part::Clients) {
        true => Some(clients::prepare()?),
        false => None,
    };
    let end = hours.map(|hours| Instant::now() + Duration::from_secs_f64(hours * 3600.0));
    let logs = process::target_dir().join("soak");
    let mut tally = Tally::new(&logs)?;
    for round in 1..=rounds {
        for program in &programs {
            let output = program.command(name).output()?;
            tally.libtest(round, &program.name, &output)?;
        }
        if let Some(clients) = &clients {
            let output = clients.command(&["-rA", "-k", name]).output()?;
            tally.pytest(round, &output)?;
        }
        println!("round {round} of {rounds}: {tally}");
        if end.is_some_and(|end| Instant::now() >= end) {
            println!("the time is over");
            break;
        }
    }
    tally.print_failures();
    if tally.failures() > 0 {
        bail!(
            "{} failures; their output is in {}",
            tally.failures(),
            logs.display()
        );
    }
    Ok(())
}
