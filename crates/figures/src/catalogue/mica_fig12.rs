//! MICA, Figure 12: local throughput of the key-value data structures, cache and store.

use anyhow::Result;
use glimmer_microbench::store_alone::{Candidate, Mode, Ours};
use glimmer_store::evict::S3_FIFO;

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    alone::{self, Alone},
    plot::Plot,
    workload::Mix,
};

const CACHE: &str = "cache mode";
const STORE: &str = "store mode";
const ITEMS: u32 = 8_000_000;
const GETS_PERCENT: [u32; 2] = [50, 95];

/// The figure.
pub struct Local;

fn panel(skewed: bool) -> &'static str {
    if skewed { "skewed" } else { "uniform" }
}

fn place(gets_percent: u32, cores: usize) -> String {
    let plural = if cores == 1 { "" } else { "s" };
    format!("{gets_percent}% GET, {cores} core{plural}")
}

impl Figure for Local {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-fig12",
            title: "Local throughput of the data structures",
            source: "MICA (NSDI'14), Figure 12, §5.2",
            claim: "Without the network, skewed workloads have good throughput because of their \
                    locality. Cache mode and store mode show only minor differences.",
            here: "The engine runs alone under EREW, and every request arrives at its owner. There \
                   are eight million tiny items (8-byte keys and values), far more than the \
                   processor's caches hold. Cache mode uses its default eviction rule; store mode \
                   uses segregated fits and bulk chaining. The paper's machine has 16 cores and \
                   192 Mi items, so compare ratios.",
            kind: Kind::Timing,
            needs: Needs {
                cores: 1,
                cores_of_paper: 16,
                memory_mib: 3500,
                peers: &[],
            },
            columns: Columns {
                panel: "popularity",
                series: "mode",
                x: "load",
                y: "operations per s",
            },
            plot: Plot::bars("", "operations per second")
                .columns(1)
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, 50_000);
        let mut counts = vec![1, run.cores()];
        counts.dedup();
        let mut stores = Vec::new();
        for &cores in &counts {
            for (name, table) in [(CACHE, Ours::Cache(S3_FIFO)), (STORE, Ours::Store)] {
                let candidate = Candidate::Ours(table, Mode::Erew);
                let build = || candidate.build(items, cores);
                stores.push(Alone::of(run, name, items, cores, build)?);
            }
        }
        alone::rounds(
            run,
            run.repeat(5),
            &mut stores,
            &Mix::ALL,
            250,
            |store, mix, rate| {
                let place = place(mix.gets_percent, store.workers());
                Point::new(panel(mix.skewed), store.name(), place, rate)
            },
        )
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let counts = self.counts(data);
        let least = |gets: u32, skewed| {
            let ratio = |&cores: &usize| {
                let ratio = data.ratio(panel(skewed), place(gets, cores), STORE, CACHE);
                Some(ratio?.median)
            };
            counts.iter().filter_map(ratio).reduce(f64::min)
        };
        // Under skew most items are in the processor's caches, and the additional work of store
        // mode shows.
        for (gets, skewed, bound) in [
            (95, false, 0.9),
            (50, false, 0.8),
            (95, true, 0.75),
            (50, true, 0.75),
        ] {
            let popularity = panel(skewed);
            shape.at_least(
                &format!(
                    "only minor differences: lowest ratio of store mode's rate to cache \
                    mode's, {popularity}, {gets}% GET"
                ),
                "minor differences",
                least(gets, skewed),
                bound,
            );
        }
        let locality = |mode| {
            let ratio = |gets| {
                let at = place(gets, 1);
                Some(data.median("skewed", mode, at.clone())? / data.median("uniform", mode, at)?)
            };
            GETS_PERCENT
                .into_iter()
                .map(ratio)
                .collect::<Option<Vec<f64>>>()
        };
        let locality = locality(CACHE).zip(locality(STORE));
        let locality = locality.and_then(|(a, b)| a.into_iter().chain(b).reduce(f64::min));
        shape.at_least(
            "skewed keys have good throughput: lowest ratio of the skewed rate to the uniform \
             rate, one core",
            "above 1",
            locality,
            0.95,
        );
        let cores = counts.iter().copied().max().filter(|&cores| cores > 1);
        let gain = cores.and_then(|cores| {
            let more = data.median("uniform", CACHE, place(95, cores))?;
            Some(more / data.median("uniform", CACHE, place(95, 1))? / cores as f64)
        });
        shape.at_least(
            "partitions need no coordination: rate per core on all cores over the rate of one \
             core alone (cache mode, uniform, 95% GET)",
            "nearly all",
            gain,
            0.75,
        );
    }
}

impl Local {
    /// The numbers of cores in the data.
    fn counts(&self, data: &Data) -> Vec<usize> {
        let there = |&cores: &usize| data.row("uniform", CACHE, place(95, cores)).is_some();
        (1..=1024).filter(there).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of cache and store mode (uniform, one core), and the factors of skew and of a second
    /// core.
    fn failures(cache: f64, store: f64, skew: f64, second: f64) -> Vec<String> {
        let mut data = Data::default();
        for mix in Mix::ALL {
            for (cores, gain) in [(1, 1.0), (2, second)] {
                for (mode, rate) in [(CACHE, cache), (STORE, store)] {
                    let skew = if mix.skewed { skew } else { 1.0 };
                    let place = place(mix.gets_percent, cores);
                    data.add(Point::new(
                        panel(mix.skewed),
                        mode,
                        place,
                        rate * gain * skew,
                    ));
                }
            }
        }
        let mut shape = Shape::default();
        Local.judge(&data, &mut shape);
        assert_eq!(shape.findings.len(), 6);
        shape
            .failures()
            .map(|finding| finding.what.clone())
            .collect()
    }

    #[test]
    fn the_papers_shape_holds_and_others_do_not() {
        assert_eq!(failures(20.0, 19.0, 1.3, 1.9), Vec::<String>::new());
        let slow = failures(20.0, 17.0, 1.3, 1.9);
        assert!(slow.len() == 1 && slow[0].contains("95% GET"), "{slow:?}");
        assert_eq!(failures(20.0, 15.5, 1.3, 1.9).len(), 2);
        assert_eq!(failures(20.0, 14.0, 1.3, 1.9).len(), 4);
        let skew = failures(20.0, 19.0, 0.8, 1.9);
        assert!(
            skew.len() == 1 && skew[0].contains("skewed keys have"),
            "{skew:?}"
        );
        let alone = failures(20.0, 19.0, 1.3, 1.2);
        assert!(
            alone.len() == 1 && alone[0].contains("coordination"),
            "{alone:?}"
        );
    }
}
