//! MICA, Figure 12: local throughput of the key-value data structures, cache and store.

use anyhow::Result;
use glimmer_microbench::store_alone::{Candidate, Mode, Ours};
use glimmer_store::evict::S3_FIFO;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    alone::{self, Alone},
    plot::Plot,
    workload::Mix,
};

const CACHE: &str = "cache mode";
const STORE: &str = "store mode";
const ITEMS: u32 = 8_000_000;

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
                   processor's caches hold. Cache mode has the eviction rule S3-FIFO, which was \
                   the default before `adaptive`; store mode uses segregated fits and bulk \
                   chaining. The paper's machine has 16 cores and 192 Mi items, so compare ratios.",
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
}
