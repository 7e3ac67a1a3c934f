//! `glimmer bench store`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use glimmer_engine::Stages;
use glimmer_microbench::evict::{self, Rule};
use glimmer_microbench::store_alone::{self, Candidate, HeapPages, Load, Mode, Options, Ours};
use glimmer_notation as notation;

use super::peer_name::PeerName;
use super::versus::Distribution;
use glimmer_cli::vocabulary::{repetitions, seconds, share_percent};

/// Measure the store alone, in operations per random memory read
///
/// Items of 8-byte keys and values, far more than fit a cache, go through the
/// engine's prefetch pipeline in this process: no sockets, no protocol. In the
/// same run, random 64-byte reads per second say what the machine's memory can
/// do; operations per random read are what remains comparable from machine to
/// machine.
///
/// With --peers, the tables of others are driven by the same loop with the same
/// keys and values, repetition by repetition in turn with ours: public crates,
/// the standard library's ordered map, and mirrors of the tables that the papers
/// compare with. They hash as we do, and lie on huge pages as ours do. Public
/// tables come twice: with keys and values of a fixed length in the table itself,
/// and, as NAME-bytes, with keys and values of any length, as ours have. Every
/// table stays in memory throughout: with 16 million items reckon with a gigabyte
/// for each, two for those that hold items of any length, five and more for moka.
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
    /// Items stored; at 40 bytes each, and a store for each mode and number of cores
    #[arg(
        long,
        default_value_t = 1 << 24,
        value_parser = notation::within::<u32>(notation::count, 1..1 << 31),
    )]
    items: u32,
    /// Our tables: cache unless told otherwise, with --peers all all three. Cache mode comes once
    /// for each rule of --evict
    #[arg(long, value_delimiter = ',')]
    table: Vec<OurTable>,
    /// Who may touch a partition
    #[arg(long, value_delimiter = ',', default_value = "all")]
    access: Vec<AccessMode>,
    /// Eviction rules of cache mode; the table has room for all items, but counting reads has its
    /// price. What lru gives up while it puts back what is read is stored again and counted as
    /// missed
    #[arg(long, value_delimiter = ',', default_value = evict::DEFAULT.name)]
    evict: Vec<Rule>,
    /// Tables of others, beside ours
    #[arg(long, value_delimiter = ',')]
    peers: Vec<PeerName>,
    /// On which pages the tables of others are to lie; ours ask for huge ones
    #[arg(long, default_value = "huge")]
    peer_pages: Pages,
    /// Key popularity
    #[arg(long, value_delimiter = ',', default_value = "uniform,zipf")]
    dist: Vec<Distribution>,
    /// Shares of reads, the rest being writes
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.95,0.5",
        value_parser = share_percent,
    )]
    gets: Vec<u32>,
    /// Read also keys that are not there
    #[arg(long)]
    misses: bool,
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
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Also write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum OurTable {
    /// Circular log and lossy index
    Cache,
    /// Segregated fits and bulk chaining: nothing is lost
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
    /// On huge ones
    Huge,
    /// On those that malloc gets unless it is told otherwise, mostly small ones
    Given,
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
        match &self.json {
            Some(file) => super::write_json(file, &report),
            None => Ok(()),
        }
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
