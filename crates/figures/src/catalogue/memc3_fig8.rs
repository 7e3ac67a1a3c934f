//! MemC3, Figure 8: throughput of four kinds of cache, with a big and a small cache.

use std::fmt;

use anyhow::Result;
use glimmer_microbench::store_alone::{Rig, rig::Task, stream::Operation, tables::memc3_cache};

use super::memc3_table3::{CHAINING_CLOCK, CUCKOO_CLOCK, MIRRORS, OURS};
use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Mark, Plot},
    systems,
    workload::Mix,
};

const KEYS: u32 = 2_000_000;
const BIG: &str = "big cache: everything fits";
const SMALL: &str = "small cache: a tenth of it fits";
const MISSED: &str = "GETs missed, %";
/// Reads with Zipf popularity. Missed items are stored.
const MIX: Mix = Mix::new(true, 100);
/// Requests of a measurement, of all threads together. None comes twice, however fast a cache is.
const LIST: usize = 4_000_000;
/// Bytes of memcached's item, the unit of both sizes.
const ITEM_BYTES: usize = 112;

/// The figure.
pub struct Throughput;

struct Case {
    panel: &'static str,
    name: &'static str,
    threads: usize,
    rig: Box<dyn Rig>,
}

impl Case {
    fn new(panel: &'static str, name: &'static str, threads: usize, keys: u32) -> Result<Case> {
        let all = keys as usize * ITEM_BYTES;
        // Cuckoo hashing and our own table need slightly more memory than their items take.
        let bytes = if panel == BIG {
            all + all / 10
        } else {
            all / 10
        };
        let rig = match MIRRORS.into_iter().find(|(mirror, _)| *mirror == name) {
            Some((_, kind)) => kind.cache(bytes, threads)?,
            None => memc3_cache(bytes, threads)?,
        };
        Ok(Case {
            panel,
            name,
            threads,
            rig,
        })
    }

    /// This many requests, divided among the threads, other ones in each repetition: a cache that
    /// is asked for the same list again has its items already. Every thread may access every key,
    /// so the number of a share decides only what is drawn.
    fn draw(&self, repetition: usize, keys: u32, count: usize) -> Vec<Vec<Operation>> {
        let draw = |worker| {
            let share = self.rig.share(worker + repetition * self.threads);
            share.draw(MIX.popularity(keys), MIX.get_share(), count / self.threads)
        };
        (0..self.threads).map(draw).collect()
    }

    /// Stores all keys, the most popular last, and then goes through a list once.
    fn warm(&mut self, keys: u32, count: usize) -> Result<()> {
        let all = (0..keys).rev().map(|number| Operation::new(number, true));
        self.rig.run(&[all.collect()], &Task::filling())?;
        let lists = self.draw(0, keys, count);
        self.rig.run(&lists, &Task::filling())?;
        Ok(())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { panel, name, .. } = self;
        write!(out, "{panel}, {} threads: {name}", self.threads)
    }
}

impl Figure for Throughput {
    fn spec(&self) -> Spec {
        Spec {
            name: "memc3-fig8",
            title: "Throughput of caches by threads",
            source: "MemC3 (NSDI'13), Figure 8, §5.3",
            claim: "In a big cache without misses, chaining with LRU does not scale, because every \
                    read changes the list under a lock, and a concurrent index alone helps little. \
                    Chaining with CLOCK reaches 22 Mops at 12 threads, cuckoo hashing with CLOCK \
                    30 at 16. In a small cache, where 15% of the GETs miss and store, cuckoo \
                    hashing with CLOCK is best again, at 6 Mops.",
            here: "Two million keys of 16 bytes with values of 32, under Zipf's law. Requests are \
                   reads, and each miss adds a write. A measurement has four million requests, \
                   divided among the threads, and none comes twice. All caches have the same \
                   bytes for items, so caches with smaller items miss less. Our own MemC3 table \
                   has these bytes for items and index together. With two cores, cuckoo hashing \
                   is not faster than chaining with CLOCK, as it is in the paper. Optimistic \
                   reads save the cost of contended bucket locks, and few threads contend here, \
                   while a cuckoo lookup reads two buckets and a short chain holds one or two \
                   items.",
            kind: Kind::Timing,
            needs: Needs::two_cores(12, 8000),
            columns: Columns {
                panel: "cache",
                series: "kind",
                x: "threads",
                y: "operations per s",
            },
            plot: Plot::lines("threads", "operations per second")
                .whole_x()
                .paper(
                    "MemC3 §5.3, for one thread: big cache, cuckoo+CLOCK 30 million with 16 \
                     threads, chaining+CLOCK 22 million with 12; small cache, \
                     cuckoo+CLOCK 6 million with 6",
                    vec![
                        Mark::point(BIG, CUCKOO_CLOCK, 1.0, 30e6 / 16.0),
                        Mark::point(BIG, CHAINING_CLOCK, 1.0, 22e6 / 12.0),
                        Mark::point(SMALL, CUCKOO_CLOCK, 1.0, 6e6 / 6.0),
                    ],
                ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(KEYS, 20_000);
        let list = run.pick(LIST, 20_000);
        let names = MIRRORS.map(|(name, _)| name).into_iter().chain([OURS]);
        let names: Vec<&'static str> = names.collect();
        for panel in [BIG, SMALL] {
            let mut cases = Vec::new();
            for threads in systems::thread_counts(run.cores().min(run.pick(16, 2))) {
                for &name in &names {
                    cases.push(Case::new(panel, name, threads, keys)?);
                }
            }
            run.say(format!("{panel}: warming up"));
            for case in &mut cases {
                case.warm(keys, list)?;
            }
            run.rounds(run.repeat(5), &mut cases, |case, _, repetition| {
                let lists = case.draw(repetition as usize + 1, keys, list);
                let outcome = case.rig.run(&lists, &Task::filling())?;
                let threads = case.threads as f64;
                let rate = outcome.operations_per_s;
                let point = Point::new(case.panel, case.name, threads, rate);
                Ok(point.also(MISSED, outcome.missed() * 100.0))
            })?;
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let threads = data.line(BIG, OURS).filter_map(|row| row.across());
        let most = threads.reduce(f64::max);
        for panel in [BIG, SMALL] {
            let ours = most.and_then(|most| data.ratio(panel, most, OURS, CUCKOO_CLOCK));
            shape.beside(
                &format!("{panel}, all cores: our table over cuckoo+CLOCK"),
                "",
                ours.map(|ratio| ratio.text(2)),
            );
        }
    }
}
