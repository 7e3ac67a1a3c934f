//! `glimmer figure`: the papers' figures, reproduced.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use glimmer_figures::{
    Calibration, Figure, Kind, Settings, Unmet, catalogue,
    output::{self, Files},
    page, reproduce,
};
use glimmer_measure::report::Table;

use crate::progress::Watch;
use glimmer_cli::vocabulary::{repetitions, seconds};

/// Reproduce the figures of the papers
///
/// Each figure is measured on this machine, drawn, and compared with the paper's
/// statements. The command writes its data as CSV, the picture as SVG and PNG, and
/// every repetition with a record of the machine and the verdicts as JSON. It
/// prints the paper's numbers beside ours. If a verdict is worse than in the
/// record that was there before, or a claim of ours does not hold any more, the
/// command names it and fails. A figure that this machine cannot measure is left
/// out, with the reason; the command fails if that leaves none.
///
/// Minos' figures of dispatch are simulated, with costs that `glimmer bench
/// calibrate` has measured. So they are the same on every machine, unless --costs
/// says otherwise. `minos-live` measures a server instead, and needs 12 cores.
///
/// Examples:
///
///   glimmer figure list
///
///   glimmer figure mica-fig10                one figure, files in ./figures
///
///   glimmer figure minos-fig3 --costs costs.json
///
///   glimmer figure all --docs                all figures, and the pages in docs/figures
///
///   glimmer figure all --docs --redraw       pages and pictures again, from existing data
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// `list`, `all`, or the names of figures
    #[arg(value_name = "list|all|NAME", required = true)]
    names: Vec<String>,
    /// Write the files to this directory
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Write the data, the pictures and the pages to this documentation [default: docs]
    ///
    /// They replace what is in DIR/figures, and the picture of the README among them. A figure that
    /// fails does not stop the others.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "docs",
        conflicts_with = "out",
    )]
    docs: Option<PathBuf>,
    /// Measure nothing; draw and judge the data of an earlier run again
    #[arg(long, conflicts_with_all = ["quick", "repeat", "seconds", "costs"])]
    redraw: bool,
    /// Use tiny parameters to check that everything runs; claims about speed are not judged
    #[arg(long)]
    quick: bool,
    /// Repetitions of every measurement [default: chosen by each figure]
    #[arg(long, value_parser = repetitions)]
    repeat: Option<u16>,
    /// Seconds that one measurement takes [default: chosen by each figure]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Simulate with the costs in this file, from `bench calibrate --json` [default: the committed
    /// ones]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
}

impl Arguments {
    /// Runs the figures, prints what they say, and fails if a verdict is worse than recorded.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.names == ["list"] {
            print!("{}", list());
            return Ok(());
        }
        let mut figures = self.figures()?;
        let settings = Settings {
            quick: self.quick,
            repeat: self.repeat.map(usize::from),
            measured: self.seconds.map(Duration::from_secs_f64),
            costs: self.costs.as_deref().map(Calibration::read).transpose()?,
            ..Settings::default()
        };
        let directory = match &self.docs {
            Some(docs) => docs.join(page::DIRECTORY),
            None => self.out.clone(),
        };
        if self.redraw && self.names == ["all"] {
            figures.retain(|figure| Files::of(figure.spec().name, &directory).json.exists());
        }
        let (mut complaints, mut failures, mut left_out) = (String::new(), String::new(), 0);
        for (place, figure) in figures.iter().enumerate() {
            let name = figure.spec().name;
            eprintln!("figure {} of {}: {name}", place + 1, figures.len());
            match self.one(*figure, &settings, &directory) {
                Ok(complaint) => complaints.extend(complaint),
                // What this machine cannot measure is left out.
                Err(error) if error.is::<Unmet>() => {
                    println!("{name} is left out: {error}\n");
                    left_out += 1;
                }
                Err(error) => failures.push_str(&format!("\n  {name}: {error:#}")),
            }
        }
        if let Some(docs) = &self.docs {
            println!("{}", page::write(docs)?.display());
        }
        ensure!(
            failures.is_empty(),
            "some figures failed:{failures}{complaints}"
        );
        ensure!(
            complaints.is_empty(),
            "some claims do not hold, or are worse than recorded:{complaints}"
        );
        ensure!(
            left_out < figures.len() || figures.is_empty(),
            "no figure was measured: this machine lacks what they need"
        );
        Ok(())
    }

    fn figures(&self) -> anyhow::Result<Vec<&'static dyn Figure>> {
        if self.names == ["all"] {
            return Ok(catalogue::all());
        }
        if let Some(word) = self.names.iter().find(|it| *it == "all" || *it == "list") {
            bail!("`{word}` stands for itself: give no other names with it");
        }
        let find = |name: &String| {
            let found = catalogue::find(name);
            found.with_context(|| {
                format!("there is no figure named {name}; `glimmer figure list` names them all")
            })
        };
        self.names.iter().map(find).collect()
    }

    fn one(
        &self,
        figure: &dyn Figure,
        settings: &Settings,
        directory: &Path,
    ) -> anyhow::Result<Option<String>> {
        let spec = figure.spec();
        let before = output::read(spec.name, directory)?;
        let record = if self.redraw {
            let Some(mut record) = before.clone() else {
                bail!(
                    "it has not been measured: there is no record in {}",
                    directory.display()
                );
            };
            record.judge(figure);
            record
        } else {
            reproduce(figure, settings, &Watch::new(spec.name))?
        };
        let files = output::write(figure, &record, directory)?;
        println!("## {} ({})\n", spec.title, spec.source);
        println!("{}\n\n{record}", spec.claim);
        for file in [&files.csv, &files.svg, &files.png, &files.json] {
            println!("{}", file.display());
        }
        println!();
        Ok(record.complaint(before.as_ref()))
    }
}

/// All figures, what they need, and what they show.
fn list() -> Table {
    let heads = ["figure", "source", "shows", "cores", "peers", "numbers"];
    let mut table = Table::new(heads);
    for figure in catalogue::all() {
        let spec = figure.spec();
        let peers: Vec<&str> = spec.needs.peers.iter().map(|peer| peer.name()).collect();
        table.row([
            spec.name.to_owned(),
            spec.source.to_owned(),
            spec.title.to_owned(),
            spec.needs.cores.to_string(),
            peers.join(", "),
            match spec.kind {
                Kind::Timing => "timings".to_owned(),
                Kind::Exact => "the same everywhere".to_owned(),
                Kind::Counted => "counted, the same everywhere".to_owned(),
                Kind::Simulated => "simulated, the same everywhere".to_owned(),
            },
        ]);
    }
    table
}
