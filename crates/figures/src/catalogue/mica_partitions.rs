//! MICA, Figure 11: what 16 cores execute under skew, from the speed of each core's share alone.

use std::fmt;

use anyhow::{Context, Result};
use glimmer_base::Seed;
use glimmer_engine::Stages;
use glimmer_measure::stats::Spread;
use glimmer_microbench::store_alone::{Candidate, Mode, Ours, Rig, stream::Operation};
use glimmer_store::evict::S3_FIFO;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::mica_skew;
use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    placement::{HEAD, KEYS, PARTITIONS, Placement, scattered},
    plot::Plot,
    workload::Mix,
};

/// Requests for the keys of all partitions.
const REQUESTS: usize = 1 << 25;
/// Seeds of the keyhash among which the two of the figure are chosen.
const SEEDS: u64 = 200;
/// The load of the paper's hottest partition, over the average (§4.1.1).
const PAPERS_HOTTEST: f64 = 1.53;

const SKEWED: &str = "skewed";
const UNIFORM: &str = "uniform";
const LOAD: &str = "load over the average";
const NS: &str = "ns per request";
const ALL: &str = "requests per s of all 16 cores";

/// The figure.
pub struct Partitions;

/// A seed of the keyhash, by how unevenly it loads the partitions.
#[derive(Clone, Copy)]
enum Hash {
    /// As the paper's.
    Papers,
    /// The median of [`SEEDS`].
    Median,
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Hash::Papers => "the paper's imbalance",
            Hash::Median => "the median imbalance",
        })
    }
}

impl Hash {
    /// The seed, and the load of its hottest partition.
    fn seed(self) -> Result<(Seed, f64)> {
        let each = (0..SEEDS).map(|seed| (Seed(seed), mica_skew::hottest(Seed(seed))));
        let each: Vec<(Seed, f64)> = each.collect();
        let loads: Vec<f64> = each.iter().map(|(_, load)| *load).collect();
        let wanted = match self {
            Hash::Papers => PAPERS_HOTTEST,
            Hash::Median => Spread::of(&loads).median,
        };
        let distance = |load: f64| (load - wanted).abs();
        let nearest = each
            .into_iter()
            .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        nearest.context("there is no seed")
    }
}

/// A mix of requests, divided among the partitions under one hash.
struct Case {
    name: String,
    /// The requests of each partition, the most loaded first.
    skewed: Vec<Vec<Operation>>,
    uniform: Vec<Operation>,
    /// Items of a partition.
    items: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

impl Case {
    /// Draws requests for the keys of all partitions, and divides them as a server does.
    fn draw(run: &Run<'_>, hash: Hash, gets_percent: u32, keys: u64) -> Result<Case> {
        let name = format!("{gets_percent}% GET, {hash}");
        run.say(format!("{name}: drawing the requests"));
        let placement = Placement::new(hash.seed()?.0, keys);
        let (requests, items) = (run.pick(REQUESTS, 1 << 14), placement.items());
        let mut rng = SmallRng::seed_from_u64(gets_percent.into());
        let mix = Mix::new(true, gets_percent);
        let mut ranks = mix.popularity(keys as u32).sampler();
        let mut skewed = vec![Vec::new(); PARTITIONS];
        for _ in 0..requests {
            let writes = rng.random::<f64>() >= mix.get_share();
            let (partition, number) = placement.of(ranks.draw(&mut rng));
            skewed[partition].push(Operation::new(scattered(number, items), writes));
        }
        skewed.sort_by_key(|list| std::cmp::Reverse(list.len()));
        let uniform = (0..requests / PARTITIONS).map(|_| {
            let writes = rng.random::<f64>() >= mix.get_share();
            Operation::new(rng.random_range(0..items), writes)
        });
        Ok(Case {
            name,
            uniform: uniform.collect(),
            skewed,
            items,
        })
    }

