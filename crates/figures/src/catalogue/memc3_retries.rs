//! MemC3, §3.2.1: reads that are repeated because an unrelated key has the same version counter.

use anyhow::Result;
use glimmer_microbench::store_alone::mirror;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Mark, Plot},
};

const ITEMS: u32 = 500_000;
/// Changed keys of a repetition: the share of repeated reads then has an error of 6%.
const CHANGES: u64 = 2_000_000;
const REPETITIONS: usize = 5;

const COUNTERS: &str = "8,192 counters";
const BY_CHANGE: &str = "reads repeated, % of the keys that changed meanwhile";
const BY_INSERT: &str = "reads repeated, % of the reads with an insert in the middle";
const CHANGED: &str = "keys that changed in an exchange";
const PLACE: &str = "";

/// The figure.
pub struct FalseRetries;

impl Figure for FalseRetries {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-retries",
            title: "Reads that are repeated for another key's sake",
            source: "MemC3 (NSDI'13), §3.2.1; no figure",
            claim: "An array of 8,192 version counters is small enough for the cache, and a read \
                    is repeated because of an unrelated key in roughly 0.01% of the cases.",
            here: "Our copy of the cuckoo table with the paper's array of counters: the smaller \
                   one of a key's two buckets chooses its counter, as in the published code of \
                   MemC3. The table has half a million slots, of which 93% are in use. One thread \
                   reads random keys. In the middle of each read, after the first look at the \
                   buckets, it removes the oldest key and inserts a new one, which displaces \
                   others. The read then finds its counter changed, or not. So every read meets a \
                   writer, and the counts do not depend on time. They are divided by all keys \
                   that were removed, inserted or displaced, and by the reads.",
            kind: Kind::Counted,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "what",
                series: "versions",
                x: "place",
                y: "value",
            },
            plot: Plot::bars("", "").columns(3).paper(
                "MemC3, §3.2.1",
                vec![Mark::bar(BY_CHANGE, COUNTERS, PLACE, 0.01)],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let (items, changes) = run.pick((ITEMS, CHANGES), (4_000, 4_000));
        let repeat = run.repeat(REPETITIONS);
        run.rounds_of_many(repeat, &mut [COUNTERS], |series, _, seed| {
            let counted = mirror::retries(items, changes, seed)?;
            let [reads, changes, repeated] =
                [counted.reads, counted.changes, counted.repeated].map(|count| count as f64);
            let values = [
                (BY_CHANGE, 100.0 * repeated / changes),
                (BY_INSERT, 100.0 * repeated / reads),
                (CHANGED, changes / reads),
            ];
            let point = |(panel, value)| Point::new(panel, *series, PLACE, value);
            Ok(values.map(point).into())
        })
    }
}
