//! Formica's review of MICA: how much better is it than a plain hash table?

use anyhow::Result;
use glimmer_microbench::store_alone::{HeapPages, peers, tables::log_and_lossy_index};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
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
const SHOWN_GETS: u32 = 95;
const SHOWN_KEY: usize = 16;

/// The figure.
pub struct PlainTables;

fn stores<const K: usize>(run: &Run<'_>, items: u32) -> Result<Vec<Alone>> {
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
            needs: Needs {
                cores: 1,
                cores_of_paper: 1,
                memory_mib: 2048,
                peers: &[],
            },
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

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let least = |panel, other| {
            let ratios = data.places(panel).into_iter().map(|place| {
                let ratio = data.ratio(panel, place.clone(), OURS, other);
                Some(ratio?.median)
            });
            ratios
                .collect::<Option<Vec<f64>>>()?
                .into_iter()
                .reduce(f64::min)
        };
        for (panel, what) in [
            (BY_KEY, "at every key size"),
            (BY_GETS, "at every share of GETs"),
        ] {
            for (other, bound) in [(ORDERED, 3.0), (CHAINED, 1.3)] {
                shape.at_least(
                    &format!(
                        "MICA's structures win {what}: lowest ratio to the rate of the {other}"
                    ),
                    "above 1",
                    least(panel, other),
                    bound,
                );
            }
        }
        let puts = |series| {
            let rate = |gets: &str| data.median(BY_GETS, series, gets);
            Some(rate("5")? / rate("95")?)
        };
        shape.at_least(
            "PUTs cost about as much as GETs: rate with 5% GETs over rate with 95%, MICA's \
             structures",
            "above 1",
            puts(OURS),
            0.6,
        );
        shape.beside(
            "rate with 5% GETs over rate with 95%, bounded chained table",
            "above 1",
            puts(CHAINED).map(|ratio| format!("{ratio:.2}")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(ours: f64, ours_puts: f64, chained: f64, ordered: f64) -> Vec<String> {
        let mut data = Data::default();
        for (series, rate, puts) in [
            (OURS, ours, ours_puts),
            (ORDERED, ordered, ordered),
            (CHAINED, chained, chained),
        ] {
            for key in ["8", "16", "128"] {
                data.add(Point::new(BY_KEY, series, key, rate));
            }
            data.add(Point::new(BY_GETS, series, "5", puts));
            data.add(Point::new(BY_GETS, series, "95", rate));
        }
        let mut shape = Shape::default();
        PlainTables.judge(&data, &mut shape);
        shape
            .failures()
            .map(|finding| finding.what.clone())
            .collect()
    }

    #[test]
    fn the_reviews_shape_holds_and_others_do_not() {
        assert_eq!(failures(20.0, 18.0, 9.0, 2.0), Vec::<String>::new());
        assert_eq!(failures(20.0, 18.0, 19.0, 2.0).len(), 2);
        assert_eq!(failures(20.0, 18.0, 9.0, 8.0).len(), 2);
        let puts = failures(40.0, 20.0, 9.0, 2.0);
        assert!(puts.len() == 1 && puts[0].contains("PUTs"), "{puts:?}");
    }
}