    /// The rate of each partition's share alone, beside that of as many uniform requests, in turn.
    fn measure(&self, run: &Run<'_>, rig: &mut dyn Rig) -> Result<Vec<Point>> {
        let requests: usize = self.skewed.iter().map(Vec::len).sum();
        let share = |list: &Vec<Operation>| list.len() as f64 / requests as f64;
        let mut rate = |list: &Vec<Operation>| {
            let lists = std::slice::from_ref(list);
            rig.operations_per_s(lists, Stages::ALL, run.measured(150))
        };
        let (mut skewed, mut uniform) = (Vec::new(), Vec::new());
        for list in &self.skewed {
            skewed.push((share(list), rate(list)?));
            uniform.push(rate(&self.uniform)?);
        }
        // The same requests in each partition: their speeds differ by noise only.
        let even = (1.0 / PARTITIONS as f64, Spread::of(&uniform).median);
        let mut points = of_all(&self.name, SKEWED, &skewed);
        points.extend(of_all(&self.name, UNIFORM, &[even; PARTITIONS]));
        Ok(points)
    }
}

/// What each core executes when the first of them to be busy is busy, from the share of each in the
/// requests, and its rate.
fn of_all(panel: &str, series: &str, cores: &[(f64, f64)]) -> Vec<Point> {
    let permitted = cores.iter().map(|(share, rate)| rate / share);
    let all = permitted.fold(f64::INFINITY, f64::min);
    let point = |(place, (share, rate)): (usize, &(f64, f64))| {
        Point::new(panel, series, (place + 1).to_string(), all * share)
            .also(LOAD, share * PARTITIONS as f64)
            .also(NS, 1e9 / rate)
            .also(ALL, all)
    };
    cores.iter().enumerate().map(point).collect()
}

impl Figure for Partitions {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-partitions",
            title: "What 16 cores execute under skew, from the share of each alone",
            source: "MICA (NSDI'14), Figure 11, §3.1, §4.1.1 and §5.2; the Formica review",
            claim: "The hottest of 16 partitions has 1.53 times the average load. Its hot items \
                    stay in the processor's caches, and its packets come in larger bursts, so its \
                    core is faster, and several cores execute more requests than with uniform \
                    keys. The throughput under skew is 86% of that with uniform keys.",
            here: "Requests are drawn for 192 Mi keys of tiny items and divided among 16 \
                   partitions as a server divides them. The share of each partition then runs \
                   alone, on one core, through the engine and a table of 12 Mi items in cache mode \
                   under EREW. Popular items do not lie beside one another. 16 cores, each with \
                   one partition, execute what the first of them to be busy permits: its rate over \
                   its share of the requests. The bars are what each core then executes. Two \
                   hashes are shown, of 200: one whose hottest partition has the paper's load, and \
                   one that has the median. A server pays for packets as well, which caches do not \
                   make cheaper and bursts do; they have no part in this. Neither has what 16 \
                   cores take from one another: the core has the processor's last cache for \
                   itself, where eight of the paper's share one of 20 MiB.",
            kind: Kind::Timing,
            needs: Needs::one_core(2500),
            columns: Columns {
                panel: "panel",
                series: "popularity",
                x: "core, most loaded first",
                y: "requests per s of the core",
            },
            plot: Plot::bars("core, most loaded first", "requests per second of the core")
                .columns(1)
                .shared_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let keys = run.pick(KEYS, HEAD + 100_000);
        let mut cases = Vec::new();
        for hash in [Hash::Papers, Hash::Median] {
            for gets_percent in [50, 95] {
                cases.push(Case::draw(run, hash, gets_percent, keys)?);
            }
        }
        // The partitions of two hashes differ by a thousandth in their items.
        let items = cases.iter().map(|case| case.items).max().unwrap_or(0);
        run.say(format!("storing {items} items"));
        let candidate = Candidate::Ours(Ours::Cache(S3_FIFO), Mode::Erew);
        let mut rig = candidate.build(items, 1)?;
        run.rounds_of_many(run.repeat(5), &mut cases, |case, run, _| {
            case.measure(run, &mut *rig)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_busy_core_limits_all() {
        // The first core has twice the load of the others, and is only half as fast again.
        let cores = [(0.5, 15.0), (0.25, 10.0), (0.25, 12.0)];
        let points = of_all("", SKEWED, &cores);
        let mut data = crate::Data::default();
        points.into_iter().for_each(|point| data.add(point));
        let executed = ["1", "2", "3"].map(|core| data.median("", SKEWED, core).unwrap());
        assert_eq!(executed, [15.0, 7.5, 7.5]);
        assert_eq!(data.rows[2].also(ALL), Some(30.0));
    }
}
