//! `glimmer bench store`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use glimmer_engine::Stages;
use glimmer_microbench::evict::{self, Rule};
use glimmer_microbench::store_alone::{self, Candidate, HeapPages, Load, Mode, Options, Ours};
use glimmer_notation as notation;

use super::peer_name::PeerName;
use super::versus::Distribution;
use glimmer_cli::vocabulary::{self, repetitions, seconds, share_percent};

/// Measure the tables alone, in operations per random memory read
///
/// Items of 8-byte keys and values, far more than a processor cache holds, pass
/// through the engine's prefetch pipeline in this process, without sockets and
/// protocol. In the same run, random 64-byte reads measure the machine's memory,
/// with 32 and with 128 in flight. Operations per random read (32 in flight) are
/// comparable from machine to machine.
///
/// With --peers, the same loop drives public tables with the same keys and
/// values, in turn with ours: public crates, the standard library's ordered map,
/// and mirrors of the tables that the papers compare with. They hash as we do,
/// and lie on huge pages as ours do. Public tables come in two forms: with keys
/// and values of a fixed length in the table itself, and, as NAME-bytes, with
/// keys and values of any length, as ours have. All tables stay in memory
/// throughout. With 16 million items, expect 1 GB for each table, 2 GB with any
/// length, and 5 GB and more for moka.
///
/// Examples:
///
///   glimmer bench store                                   all modes on one core and two
///
///   glimmer bench store --table cache,store,memc3 --access erew     our tables beside one another
///
///   glimmer bench store --peers all --items 4m --access erew        ours beside all others
///
///   glimmer bench store --table memc3 --access crcw --peers hashbrown,dashmap --misses
///
///   glimmer bench store --items 20m --access erew --cores 1 --without bucket,item,prefetch
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Number of items, at 40 bytes each, in one store for each mode and number of cores
    #[arg(
        long,
        default_value_t = 1 << 24,
        value_parser = notation::within::<u32>(notation::count, 1..1 << 31),
    )]
    items: u32,
    /// Our tables [default: cache; with --peers all, all three]. Cache mode is measured with each
    /// rule of --evict
    #[arg(long, value_delimiter = ',')]
    table: Vec<OurTable>,
    /// Access modes
    #[arg(long, value_delimiter = ',', default_value = "all")]
    access: Vec<AccessMode>,
    /// Eviction rules of cache mode. The table has room for all items, but counting reads has a
    /// cost. Items that lru gives up while it reinserts others are stored again and counted as
    /// missed
    #[arg(long, value_delimiter = ',', default_value = evict::DEFAULT.name)]
    evict: Vec<Rule>,
    /// Public tables to compare with
    #[arg(long, value_delimiter = ',')]
    peers: Vec<PeerName>,
    /// Pages of the public tables; ours use huge pages
    #[arg(long, default_value = "huge")]
    peer_pages: Pages,
    /// Key popularity
    #[arg(long, value_delimiter = ',', default_value = "uniform,zipf")]
    dist: Vec<Distribution>,
    /// Shares of reads; the other operations are writes
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.95,0.5",
        value_parser = share_percent,
    )]
    gets: Vec<u32>,
    /// Also read absent keys
    #[arg(long)]
    misses: bool,
    /// Numbers of cores
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    cores: Vec<usize>,
    /// Also measure without a stage of the pipeline
    #[arg(long, value_delimiter = ',')]
    without: Vec<Stage>,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum OurTable {
    /// Circular log and lossy index
    Cache,
    /// Segregated fits and bulk chaining: a lossless store
    Store,
    /// MemC3: cuckoo index, slabs, CLOCK
    Memc3,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum AccessMode {
    Erew,
    Crew,
    Crcw,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Pages {
    /// Huge pages
    Huge,
    /// The pages that malloc provides by default, mostly small ones
    Given,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stage {
    /// Do not fetch buckets ahead
    Bucket,
    /// Do not fetch items ahead
    Item,
    /// Fetch neither ahead
    Prefetch,
}

impl Arguments {
    /// Runs the measurement and prints its tables.
    pub fn run(&self) -> anyhow::Result<()> {
        let options = Options {
            items: self.items,
            candidates: self.candidates(),
            peer_pages: match self.peer_pages {
                Pages::Huge => HeapPages::Huge,
                Pages::Given => HeapPages::Given,
            },
            loads: self.loads(),
            cores: self.cores.clone(),
            pipelines: self.pipelines(),
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
        };
        let report = store_alone::run(&options, &super::progress)?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }

    fn candidates(&self) -> Vec<Candidate> {
        let wanted = |mode| self.access.contains(&mode) || self.access.contains(&AccessMode::All);
        let modes = Mode::ALL.into_iter().filter(|mode| {
            wanted(match mode {
                Mode::Erew => AccessMode::Erew,
                Mode::Crew => AccessMode::Crew,
                Mode::Crcw => AccessMode::Crcw,
            })
        });
        let tables: &[OurTable] = match self.table[..] {
            [] if self.peers.contains(&PeerName::All) => {
                &[OurTable::Cache, OurTable::Store, OurTable::Memc3]
            }
            [] => &[OurTable::Cache],
            _ => &self.table,
        };
        let mut ours = Vec::new();
        for table in tables {
            match table {
                OurTable::Cache => ours.extend(self.evict.iter().copied().map(Ours::Cache)),
                OurTable::Store => ours.push(Ours::Store),
                OurTable::Memc3 => ours.push(Ours::Memc3),
            }
        }
        let in_modes = |mode| ours.iter().map(move |&table| Candidate::Ours(table, mode));
        let mut candidates: Vec<Candidate> = modes.flat_map(in_modes).collect();
        for peer in self.peers.iter().flat_map(|peer| peer.candidates()) {
            if !candidates.contains(&peer) {
                candidates.push(peer);
            }
        }
        candidates
    }

    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for dist in &self.dist {
            let name = match dist {
                Distribution::Uniform => "uniform",
                Distribution::Zipf => "zipf 0.99",
            };
            loads.extend(self.gets.iter().map(|&gets_percent| Load {
                keys: name.to_owned(),
                popularity: Some(dist.over(self.items)),
                gets_percent,
            }));
        }
        if self.misses {
            loads.push(Load {
                keys: "not there".to_owned(),
                popularity: None,
                gets_percent: 100,
            });
        }
        loads
    }

    fn pipelines(&self) -> Vec<(String, Stages)> {
        let whole = ("whole".to_owned(), Stages::ALL);
        let without = self.without.iter().map(|stage| {
            let (name, bucket, item) = match stage {
                Stage::Bucket => ("without buckets", false, true),
                Stage::Item => ("without items", true, false),
                Stage::Prefetch => ("without prefetch", false, false),
            };
            (name.to_owned(), Stages { bucket, item })
        });
        [whole].into_iter().chain(without).collect()
    }
}
