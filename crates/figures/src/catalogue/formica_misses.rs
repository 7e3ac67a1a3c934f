//! Formica's review of MICA: how many requests miss in the tables that it compares.

use anyhow::Result;

use super::formica::{SHOWN_GETS, stores};
use crate::{Columns, Figure, Kind, Needs, Point, Run, Spec, plot::Plot, workload::Mix};

const ITEMS: u32 = 500_000;
const REQUESTS: usize = 1_000_000;
const PANEL: &str = "";

/// The figure.
pub struct Misses;

fn one_key_size<const K: usize>(run: &mut Run<'_>, items: u32) -> Result<()> {
    for mut store in stores::<K>(run, items)? {
        let requests = run.pick(REQUESTS, 20_000);
        store.draw_some(Mix::new(false, SHOWN_GETS), requests);
        let missed = 100.0 * store.once()?.missed();
        run.add(Point::new(PANEL, store.name(), K.to_string(), missed));
    }
    Ok(())
}

impl Figure for Misses {
    fn spec(&self) -> Spec {
        Spec {
            name: "formica-misses",
            title: "Requests that miss, beside plain tables",
            source: "Formica's review of MICA",
            claim: "All tables were sized so that at most 5% of the requests miss.",
            here: "The tables of the figure `formica`, with half a million items, and a million \
                   requests of which 95% are GETs of keys that were stored. A log under a lossy \
                   index loses an item where a bucket is full, and a chained table where a chain \
                   has its bound. The count depends on the parameters alone.",
            kind: Kind::Counted,
            needs: Needs::one_core(2048),
            columns: Columns {
                panel: "panel",
                series: "structure",
                x: "key size in bytes",
                y: "GETs missed, %",
            },
            plot: Plot::bars("key size in bytes", "GETs missed, %"),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 20_000);
        one_key_size::<8>(run, items)?;
        one_key_size::<16>(run, items)?;
        one_key_size::<32>(run, items)?;
        one_key_size::<64>(run, items)?;
        one_key_size::<128>(run, items)
    }
}
