//! Runs the random tests of continuous integration with many more seeds, one run to a seed.
//!
//! A test that passes for days with one seed a run says little. So each stage runs a thousand times
//! as often as in continuous integration, or for as many hours as it may take.
//!
//! | file | idea |
//! | --- | --- |
//! | `stages` | the stages, and the crates of each |
//! | `crates` | runs those tests, one seed after the other |
//! | `whole` | stages that are programs of their own: simulator, model checker, Miri, fuzzing |
//! | `clients` | real clients against the running server |
//! | `record` | seeds and failures, and the table |

mod clients;
mod crates;
pub mod record;
mod stages;
mod whole;

use crate::process;
use anyhow::bail;
use record::Record;
use stages::{Kind, Stage};
use std::time::{Duration, Instant};

/// How much of which stages.
#[derive(clap::Args)]
pub struct Soak {
    /// Run only this stage (may be given several times)
    #[arg(long, value_enum)]
    only: Vec<Stage>,
    /// How often each test runs, compared with continuous integration, where it runs once
    #[arg(long, default_value_t = 1000)]
    times: u32,
    /// Hours after which a stage ends, even if its tests have not run that often
    #[arg(long, default_value_t = 2.0)]
    hours: f64,
    /// Tests that run at a time. More take less time, and tests with threads are disturbed more
    #[arg(long, default_value_t = 1)]
    lanes: usize,
    /// Run only tests whose names contain this
    #[arg(default_value = "")]
    name: String,
}

/// What ends a stage.
#[derive(Clone, Copy)]
struct Budget {
    times: u32,
    time: Duration,
    begun: Instant,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.begun.elapsed() >= self.time
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.begun.elapsed())
    }
}

impl Soak {
    /// Runs the stages, one after the other. Fails if any test failed.
    pub fn run(&self) -> anyhow::Result<()> {
        let folder = process::target_dir().join("soak-failures");
        std::fs::create_dir_all(&folder)?;
        let folder = std::path::absolute(folder)?;
        let mut summaries = Vec::new();
        for stage in Stage::all() {
            if !self.only.is_empty() && !self.only.contains(&stage) {
                continue;
            }
            let record = Record::new(stage.name(), folder.clone());
            self.stage(stage, &record)?;
            println!("{}", record.line());
            // One row at a time too, as a run of many hours may not reach its end.
            let summary = [record.end()];
            println!("{}\n", record::table(&summary)?);
            summaries.extend(summary);
        }
        println!("{}", record::table(&summaries)?);
        let failures: Vec<&String> = summaries.iter().flat_map(|s| &s.failures).collect();
        for failure in &failures {
            println!("failed: {failure}");
        }
        if !failures.is_empty() {
            bail!(
                "{} failures; their output is in {}",
                failures.len(),
                folder.display()
            );
        }
        Ok(())
    }

    fn stage(&self, stage: Stage, record: &Record) -> anyhow::Result<()> {
        println!("==> {}", record.name());
        let budget = || Budget {
            times: self.times,
            time: Duration::from_secs_f64(self.hours * 3600.0),
            begun: Instant::now(),
        };
        match stage.kind() {
            Kind::Crates(which) => {
                let tests = crates::build(which, &self.name)?;
                record.begin();
                crates::run(&tests, self.lanes, budget(), record)
            }
            Kind::Simulator => whole::simulator(budget, record),
            Kind::Loom => whole::loom(budget, record),
            Kind::Miri => whole::miri(budget(), record),
            Kind::Fuzz => whole::fuzz(budget(), record),
            Kind::Clients => clients::run(&self.name, budget, record),
        }
    }
}
