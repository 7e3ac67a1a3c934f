//! MICA, §4.4 and §4.3.1: what the pipeline of prefetches gains, and what huge pages gain.

use std::fmt;

use anyhow::Result;
use glimmer_engine::Stages;
use glimmer_microbench::store_alone::{Mode, Ours, Resident};
use glimmer_store::{evict::S3_FIFO, memory::PagePolicy};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec, alone::Alone, plot::Plot, workload::Mix,
};

const ITEMS: u32 = 8_000_000;
const TABLES: [(&str, Ours); 3] = [
    ("cache mode", Ours::Cache(S3_FIFO)),
    ("store mode", Ours::Store),
    ("memc3", Ours::Memc3),
];
const COMPLETE: &str = "complete";
const SMALL: &str = "on small pages";
const PIPELINES: [(&str, Stages); 4] = [
    (COMPLETE, Stages::ALL),
    ("buckets not prefetched", stages(false, true)),
    ("items not prefetched", stages(true, false)),
    ("nothing prefetched", stages(false, false)),
];
const ON_HUGE: &str = "part on huge pages";

const fn stages(bucket: bool, item: bool) -> Stages {
    Stages { bucket, item }
}

/// The figure.
pub struct Prefetch;

/// A table on pages of one kind.
struct Filled {
    store: Alone,
    /// The part of its memory that the kernel has put on huge pages.
    on_huge: f64,
}

impl Filled {
    fn new(run: &Run<'_>, name: &str, table: Ours, pages: PagePolicy) -> Result<Filled> {
        let items = run.pick(ITEMS, 50_000);
        let before = Resident::now()?;
        let name = format!("{name}, {pages:?} pages");
        let store = Alone::of(run, name, items, 1, || {
            table.build_on(pages, items, Mode::Erew, 1)
        })?;
        let taken = Resident::now()?.since(before);
        Ok(Filled {
            store,
            on_huge: taken.huge_bytes as f64 / taken.bytes.max(1) as f64,
        })
    }

    fn rate(&mut self, run: &Run<'_>, mix: Mix, stages: Stages) -> Result<f64> {
        self.store.draw(run, mix);
        self.store.operations_per_s_through(stages, run, 200)
    }
}

struct Case {
    table: usize,
    mix: Mix,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", TABLES[self.table].0, self.mix)
    }
}

impl Figure for Prefetch {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-prefetch",
            title: "Tables without prefetches, and on small pages",
            source: "MICA (NSDI'14), §4.4 and §4.3.1; no figure",
            claim: "Stalls for memory lower the throughput considerably, unless prefetches of \
                    several stages overlap them. Huge pages reduce TLB misses considerably.",
            here: "The engine runs alone on one core under EREW, with eight million tiny items. It \
                   hashes the keys of a batch, prefetches their buckets, then their items, and \
                   then executes the requests. Without a stage, the requests of a batch find \
                   memory as it is. The last bar has the complete pipeline on a table that was \
                   told to lie on pages of 4 KiB. All other tables ask for transparent huge pages; \
                   the data say which part of their memory the kernel has put there.",
            kind: Kind::Timing,
            needs: Needs::one_core(3500),
            columns: Columns {
                panel: "table",
                series: "pipeline",
                x: "load",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second")
                .columns(1)
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut filled = Vec::new();
        for (name, table) in TABLES {
            let huge = Filled::new(run, name, table, PagePolicy::Transparent)?;
            let small = Filled::new(run, name, table, PagePolicy::Small)?;
            filled.push([huge, small]);
        }
        let of = |table| Mix::ALL.map(|mix| Case { table, mix });
        let mut cases: Vec<Case> = (0..TABLES.len()).flat_map(of).collect();
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, _| {
            let [huge, small] = &mut filled[case.table];
            let (panel, place) = (TABLES[case.table].0, case.mix.to_string());
            let mut points = Vec::new();
            for (series, stages) in PIPELINES {
                let rate = huge.rate(run, case.mix, stages)?;
                let point = Point::new(panel, series, place.as_str(), rate);
                points.push(point.also(ON_HUGE, huge.on_huge));
            }
            let rate = small.rate(run, case.mix, Stages::ALL)?;
            points.push(Point::new(panel, SMALL, place, rate).also(ON_HUGE, small.on_huge));
            Ok(points)
        })
    }
}
