//! MICA §4.1.1: the imbalance of partitions under skewed keys. Computed, not sampled.

use std::thread;

use anyhow::Result;
use glimmer_base::Seed;
use glimmer_measure::machine;

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    placement::{EXPONENT, HEAD, KEYS, PARTITIONS},
    plot::{Mark, Plot},
};

/// The seed whose partitions are shown.
const SHOWN: Seed = Seed(0);

const LOADS: &str = "one seed: load of each partition";
const SEEDS: &str = "hottest partition, over seeds of the keyhash";
const KEYHASH: &str = "keyhash";
const HOTTEST_KEY: &str = "hottest key over the average key";
/// Quantiles over the seeds of the load of the hottest partition.
const QUANTILES: [(&str, f64); 5] = [
    ("smallest", 0.0),
    ("5%", 0.05),
    ("median", 0.5),
    ("95%", 0.95),
    ("largest", 1.0),
];

/// The figure.
pub struct PartitionSkew;

impl Figure for PartitionSkew {
    fn spec(&self) -> Spec {
        Spec {
            name: "mica-skew",
            title: "Load of partitions when keys follow Zipf's law",
            source: "MICA (NSDI'14), §4.1.1; a number in the text, no figure",
            claim: "With 192 Mi keys under Zipf 0.99, the most popular key is requested 9.3 \
                    million times as often as the average key. Hashed into 16 partitions, the most \
                    popular partition gets only 53% more requests than the average partition.",
            here: "The result is computed from Zipf's law and this project's keyhash: the exact \
                   probability of each key is added to its partition, and nothing is sampled. The \
                   right panel repeats the computation for many seeds of the keyhash. It shows \
                   that 53% is a lucky hash. The hottest key alone causes 4.6% of all requests, \
                   and with most seeds the hottest partition is about 65% above the average.",
            kind: Kind::Exact,
            needs: Needs::one_core(64),
            columns: Columns {
                panel: "panel",
                series: "series",
                x: "partition or quantile",
                y: "load over the average partition's",
            },
            plot: Plot::bars("", "times the average partition").paper(
                "MICA §4.1.1: the most popular of 16 partitions is 53% above the average",
                vec![Mark::bar(LOADS, KEYHASH, "1", 1.53)],
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let head = run.pick(KEYS, HEAD);
        run.say(format!("the partitions of {head} keys"));
        let mut shown = loads_of_all(SHOWN, head);
        shown.sort_by(|a, b| b.total_cmp(a));
        let hottest_key = KEYS as f64 / normalisation();
        for (place, load) in shown.iter().enumerate() {
            let x = (place + 1).to_string();
            run.add(Point::new(LOADS, KEYHASH, x, *load).also(HOTTEST_KEY, hottest_key));
        }
        let seeds = run.pick(1000, 200);
        run.say(format!("the hottest partition under {seeds} seeds"));
        let mut hottest: Vec<f64> = (0..seeds).map(|seed| hottest(Seed(seed))).collect();
        hottest.sort_by(f64::total_cmp);
        for (name, quantile) in QUANTILES {
            let place = (quantile * (hottest.len() - 1) as f64).round() as usize;
            run.add(Point::new(SEEDS, KEYHASH, name, hottest[place]));
        }
        Ok(())
    }
}

/// The load of the hottest partition.
pub fn hottest(seed: Seed) -> f64 {
    let loads = loads(seed, 1, HEAD, rest_beyond(HEAD));
    loads.into_iter().fold(0.0, f64::max)
}

/// The sum of `rank^-exponent` over the ranks from `from` to `to`, by the Euler-Maclaurin formula.
/// Exact to ten digits from rank 1000 on.
fn sum(from: u64, to: u64) -> f64 {
    let (a, b) = (from as f64, to as f64);
    let integral = (b.powf(1.0 - EXPONENT) - a.powf(1.0 - EXPONENT)) / (1.0 - EXPONENT);
    let ends = (a.powf(-EXPONENT) + b.powf(-EXPONENT)) / 2.0;
    let slopes = EXPONENT * (a.powf(-EXPONENT - 1.0) - b.powf(-EXPONENT - 1.0)) / 12.0;
    integral + ends + slopes
}

/// The normalisation of all probabilities.
fn normalisation() -> f64 {
    const PLAIN: u64 = 1000;
    let first: f64 = (1..PLAIN).map(|rank| (rank as f64).powf(-EXPONENT)).sum();
    first + sum(PLAIN, KEYS)
}

/// The probability of all keys beyond a rank.
fn rest_beyond(rank: u64) -> f64 {
    match rank < KEYS {
        true => sum(rank + 1, KEYS) / normalisation(),
        false => 0.0,
    }
}

/// Loads relative to the average: the keys of ranks `from` to `to` placed by the hash, and `rest`
/// spread evenly.
fn loads(seed: Seed, from: u64, to: u64, rest: f64) -> [f64; PARTITIONS] {
    let mut sums = [0.0; PARTITIONS];
    for rank in from..=to {
        let key = rank.to_le_bytes();
        sums[seed.keyhash(&key).partition(PARTITIONS)] += (rank as f64).powf(-EXPONENT);
    }
    let scale = PARTITIONS as f64 / normalisation();
    sums.map(|sum| sum * scale + rest)
}

/// The same for the first `head` ranks, computed on all cores.
fn loads_of_all(seed: Seed, head: u64) -> [f64; PARTITIONS] {
    let threads = machine::cores() as u64;
    let mut all = [rest_beyond(head); PARTITIONS];
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let (from, to) = (head * part / threads + 1, head * (part + 1) / threads);
                scope.spawn(move || loads(seed, from, to, 0.0))
            })
            .collect();
        for part in parts {
            let part = part
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.iter_mut()
                .zip(part)
                .for_each(|(all, part)| *all += part);
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_its_terms() {
        let plain: f64 = (5000..=90_000u64)
            .map(|rank| (rank as f64).powf(-EXPONENT))
            .sum();
        assert!((sum(5000, 90_000) - plain).abs() < 1e-9, "{plain}");
    }

    #[test]
    fn loads_add_up_and_do_not_depend_on_threads() {
        let head = 10_000;
        let all = loads_of_all(Seed(3), head);
        let one = loads(Seed(3), 1, head, rest_beyond(head));
        let total: f64 = all.iter().sum();
        assert!((total - PARTITIONS as f64).abs() < 1e-9, "{total}");
        assert!(all.iter().zip(one).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
