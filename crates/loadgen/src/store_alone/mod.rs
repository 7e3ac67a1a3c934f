//! The store alone, without sockets and protocol, in the machine's own currency: operations per random read of a cache line (MICA's 2014 code
//! reaches about 0.10).

mod rig;
pub mod stream;

use std::{fmt, time::Duration};

use anyhow::{Result, ensure};
use glimmer_engine::Stages;
use glimmer_store::{
    access::{Access, Crcw, Crew, Erew},
    evict::{ApproxLru, Evict, Fifo, S3Fifo},
};
use serde::Serialize;

use crate::{ceiling::Region, machine, popularity::Popularity, report::Table, stats::Spread};
pub use rig::Rig;
use stream::Operation;

/// An access mode (MICA §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only the owner touches a partition.
    Erew,
    /// Any core reads, the owner writes.
    Crew,
    /// Any core reads and writes.
    Crcw,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Erew, Mode::Crew, Mode::Crcw];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Erew => Erew::NAME,
            Mode::Crew => Crew::NAME,
            Mode::Crcw => Crcw::NAME,
        }
    }
}

/// An eviction rule; nothing is evicted here, but rules that count reads pay for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A log by itself.
    Fifo,
    /// Reinsertion of what is read, threshold 0.5.
    Lru,
    /// A small log in front of the main one.
    S3Fifo,
    /// None: store mode, which evicts nothing (MICA §4.3.3).
    Store,
}

