//! MemC3, Figures 6 and 7 with inserts of new keys into a nearly full table.

use std::fmt;

use anyhow::{Result, ensure};
use glimmer_microbench::store_alone::mirror::{
    self, IndexKind, Kind as Mirror, LockKind, ReplacementKind,
};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    alone::Alone,
    plot::{Mark, Plot},
    workload::Mix,
};

/// Slots of the cuckoo table.
const SLOTS: u32 = 1 << 22;
/// Part of the slots in use before the inserts, in percent. After them the table is full.
const BEFORE_PERCENT: u32 = 88;
const INSERTS_PERCENT: [u32; 4] = [0, 10, 50, 100];

const ONE: &str = "one thread";
const ALL: &str = "all cores";
const CUCKOO: &str = "cuckoo, optimistic";
const CHAINING: &str = "chaining, one lock";
const TABLES: [(&str, Mirror); 2] = [
    (
        CUCKOO,
        Mirror {
            index: IndexKind::CuckooTags,
            replacement: ReplacementKind::None,
            locks: LockKind::Optimistic,
            huge_pages: true,
        },
    ),
    (
        CHAINING,
        Mirror {
            index: IndexKind::Chaining,
            replacement: ReplacementKind::None,
            locks: LockKind::Global,
            huge_pages: false,
        },
    ),
];

/// The figure.
pub struct Inserts;

struct Case {
    table: (&'static str, Mirror),
    threads: usize,
    inserts_percent: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, threads, inserts) = (self.table.0, self.threads, self.inserts_percent);
        write!(out, "{name}, {threads} threads, {inserts}% inserts")
    }
}

impl Case {
    /// Operations per second in a new table.
    fn measure(&self, run: &Run<'_>) -> Result<f64> {
        let slots = run.pick(SLOTS, 1 << 14);
        let full = mirror::full_items(IndexKind::CuckooTags, slots);
        let stored = (u64::from(slots) * u64::from(BEFORE_PERCENT) / 100) as u32;
        let (name, table) = self.table;
        let mut store = Alone::of(run, name, stored, self.threads, || {
            table.build_with_room(stored, full, self.threads)
        })?;
        if self.inserts_percent == 0 {
            store.draw(run, Mix::new(false, 100));
            return store.operations_per_s(run, 200);
        }
        let get_share = f64::from(100 - self.inserts_percent) / 100.0;
        store.draw_new(stored..full, get_share);
        let outcome = store.once()?;
        ensure!(outcome.found == outcome.reads, "{name} has lost keys");
        Ok(outcome.operations_per_s)
    }
}

impl Figure for Inserts {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-inserts",
            title: "Inserts of new keys into a nearly full table",
            source: "MemC3 (NSDI'13), Figures 6 and 7, §5.2",
            claim: "With 10% inserts, cuckoo hashing reaches 20 million operations per second \
                    with 10 threads, about 8 times the default table. Writes keep their speed: \
                    with many of them it is as fast as chaining with one lock.",
            here: "The paper's cuckoo table and memcached's chained one, as in `memc3-fig6-7`, \
                   with items of 16-byte keys and 32-byte values. Each measurement builds a new \
                   table. The cuckoo table has 4.2 million slots, of which 88% are in use before \
                   the inserts and 93% after them. The chained table gets the same keys. \
                   Every insert is of a new key, so inserts into the cuckoo table displace keys. \
                   The threads insert different keys, among reads of random keys that were there \
                   before. Chaining with locks of buckets is left out: in our copy its inserts \
                   take turns. The paper does not state how full its tables are in this \
                   experiment.",
            kind: Kind::Timing,
            needs: Needs::two_cores(12, 2000),
            columns: Columns {
                panel: "threads",
                series: "table",
                x: "inserts, %",
                y: "operations per s",
            },
            plot: Plot::lines("inserts, %", "operations per second")
                .whole_x()
                .columns(2)
                .paper(
                    "MemC3 §5: 5 million lookups per second with one thread; its 20 million with \
                     10 threads and 10% inserts are beyond these scales",
                    vec![Mark::point(ONE, CUCKOO, 0.0, 5e6)],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let most = run.cores().min(run.pick(16, 2));
        let mut cases = Vec::new();
        for threads in [1, most] {
            for inserts_percent in INSERTS_PERCENT {
                cases.extend(TABLES.map(|table| Case {
                    table,
                    threads,
                    inserts_percent,
                }));
            }
        }
        run.rounds(run.repeat(5), &mut cases, |case, run, _| {
            let panel = if case.threads == 1 { ONE } else { ALL };
            let (name, inserts) = (case.table.0, f64::from(case.inserts_percent));
            Ok(Point::new(panel, name, inserts, case.measure(run)?))
        })
    }
}
