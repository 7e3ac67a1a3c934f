//! MemC3, Figures 6 and 7: lookups and inserts of threads that share one table.

use anyhow::Result;
use glimmer_microbench::store_alone::{
    Mode, Rig,
    mirror::{IndexKind, Kind as Mirror, LockKind, ReplacementKind},
    tables::memc3,
};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    alone::{self, Alone},
    plot::{Mark, Plot},
    systems,
    workload::Mix,
};

const ITEMS: u32 = 2_000_000;
const CUCKOO: &str = "cuckoo, optimistic";
const GLOBAL: &str = "chaining, one lock";
const BUCKET: &str = "chaining, bucket locks";
const OURS: &str = "glimmer memc3";
const BY_THREADS: &str = "by threads, 100% GET";
const BY_THREADS_10: &str = "by threads, 10% PUT";
const BY_WRITES: &str = "by share of PUTs, %, all cores";
/// Shares of reads in percent at which all threads are measured.
const GETS_PERCENT: [u32; 5] = [100, 90, 80, 50, 0];

/// The figure.
pub struct Threads;

fn tables() -> [(&'static str, Option<Mirror>); 4] {
    let mirror = |index, locks, huge_pages| {
        Some(Mirror {
            index,
            replacement: ReplacementKind::None,
            locks,
            huge_pages,
        })
    };
    [
        (
            CUCKOO,
            mirror(IndexKind::CuckooTags, LockKind::Optimistic, true),
        ),
        (GLOBAL, mirror(IndexKind::Chaining, LockKind::Global, false)),
        (
            BUCKET,
            mirror(IndexKind::ChainingByWords, LockKind::Bucket, true),
        ),
        (OURS, None),
    ]
}

/// Builds one of the paper's tables, or ours.
fn build(table: Option<Mirror>, items: u32, threads: usize) -> Result<Box<dyn Rig>> {
    match table {
        Some(mirror) => mirror.build(items, threads),
        None => memc3(items, Mode::Crcw, threads),
    }
}

impl Figure for Threads {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-fig6-7",
            title: "Threads that share one table, by their number and by share of writes",
            source: "MemC3 (NSDI'13), Figures 6 and 7, §5.2",
            claim: "With optimistic cuckoo hashing, lookups scale with threads. Under memcached's \
                    global lock they do not scale at all. More writes slow cuckoo hashing down, \
                    because writers take turns, and leave chaining about the same. Cuckoo hashing \
                    is better in general.",
            here: "Up to one thread for each core, uniform keys, two million items of 16-byte keys \
                   and 32-byte values. The paper inserts new keys. Here writes replace values, so \
                   the table does not change in size during a measurement. The paper goes to 16 \
                   threads. Our own table is partitioned, so a writer waits only for other writers \
                   of its partition.",
            kind: Kind::Timing,
            needs: Needs::two_cores(12, 6000),
            columns: Columns {
                panel: "panel",
                series: "table",
                x: "threads, or share of PUTs",
                y: "operations per s",
            },
            plot: Plot::lines("", "operations per second")
                .whole_x()
                .columns(3)
                .paper(
                    "MemC3 §5: 5 million lookups per second with one thread; its 35 million with \
                     12 threads, and 20 million with 10 threads and \
                     10% PUT, are beyond these scales",
                    vec![Mark::point(BY_THREADS, CUCKOO, 1.0, 5e6)],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 20_000);
        let repeat = run.repeat(5);
        let most = run.cores().min(run.pick(16, 2));
        let mut stores = Vec::new();
        for threads in systems::thread_counts(most) {
            for (name, table) in tables() {
                let build = || build(table, items, threads);
                stores.push(Alone::of(run, name, items, threads, build)?);
            }
        }
        let few = [100, 90].map(|gets| Mix::new(false, gets));
        alone::rounds(run, repeat, &mut stores, &few, 200, |store, mix, rate| {
            let panel = match mix.gets_percent {
                100 => BY_THREADS,
                _ => BY_THREADS_10,
            };
            Point::new(panel, store.name(), store.workers() as f64, rate)
        })?;
        stores.retain(|store| store.workers() == most);
        let all = GETS_PERCENT.map(|gets| Mix::new(false, gets));
        alone::rounds(run, repeat, &mut stores, &all, 200, |store, mix, rate| {
            let puts = f64::from(100 - mix.gets_percent);
            Point::new(BY_WRITES, store.name(), puts, rate)
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let threads = data.line(BY_THREADS, OURS).filter_map(|row| row.across());
        let most = threads.reduce(f64::max);
        shape.beside(
            "reads only, all cores: our table over optimistic cuckoo hashing",
            "",
            most.and_then(|most| Some(data.ratio(BY_THREADS, most, OURS, CUCKOO)?.text(2))),
        );
    }
}
