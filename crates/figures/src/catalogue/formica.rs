//! Formica's review of MICA: how much better is it than a plain hash table?

use anyhow::Result;
use glimmer_microbench::store_alone::{HeapPages, peers, tables::log_and_lossy_index};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    alone::{self, Alone},
    plot::Plot,
    workload::Mix,
};

const ITEMS: u32 = 2_000_000;
const OURS: &str = "circular log, lossy index";
const ORDERED: &str = "std ordered map";
const CHAINED: &str = "bounded chained table";
const BY_KEY: &str = "by key size in bytes, 95% GET";
const BY_GETS: &str = "by share of GETs, %, 16-byte keys";
const GETS_PERCENT: [u32; 4] = [5, 50, 75, 95];
/// The share of reads in percent where sizes of keys are compared.
pub const SHOWN_GETS: u32 = 95;
const SHOWN_KEY: usize = 16;

/// The figure.
pub struct PlainTables;

/// The review's tables, with keys of `K` bytes.
pub fn stores<const K: usize>(run: &Run<'_>, items: u32) -> Result<Vec<Alone>> {
    let huge = HeapPages::Huge;
    Ok(vec![
        Alone::of(run, OURS, items, 1, || log_and_lossy_index::<K>(items))?,
        Alone::of(run, ORDERED, items, 1, || {
            peers::ordered::<K>(items, 1, huge)
        })?,
        Alone::of(run, CHAINED, items, 1, || {
            peers::bounded::<K>(items, 1, huge)
        })?,
    ])
}

fn one_key_size<const K: usize>(run: &mut Run<'_>, items: u32) -> Result<()> {
    let mut stores = stores::<K>(run, items)?;
    let repeat = run.repeat(5);
    let mixes = [Mix::new(false, SHOWN_GETS)];
    alone::rounds(run, repeat, &mut stores, &mixes, 200, |store, _, rate| {
        Point::new(BY_KEY, store.name(), K.to_string(), rate)
    })?;
    if K == SHOWN_KEY {
        let mixes = GETS_PERCENT.map(|gets| Mix::new(false, gets));
        alone::rounds(run, repeat, &mut stores, &mixes, 200, |store, mix, rate| {
            Point::new(BY_GETS, store.name(), mix.gets_percent.to_string(), rate)
        })?;
    }
    Ok(())
}

impl Figure for PlainTables {
    fn spec(&self) -> Spec {
        Spec {
            name: "formica",
            title: "MICA's structures beside plain ones",
            source: "Formica's review of MICA, its two charts",
            claim: "On one core, Formica's circular log under a lossy index has a higher \
                    throughput at every key size than a std::map and than a chained hash table \
                    with bounded chains. PUTs cost no more than GETs. With few GETs the chained \
                    table improves, because only GETs follow dependent links to the end of a \
                    chain.",
            here: "Our circular log and lossy index (cache mode, FIFO, EREW) run beside the \
                   standard library's ordered map, which is a BTreeMap here, and a chained table \
                   with bounded chains that keeps its items in its nodes. One core, two million \
                   items of 8-byte values, uniform keys. The other two keep keys of one length \
                   that is known at compile time. All tables lie on huge pages. Ours is driven in \
                   batches with its prefetch pipeline; Formica's was not.",
            kind: Kind::Timing,
            needs: Needs::one_core(2048),
            columns: Columns {
                panel: "panel",
                series: "structure",
                x: "key size, or share of GETs",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second"),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 20_000);
        one_key_size::<8>(run, items)?;
        one_key_size::<SHOWN_KEY>(run, items)?;
        one_key_size::<32>(run, items)?;
        one_key_size::<64>(run, items)?;
        one_key_size::<128>(run, items)
    }
}
