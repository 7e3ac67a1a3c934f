//! MICA, §4.3.1 and §4.3.2: the paper's own log and index beside ours.

use anyhow::Result;
use glimmer_microbench::store_alone::{Candidate, Mode, Ours, peers::paper};
use glimmer_store::evict::{FIFO, S3_FIFO};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    alone::{self, Alone},
    plot::Plot,
    workload::Mix,
};

const ITEMS: u32 = 8_000_000;
const TINY: usize = 8;
/// The shares of the paper's index that are used, in percent.
const LOADS: [(&str, usize); 2] = [
    ("the paper's, index half full", 50),
    ("the paper's, index 90% full", 90),
];
const OURS: [(&str, Ours); 2] = [
    ("glimmer, FIFO", Ours::Cache(FIFO)),
    ("glimmer, S3-FIFO", Ours::Cache(S3_FIFO)),
];
const MIXES: [Mix; 6] = [
    Mix::new(false, 5),
    Mix::new(false, 50),
    Mix::new(false, 95),
    Mix::new(true, 5),
    Mix::new(true, 50),
    Mix::new(true, 95),
];
const KEPT: &str = "items kept, %";

/// The figure.
pub struct Reference;

impl Figure for Reference {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-reference",
            title: "The paper's log and lossy index beside ours",
            source: "MICA (NSDI'14), §4.3.1 and §4.3.2; no figure",
            claim: "A lossy index resolves no collisions: a full bucket drops its oldest item, so \
                    inserts are about as fast as lookups.",
            here: "The paper's structures are reimplemented for one thread \
                   (`crates/microbench/src/store_alone/peers/paper.rs`): a circular log whose \
                   items bear their keyhash, and buckets of 15 entries without anything behind \
                   them. Hash, pipeline of prefetches and loop are ours, so the structures are \
                   what differs. Ours are the tables of cache mode under EREW. One core, eight \
                   million tiny items (8-byte keys and values). Puts are of keys that are there, \
                   as in the paper's workloads. The data say how many of the items the index has \
                   kept: with half of its entries used, full buckets drop one item in a thousand, \
                   with 90% one in sixteen, and reads of these are misses, which are a little \
                   faster.",
            kind: Kind::Timing,
            needs: Needs::one_core(3500),
            columns: Columns {
                panel: "popularity",
                series: "table",
                x: "load",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second")
                .columns(1)
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 50_000);
        let mut tables = Vec::new();
        for (name, load) in LOADS {
            let build = || paper::build::<TINY, TINY>(items, 1, load);
            tables.push(Alone::of(run, name, items, 1, build)?);
        }
        for (name, table) in OURS {
            let build = || Candidate::Ours(table, Mode::Erew).build(items, 1);
            tables.push(Alone::of(run, name, items, 1, build)?);
        }
        let kept: Vec<(String, f64)> = (tables.iter_mut())
            .map(|table| {
                let held = table.held().unwrap_or_default() as f64;
                (table.name(), 100.0 * held / f64::from(items))
            })
            .collect();
        let repeat = run.repeat(5);
        alone::rounds(run, repeat, &mut tables, &MIXES, 250, |table, mix, rate| {
            let panel = if mix.skewed { "skewed" } else { "uniform" };
            let place = format!("{}% GET", mix.gets_percent);
            let point = Point::new(panel, table.name(), place, rate);
            let of = kept.iter().find(|(name, _)| *name == table.name());
            point.also(KEPT, of.map_or(0.0, |(_, kept)| *kept))
        })
    }
}
