//! MemC3, Figure 5: the cumulative contribution of each optimisation to lookups.

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
    workload::Mix,
};

const ITEMS: u32 = 4_000_000;
const HITS: &str = "keys that are there";
const MISSES: &str = "keys that are not";
const ALONE: &str = "one thread, no locks";
const TOGETHER: &str = "all cores, one table";
const CHAINING: &str = "chaining";
const CUCKOO: &str = "cuckoo";
const TAG: &str = "+tag";
const OPTIMISTIC: &str = "+opt lock";
const OURS: &str = "glimmer memc3";
/// All reads.
const READS: Mix = Mix::new(false, 100);

/// The figure.
pub struct Factors;

/// The paper's tables and ours (`None`). Each adds something to the one before it. A single thread
/// takes no locks.
fn tables(threads: usize) -> Vec<(&'static str, Option<Mirror>)> {
    use IndexKind::{Chaining, ChainingByWords, Cuckoo, CuckooTags};
    let lock = |kind| if threads == 1 { LockKind::None } else { kind };
    let mirror = |index, locks, huge_pages| {
        Some(Mirror {
            index,
            replacement: ReplacementKind::None,
            locks: lock(locks),
            huge_pages,
        })
    };
    use LockKind::{Bucket, Global, Optimistic};
    let mut tables = vec![
        (CHAINING, mirror(Chaining, Global, false)),
        ("+hugepage", mirror(Chaining, Global, true)),
        ("+int keycmp", mirror(ChainingByWords, Global, true)),
    ];
    if threads > 1 {
        tables.push(("+bucket lock", mirror(ChainingByWords, Bucket, true)));
    }
    tables.push((CUCKOO, mirror(Cuckoo, Bucket, true)));
    tables.push((TAG, mirror(CuckooTags, Bucket, true)));
    if threads > 1 {
        tables.push((OPTIMISTIC, mirror(CuckooTags, Optimistic, true)));
    }
    tables.push((OURS, None));
    tables
}

/// Builds one of the paper's tables, or ours.
fn build(table: Option<Mirror>, items: u32, threads: usize) -> Result<Box<dyn Rig>> {
    match table {
        Some(mirror) => mirror.build(items, threads),
        None if threads == 1 => memc3(items, Mode::Erew, threads),
        None => memc3(items, Mode::Crcw, threads),
    }
}

impl Figure for Factors {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-fig5",
            title: "Contribution of optimisations to lookups",
            source: "MemC3 (NSDI'13), Figure 5, §5.2",
            claim: "With one thread and no locks, all optimisations together double memcached's \
                    chained table for lookups of present keys and give five times its rate for \
                    absent keys. Without tags, cuckoo hashing loses; tags are essential (factors \
                    of 2 and 8). With six threads the gains are 12 and 25 times. Most of that gain \
                    comes from finer locks, because a global lock makes threads wait for one \
                    another.",
            here: "The figure shows the paper's tables, each with the optimisations of the one \
                   before it, and last our own MemC3 table, which the engine drives in batches \
                   with its prefetch pipeline. There are four million items of 16-byte keys and \
                   32-byte values, read uniformly. The chained index has at most 1.5 items per \
                   bucket, as memcached's has. On a virtual machine, huge pages contribute far \
                   more than in the paper, because a TLB miss walks two sets of page tables. The \
                   cost of a contended lock differs more between machines than between two threads \
                   and six.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 1,
                cores_of_paper: 6,
                memory_mib: 9000,
                peers: &[],
            },
            columns: Columns {
                panel: "threads",
                series: "lookups",
                x: "table",
                y: "operations per s",
            },
            plot: Plot::bars("", "lookups per second").columns(1).paper(
                "MemC3 §5: the table alone does 5 million lookups per second with one thread",
                vec![Mark::bar(ALONE, HITS, TAG, 5e6)],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 20_000);
        let mut counts = vec![1, run.cores()];
        counts.dedup();
        if counts == [1] {
            run.note("one core: nothing is measured together");
        }
        let mut stores = Vec::new();
        for threads in counts {
            for (name, table) in tables(threads) {
                let build = || build(table, items, threads);
                stores.push(Alone::of(run, name, items, threads, build)?);
            }
        }
        let panel = |store: &Alone| {
            if store.workers() == 1 {
                ALONE
            } else {
                TOGETHER
            }
        };
        let repeat = run.repeat(5);
        alone::rounds(run, repeat, &mut stores, &[READS], 200, |store, _, rate| {
            Point::new(panel(store), HITS, store.name(), rate)
        })?;
        alone::rounds_absent(run, repeat, &mut stores, 200, |store, rate| {
            Point::new(panel(store), MISSES, store.name(), rate)
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let over = |lookups, below| {
            let ours = data.median(ALONE, lookups, OURS)?;
            Some(ours / data.median(ALONE, lookups, below)?)
        };
        for (lookups, bound) in [(HITS, 2.0), (MISSES, 4.0)] {
            shape.at_least(
                &format!("one thread: our table's lookups over the chained table's, {lookups}"),
                "",
                over(lookups, CHAINING),
                bound,
            );
            shape.beside(
                &format!("one thread: our table's lookups over the paper's, {lookups}"),
                "",
                over(lookups, TAG).map(|ratio| format!("{ratio:.2}")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(ours: f64) -> usize {
        let mut data = Data::default();
        for lookups in [HITS, MISSES] {
            for (table, rate) in [(CHAINING, 4.0), (TAG, 10.0), (OURS, ours)] {
                data.add(Point::new(ALONE, lookups, table, rate));
            }
        }
        Factors.judged(&data).failures().count()
    }

    #[test]
    fn our_table_is_held_to_the_chained_one() {
        assert_eq!(failures(20.0), 0);
        assert_eq!(failures(10.0), 1);
        assert_eq!(failures(7.0), 2);
    }

    /// A name refers to one table only, and each table differs from the one before.
    #[test]
    fn every_step_is_another_table() {
        for threads in [1, 2] {
            let tables = tables(threads);
            assert!(tables.windows(2).all(|pair| pair[0].1 != pair[1].1));
        }
    }
}