impl Rule {
    /// What stands before the access mode's name in the table.
    fn name(self) -> &'static str {
        match self {
            Rule::Fifo => Fifo::NAME,
            Rule::Lru => ApproxLru::NAME,
            Rule::S3Fifo => S3Fifo::NAME,
            Rule::Store => "store",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Items of 8-byte keys and values.
    pub items: u32,
    /// Access modes.
    pub modes: Vec<Mode>,
    /// The eviction rule.
    pub rules: Vec<Rule>,
    /// Key popularities, with their names.
    pub popularities: Vec<(String, Popularity)>,
    /// Shares of reads in percent.
    pub gets_percent: Vec<u32>,
    /// Numbers of cores, one worker on each.
    pub cores: Vec<usize>,
    /// Pipelines, with their names: the whole one first, and those with a stage removed.
    pub pipelines: Vec<(String, Stages)>,
    /// Length of one repetition.
    pub measured: Duration,
    /// Repetitions.
    pub repeat: usize,
}

/// Operations drawn for each worker: their list and what they touch outgrow the caches.
const LIST: usize = 1 << 23;
/// Smallest region that the ceiling is measured in, in bytes.
const REGION_BYTES_MIN: usize = 1 << 30;
/// Length of a measurement of the ceiling.
const CEILING_TIME: Duration = Duration::from_millis(300);
/// Repetitions of the machine's own figure that spread wider than this are a noisy machine.
const NOISE_MAX: f64 = 0.10;

/// One configuration's repetitions.
#[derive(Clone, Debug, Serialize)]
struct Row {
    access: String,
    popularity: String,
    gets_percent: u32,
    cores: usize,
    pipeline: String,
    operations_per_s: Vec<f64>,
}

/// The machine's random reads on so many cores.
#[derive(Clone, Debug, Serialize)]
struct Ceiling {
    cores: usize,
    random_reads_per_s: Vec<f64>,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    items: u32,
    seconds: f64,
    repeat: usize,
    region_bytes: usize,
    region_huge_bytes: u64,
    ceilings: Vec<Ceiling>,
    rows: Vec<Row>,
}

/// A store of our own, filled with `items` items of 8-byte keys and values, for so many workers.
pub fn build(items: u32, rule: Rule, mode: Mode, workers: usize) -> Result<Box<dyn Rig>> {
    fn with_rule<E: Evict>(
        items: u32,
        mode: Mode,
        workers: usize,
        rule: E,
    ) -> Result<Box<dyn Rig>> {
        match mode {
            Mode::Erew => rig::build::<Erew, E>(items, workers, rule),
            Mode::Crew => rig::build::<Crew, E>(items, workers, rule),
            Mode::Crcw => rig::build::<Crcw, E>(items, workers, rule),
        }
    }
    match rule {
        Rule::Fifo => with_rule(items, mode, workers, Fifo),
        Rule::Lru => {
            let rule = ApproxLru::new(ApproxLru::THRESHOLD_DEFAULT);
            with_rule(items, mode, workers, rule)
        }
        Rule::S3Fifo => with_rule(items, mode, workers, S3Fifo),
        Rule::Store => match mode {
            Mode::Erew => rig::build_store::<Erew>(items, workers),
            Mode::Crew => rig::build_store::<Crew>(items, workers),
            Mode::Crcw => rig::build_store::<Crcw>(items, workers),
        },
    }
}

/// Measures every configuration. Repetitions of the same load are taken in turn over access modes, numbers of cores and pipelines, each round with the
/// machine's ceilings beside it. `progress` is told in a line what happens.
pub fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report> {
    machine::raise_priority();
    let cores_max = options.cores.iter().copied().max().unwrap_or(0);
    ensure!(
        (1..=machine::cores()).contains(&cores_max),
        "this machine offers {} cores",
        machine::cores()
    );
    let mut stores: Vec<(String, usize, Box<dyn Rig>)> = Vec::new();
    let each_rule = |&mode| options.rules.iter().map(move |&rule| (mode, rule));
    for (mode, rule) in options.modes.iter().flat_map(each_rule) {
        let name = format!("{} {}", mode.name(), rule.name());
        for &cores in &options.cores {
            progress(&format!(
                "{name}, cores: {cores}: storing {} items",
                options.items
            ));
            let store = build(options.items, rule, mode, cores)?;
            stores.push((name.clone(), cores, store));
        }
    }
    // Larger than any cache, and about as large as a store.
    let region_bytes = (options.items as usize * 40)
        .next_power_of_two()
        .max(REGION_BYTES_MIN);
    let region = Region::new(region_bytes)?;
    let ceiling = |&cores: &usize| Ceiling {
        cores,
        random_reads_per_s: Vec::new(),
    };
    let mut ceilings: Vec<Ceiling> = options.cores.iter().map(ceiling).collect();
    let mut rows = Vec::new();
    for (name, popularity) in &options.popularities {
        for &gets_percent in &options.gets_percent {
            progress(&format!(
                "{name}, {gets_percent}% reads: drawing operations"
            ));
            let get_share = f64::from(gets_percent) / 100.0;
            let draw = |(_, cores, rig): &(String, usize, Box<dyn Rig>)| -> Vec<Vec<Operation>> {
                (0..*cores)
                    .map(|worker| rig.share(worker).draw(*popularity, get_share, LIST))
                    .collect()
            };
            let lists: Vec<_> = stores.iter().map(draw).collect();
            let first = rows.len();
            for (access, cores, _) in &stores {
                rows.extend(options.pipelines.iter().map(|(pipeline, _)| Row {
                    access: access.clone(),
                    popularity: name.clone(),
                    gets_percent,
                    cores: *cores,
                    pipeline: pipeline.clone(),
                    operations_per_s: Vec::new(),
                }));
            }
            for repetition in 0..options.repeat {
                for ceiling in &mut ceilings {
                    let cores: Vec<usize> = (0..ceiling.cores).collect();
                    let reads = region.random_reads_per_s(&cores, CEILING_TIME)?;
                    ceiling.random_reads_per_s.push(reads);
                }
                let mut measured = rows[first..].iter_mut();
                for ((_, _, rig), lists) in stores.iter_mut().zip(&lists) {
                    for ((_, stages), row) in options.pipelines.iter().zip(measured.by_ref()) {
                        let rate = rig.operations_per_s(lists, *stages, options.measured)?;
                        row.operations_per_s.push(rate);
                    }
                }
                progress(&format!(
                    "{name}, {gets_percent}% reads: {}/{}",
                    repetition + 1,
                    options.repeat
                ));
            }
        }
    }
    Ok(Report {
        items: options.items,
        seconds: options.measured.as_secs_f64(),
        repeat: options.repeat,
        region_bytes,
        region_huge_bytes: region.huge_bytes()?,
        ceilings,
        rows,
    })
}

impl Report {
    /// The repetitions of the ceiling that ran beside those of a row.
    fn ceiling_beside(&self, index: usize) -> &[f64] {
        let row = &self.rows[index];
        let load = |row: &Row| (row.popularity.clone(), row.gets_percent);
        let mut loads: Vec<_> = self.rows.iter().map(load).collect();
        loads.dedup();
        let place = loads
            .iter()
            .position(|other| *other == load(row))
            .unwrap_or(0);
        let ceiling = self
            .ceilings
            .iter()
            .find(|ceiling| ceiling.cores == row.cores);
        let all = ceiling.map_or(&[][..], |ceiling| &ceiling.random_reads_per_s);
        &all[place * self.repeat..][..self.repeat]
    }

