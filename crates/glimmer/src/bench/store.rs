//! `glimmer bench store`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use glimmer_engine::Stages;
use glimmer_loadgen::store_alone::{self, Mode, Options, Rule};

use super::versus::{Distribution, seconds};

/// Measure the store alone, in operations per random memory read
///
/// Items of 8-byte keys and values, far more than fit a cache, go through the
/// engine's prefetch pipeline in this process: no sockets, no protocol. In the
/// same run, random 64-byte reads per second say what the machine's memory can
/// do; operations per random read are what remains comparable from machine to
/// machine.
///
/// Examples:
///
///   glimmer bench store                                   all modes on one core and two
///
///   glimmer bench store --access erew --cores 1 --dist uniform --evict s3fifo,store   store mode beside cache mode
///
///   glimmer bench store --items 20000000 --access erew --cores 1 --without bucket,item,prefetch
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Items stored; at 40 bytes each, and a store for each mode and number of cores
    #[arg(long, default_value_t = 1 << 24, value_parser = clap::value_parser!(u32).range(1..1 << 31))]
    items: u32,
    /// Who may touch a partition
    #[arg(long, value_delimiter = ',', default_value = "all")]
    access: Vec<AccessMode>,
    /// Eviction rules; nothing is evicted, but counting reads has its price. store is store mode
    #[arg(long, value_delimiter = ',', default_value = "s3fifo")]
    evict: Vec<Eviction>,
    /// Key popularity
    #[arg(long, value_delimiter = ',', default_value = "uniform,zipf")]
    dist: Vec<Distribution>,
    /// Percentages of reads, the rest being writes
    #[arg(long, value_delimiter = ',', default_value = "95,50", value_parser = clap::value_parser!(u32).range(1..=100))]
    gets: Vec<u32>,
    /// Numbers of cores
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    cores: Vec<usize>,
    /// Measure also with a stage of the pipeline removed
    #[arg(long, value_delimiter = ',')]
    without: Vec<Stage>,
    /// Seconds that one measurement takes
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    repeat: u16,
    /// Also write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum AccessMode {
    Erew,
    Crew,
    Crcw,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Eviction {
    Fifo,
    Lru,
    S3fifo,
    Store,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stage {
    /// Buckets are not fetched ahead
    Bucket,
    /// Items are not fetched ahead
    Item,
    /// Neither is
    Prefetch,
}

impl Arguments {
    /// Runs the measurement and prints its tables.
    pub fn run(&self) -> anyhow::Result<()> {
        let wanted = |mode| self.access.contains(&mode) || self.access.contains(&AccessMode::All);
        let modes = Mode::ALL.into_iter().filter(|mode| {
            wanted(match mode {
                Mode::Erew => AccessMode::Erew,
                Mode::Crew => AccessMode::Crew,
                Mode::Crcw => AccessMode::Crcw,
            })
        });
        let without = self.without.iter().map(|stage| match stage {
            Stage::Bucket => (
                "without buckets".to_owned(),
                Stages {
                    bucket: false,
                    item: true,
                },
            ),
            Stage::Item => (
                "without items".to_owned(),
                Stages {
                    bucket: true,
                    item: false,
                },
            ),
            Stage::Prefetch => (
                "without prefetch".to_owned(),
                Stages {
                    bucket: false,
                    item: false,
                },
            ),
        });
        let named = |dist: &Distribution| match dist {
            Distribution::Uniform => ("uniform".to_owned(), dist.over(self.items)),
            Distribution::Zipf => ("zipf 0.99".to_owned(), dist.over(self.items)),
        };
        let rule = |evict: &Eviction| match evict {
            Eviction::Fifo => Rule::Fifo,
            Eviction::Lru => Rule::Lru,
            Eviction::S3fifo => Rule::S3Fifo,
            Eviction::Store => Rule::Store,
        };
        let options = Options {
            items: self.items,
            modes: modes.collect(),
            rules: self.evict.iter().map(rule).collect(),
            popularities: self.dist.iter().map(named).collect(),
            gets_percent: self.gets.clone(),
            cores: self.cores.clone(),
            pipelines: [("whole".to_owned(), Stages::ALL)]
                .into_iter()
                .chain(without)
                .collect(),
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
        };
        let report = store_alone::run(&options, &super::progress)?;
        print!("{report}");
        match &self.json {
            Some(file) => super::write_json(file, &report),
            None => Ok(()),
        }
    }
}
