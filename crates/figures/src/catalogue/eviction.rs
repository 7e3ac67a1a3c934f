//! Hit ratios by eviction rule: MICA's reinsertion, an objection to it, and newer rules.

use anyhow::Result;
use glimmer_microbench::evict::{FIFO as FIFO_RULE, LRU, Rule, S3_FIFO};
use glimmer_microbench::hit_ratio::{self, Options, pattern::Pattern};

use crate::{Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec, plot::Plot};

const CAPACITIES_PERCENT: [f64; 6] = [0.5, 1.0, 2.5, 5.0, 10.0, 25.0];
/// The capacity at which the claims are judged.
const JUDGED_PERCENT: f64 = 10.0;
const FIFO: &str = "fifo";
const ALWAYS: &str = "lru, threshold 0";
const HALF: &str = "lru, threshold 0.5";
const DEFAULT: &str = "lru, threshold 0.875";
const S3FIFO: &str = "s3fifo";
const STRICT: &str = "strict LRU";
const SIEVE: &str = "SIEVE";
/// This store's rules.
const OURS: [&str; 5] = [FIFO, ALWAYS, HALF, DEFAULT, S3FIFO];
/// Rules that are simulated.
const SIMULATED: [&str; 2] = [STRICT, SIEVE];
/// Patterns of requests, and what the figure calls them.
const WORKLOADS: [(&str, &str); 3] = [
    ("zipf-0.99", "Zipf 0.99"),
    ("scan", "Zipf 0.99 with scans"),
    ("alternating", "eight hot keys alternating with many"),
];

fn ours() -> [Rule; 5] {
    let [always, half] = [0.0, 0.5].map(|threshold| LRU.with_threshold(threshold));
    [FIFO_RULE, always, half, LRU, S3_FIFO]
}

/// The figure.
pub struct HitRatio;

impl Figure for HitRatio {
    fn spec(&self) -> Spec {
        Spec {
            name: "eviction",
            title: "Hit ratio by eviction rule and cache size",
            source: "MICA (NSDI'14), §4.3.1 and §5.1; Formica's review of it; no figure",
            claim: "MICA approximates LRU: an item that is read goes back to the log's tail, \
                    unless it lies in the newer half of the log. The Formica review doubts it: a \
                    workload that interleaves requests for a few keys will eventually fill the log \
                    with copies of those keys and overwrite every other item.",
            here: "A client requests keys and stores every key that it did not find. It drives \
                   this store under each of its rules, and plain simulators of strict LRU and \
                   SIEVE with room for the same number of items. A million keys, three million \
                   requests to warm up and three million that count; the result depends on the \
                   parameters alone. `lru, threshold 0` reinserts at every read, 0.5 is the \
                   paper's rule, 0.875 is this server's default for `lru`, and the server's \
                   default rule, `adaptive`, behaves as `s3fifo` here once it has learned.",
            kind: Kind::Exact,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "workload",
                series: "rule",
                x: "items in the cache, % of the keys",
                y: "hit ratio, %",
            },
            plot: Plot::lines("items in the cache, % of the keys", "hit ratio, %").log_x(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let options = Options {
            patterns: WORKLOADS
                .iter()
                .filter_map(|(pattern, _)| Pattern::named(pattern))
                .collect(),
            rules: ours().into(),
            keys: run.pick(1_000_000, 10_000),
            capacities_percent: run.pick(CAPACITIES_PERCENT.into(), vec![JUDGED_PERCENT]),
            counted: run.pick(3_000_000, 40_000),
            seed: 1,
        };
        let progress = |line: &str| run.say(line);
        let report = hit_ratio::run(&options, &progress)?;
        for row in &report.rows {
            let panel = WORKLOADS.iter().find(|(name, _)| *name == row.pattern);
            let Some(&(_, panel)) = panel else { continue };
            let simulated = SIMULATED
                .iter()
                .filter_map(|&name| Some((name, row.reference(name)?)));
            let ours = OURS.into_iter().zip(row.ours.iter().copied());
            for (rule, ratio) in ours.chain(simulated) {
                run.add(Point::new(panel, rule, row.capacity_percent, ratio * 100.0));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        let [zipf, scan, alternating] = WORKLOADS.map(|(_, panel)| panel);
        let at = |panel, rule| data.median(panel, rule, JUDGED_PERCENT);
        let lead = |panel, above, below| Some(at(panel, above)? - at(panel, below)?);
        shape.at_most(
            "this server's threshold of 0.875 avoids a log full of copies: points lost to \
             fifo, hot keys alternating with many",
            "",
            lead(alternating, FIFO, DEFAULT),
            1.0,
        );
        for (panel, least) in [(zipf, 2.0), (scan, 4.0)] {
            shape.at_least(
                &format!("{panel}: points that s3fifo gains over strict LRU"),
                "newer than the papers",
                lead(panel, S3FIFO, STRICT),
                least,
            );
        }
        shape.at_least(
            "Zipf 0.99: points that s3fifo gains over SIEVE",
            "newer than the papers",
            lead(zipf, S3FIFO, SIEVE),
            -0.5,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(always: f64, s3fifo: f64) -> Vec<String> {
        let mut data = Data::default();
        for (_, panel) in WORKLOADS {
            let ratios = [75.0, always, 74.5, 74.9, s3fifo, 75.0, 80.0];
            for (rule, ratio) in OURS.into_iter().chain(SIMULATED).zip(ratios) {
                data.add(Point::new(panel, rule, JUDGED_PERCENT, ratio));
            }
        }
        let shape = HitRatio.judged(&data);
        assert_eq!(shape.findings.len(), 4);
        shape
            .failures()
            .map(|finding| finding.what.clone())
            .collect()
    }

    #[test]
    fn the_shape_holds_and_others_do_not() {
        assert_eq!(failures(61.0, 81.0), Vec::<String>::new());
        assert_eq!(failures(61.0, 76.0).len(), 3);
    }
}