    /// The same load, mode and pipeline, but another number of cores or the whole pipeline.
    fn find(&self, row: &Row, cores: usize, pipeline: &str) -> Option<usize> {
        self.rows.iter().position(|other| {
            (&other.access, &other.popularity, other.gets_percent)
                == (&row.access, &row.popularity, row.gets_percent)
                && other.cores == cores
                && other.pipeline == pipeline
        })
    }

    /// What further cores gain, as part of what random reads gain from them.
    fn gain_of_cores(&self, index: usize) -> Option<Spread> {
        let row = &self.rows[index];
        let one = self.find(row, 1, &row.pipeline).filter(|_| row.cores > 1)?;
        let gains = |more: &[f64], one: &[f64]| -> Vec<f64> {
            more.iter().zip(one).map(|(more, one)| more / one).collect()
        };
        let ours = gains(&row.operations_per_s, &self.rows[one].operations_per_s);
        let machine = gains(self.ceiling_beside(index), self.ceiling_beside(one));
        Some(Spread::of_ratios(&ours, &machine))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} items of 8-byte keys and 8-byte values; median (min..max) of {} repetitions of {} s. The keyhash is computed in the measured loop, every \
             value read is checked.\n",
            self.items, self.repeat, self.seconds
        )?;
        let mut table = Table::new(["the machine in this run", "cores", "M/s"]);
        let mut noise: f64 = 0.0;
        for ceiling in &self.ceilings {
            let spread = Spread::of(&ceiling.random_reads_per_s);
            noise = noise.max(spread.width());
            let huge = self.region_huge_bytes * 100 / self.region_bytes as u64;
            let mib = self.region_bytes >> 20;
            table.row([
                format!("random 64-byte reads, {mib} MiB, {huge}% on huge pages"),
                ceiling.cores.to_string(),
                millions(&spread),
            ]);
        }
        writeln!(out, "{table}")?;
        let whole = self.rows.first().map_or("", |row| &row.pipeline);
        let heads = [
            "access",
            "keys",
            "reads",
            "cores",
            "pipeline",
            "M ops/s",
            "ops per random read",
        ];
        let mut table = Table::new(
            heads
                .into_iter()
                .chain(["gain of cores over the machine's", "of the whole pipeline"]),
        );
        for (index, row) in self.rows.iter().enumerate() {
            let of_whole = self
                .find(row, row.cores, whole)
                .filter(|&other| other != index)
                .map(|other| {
                    Spread::of_ratios(&row.operations_per_s, &self.rows[other].operations_per_s)
                });
            let text =
                |spread: Option<Spread>| spread.map_or(String::new(), |spread| spread.text(2));
            table.row([
                row.access.clone(),
                row.popularity.clone(),
                format!("{}%", row.gets_percent),
                row.cores.to_string(),
                row.pipeline.clone(),
                millions(&Spread::of(&row.operations_per_s)),
                Spread::of_ratios(&row.operations_per_s, self.ceiling_beside(index)).text(3),
                text(self.gain_of_cores(index)),
                text(of_whole),
            ]);
        }
        write!(out, "{table}")?;
        if noise > NOISE_MAX {
            writeln!(
                out,
                "\nNOISY: the machine's own figure spreads by {:.0}%; trust ratios only.",
                noise * 100.0
            )?;
        }
        Ok(())
    }
}

fn millions(spread: &Spread) -> String {
    let Spread { median, min, max } = spread;
    format!("{:.1} ({:.1}..{:.1})", median / 1e6, min / 1e6, max / 1e6)
}
