//! MICA, §4.1.2: what LRU loses if it sees the reads of one core only.

use anyhow::Result;
use glimmer_microbench::{
    evict::{FIFO as FIFO_RULE, LRU, Rule, S3_FIFO},
    hit_ratio::{ours::Ours, pattern::Pattern, trace::Trace},
};

use crate::{Columns, Figure, Kind, Needs, Point, Run, Spec, plot::Plot};

/// Cores that read a partition in turn. The paper's have 8 in a NUMA domain.
const CORES: [u32; 5] = [1, 2, 4, 8, 16];
/// Items in the cache, in percent of the keys.
const CAPACITY_PERCENT: f64 = 10.0;
const FIFO: &str = "fifo";
const PAPER: &str = "lru, threshold 0.5";
const S3FIFO: &str = "s3fifo";
const PANEL: &str = "Zipf 0.99";
const SEEDS: u64 = 3;

/// The figure.
pub struct CrewSampling;

fn rules() -> [(&'static str, Rule); 3] {
    let paper = LRU.with_threshold(0.5);
    [(FIFO, FIFO_RULE), (PAPER, paper), (S3FIFO, S3_FIFO)]
}

impl Figure for CrewSampling {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-crew",
            title: "Hit ratio if one core counts reads",
            source: "MICA (NSDI'14), §4.1.2; no figure",
            claim: "Under CREW, MICA counts reads from the core that writes a partition, and no \
                    others. Clients direct reads to all cores in turn, so this is a sample, and \
                    approximates LRU.",
            here: "A partition in cache mode, and a client that requests keys under Zipf's law and \
                   stores what it did not find. Of as many reads as there are cores, the eviction \
                   rule sees one. With one core that is EREW. The cache has room for 10% of \
                   200,000 keys, and 600,000 requests count after as many to warm up. \
                   `lru, threshold 0.5` is the paper's rule; with `s3fifo` see what ours would \
                   lose. This server's CREW counts all reads, which readers note in the index. \
                   What LRU is for is its gain over `fifo`, which no read changes: the paper's \
                   statement is judged by that part of the gain that is left with 8 cores.",
            kind: Kind::Counted,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "workload",
                series: "rule",
                x: "cores that read a partition",
                y: "hit ratio, %",
            },
            plot: Plot::lines("cores that read a partition", "hit ratio, %").log_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(200_000, 10_000);
        let counted = run.pick(600_000, 30_000);
        let Some(pattern) = Pattern::named("zipf-0.99") else {
            anyhow::bail!("no such pattern");
        };
        for seed in 1..=run.repeat(SEEDS as usize) as u64 {
            let trace = pattern.trace(keys, CAPACITY_PERCENT, counted, seed);
            let cases: Vec<_> = rules()
                .into_iter()
                .flat_map(|(name, rule)| CORES.map(|cores| (name, rule, cores)))
                .collect();
            let ratios = run.in_parallel(
                &cases,
                |(name, _, cores)| format!("{name}, {cores} cores, seed {seed}"),
                |&(_, rule, cores)| hit_ratio(&trace, rule, cores),
            );
            for ((name, _, cores), ratio) in cases.into_iter().zip(ratios) {
                run.add(Point::new(PANEL, name, f64::from(cores), 100.0 * ratio?));
            }
        }
        Ok(())
    }
}

fn hit_ratio(trace: &Trace, rule: Rule, cores: u32) -> Result<f64> {
    let mut cache = Ours::new(trace, rule)?.seeing_reads_of_one_in(cores);
    Ok(trace.hit_ratio(&mut cache))
}
