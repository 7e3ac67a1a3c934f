//! The suite of patterns on which eviction rules are compared, and the bars for the default rule.

use anyhow::Result;
use glimmer_microbench::evict::{DEFAULT, S3_FIFO};
use glimmer_microbench::hit_ratio::{self, Options, pattern::PATTERNS};

use crate::{Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec, plot::Plot};

const ADAPTIVE: &str = "adaptive";
/// The default rule before it learned.
const S3FIFO: &str = "s3fifo";
const LRU: &str = "strict LRU";
const SIMULATED_S3FIFO: &str = "S3-FIFO";
const TINY_LFU: &str = "W-TinyLFU";
const BEST: &str = "best";
/// What the default rule has to reach.
const BAR: [&str; 2] = [LRU, SIMULATED_S3FIFO];
/// The simulated rules, as the comparison names them.
const SIMULATED: [&str; 5] = [LRU, SIMULATED_S3FIFO, "SIEVE", "ARC", TINY_LFU];
/// Points by which a row may be below the bar.
const BELOW_MAX: f64 = 1.0;
/// Panels, and the beginnings of the names of their patterns.
const PANELS: [(&str, &[&str]); 6] = [
    ("written once, read later", &["lag", "half-lag"]),
    (ZIPF, &["zipf-0", "zipf-1"]),
    (
        "scans and loops",
        &["scan", "alternating", "loop", "zipf-loop"],
    ),
    (
        "popularity that moves",
        &["shift", "drift", "circle", "news"],
    ),
    (
        "writes, and clients that only read",
        &["write", "read-only"],
    ),
    ("sizes and lifetimes", &["sizes", "lifetimes", "sessions"]),
];
const ZIPF: &str = "Zipf's law";
/// Rows of the first panel in which everything is found.
const LAGS: [&str; 7] = [
    "lag-1", "lag-5", "lag-10", "lag-20", "lag-40", "lag-60", "lag-80",
];

fn panel(pattern: &str) -> Option<&'static str> {
    let is_of = |begins: &[&str]| begins.iter().any(|begin| pattern.starts_with(begin));
    let found = PANELS.iter().find(|(_, begins)| is_of(begins));
    found.map(|(panel, _)| *panel)
}

/// The figure.
pub struct Suite;

impl Figure for Suite {
    fn spec(&self) -> Spec {
        Spec {
            name: "hit-ratio",
            title: "Hit ratios of eviction rules, %, on every pattern of requests",
            source: "bounds of this project",
            claim: "The default rule loses to nobody: on no pattern does it find noticeably less \
                    than the better of strict LRU and S3-FIFO, and on the whole it finds more than \
                    W-TinyLFU.",
            here: "The patterns, capacities and simulators are those of [`glimmer bench \
                   hit-ratio`](../benchmarking-reference.md#bench-hit-ratio): 60,000 keys, 300,000 \
                   requests to warm up and 300,000 that count. `adaptive` (the default) and \
                   `s3fifo` are rules of this store; the others are plain simulators with the same \
                   capacity, which is the percentage after the pattern's name. `best` knows the \
                   future. The result depends on the parameters alone.",
            kind: Kind::Simulated,
            needs: Needs::one_core(512),
            columns: Columns {
                panel: "patterns",
                series: "rule",
                x: "pattern, capacity",
                y: "hit ratio, %",
            },
            plot: Plot::heat(ADAPTIVE, &BAR, BELOW_MAX),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let options = Options {
            patterns: PATTERNS.into(),
            rules: vec![DEFAULT, S3_FIFO],
            keys: run.pick(60_000, 2_000),
            capacities_percent: run.pick(vec![1.0, 10.0, 50.0], vec![10.0]),
            counted: run.pick(300_000, 5_000),
            seed: 1,
        };
        let progress = |line: &str| run.say(line);
        let report = hit_ratio::run(&options, &progress)?;
        for row in &report.rows {
            let Some(panel) = panel(row.pattern) else {
                continue;
            };
            let place = format!("{}, {}%", row.pattern, row.capacity_percent);
            let ours = [ADAPTIVE, S3FIFO].into_iter().zip(row.ours.iter().copied());
            let simulated = SIMULATED
                .iter()
                .filter_map(|&name| Some((name, row.reference(name)?)));
            for (rule, ratio) in ours.chain(simulated).chain([(BEST, row.optimum)]) {
                run.add(Point::new(panel, rule, &*place, ratio * 100.0));
            }
        }
        Ok(())
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for (panel, _) in PANELS {
            let behind = rows(data, panel).map(|row| (row, row.above(&BAR)));
            let worst = behind.min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((row, points)) = worst else { continue };
            shape.at_least(
                &format!(
                    "{panel}: points above the better of {} in the worst row, {}",
                    BAR.join(" and "),
                    row.place
                ),
                "",
                Some(points),
                -BELOW_MAX,
            );
        }
        let below = all(data).filter(|row| row.above(&BAR) < -BELOW_MAX);
        let below: Vec<&str> = below.map(|row| row.place).collect();
        let total = all(data).count();
        shape.claim(
            &format!("no row of {total} is more than {BELOW_MAX} point below it"),
            "",
            match &below[..] {
                [] => "none".to_owned(),
                rows => rows.join("; "),
            },
            below.is_empty(),
            "these rows are",
        );
        let least = |points: &mut dyn Iterator<Item = f64>| points.reduce(f64::min);
        shape.at_least(
            "Zipf's law: points above `s3fifo`, the earlier default, in the worst row",
            "",
            least(&mut rows(data, ZIPF).map(|row| row.above(&[S3FIFO]))),
            -0.5,
        );
        let is_lag = |row: &Row<'_>| {
            let name = row.place.split(',').next().unwrap_or_default();
            LAGS.contains(&name)
        };
        shape.at_least(
            "read once, up to 80% of the cache later: hit ratio in the worst row",
            "",
            least(
                &mut rows(data, PANELS[0].0)
                    .filter(is_lag)
                    .map(|row| row.of(ADAPTIVE)),
            ),
            99.9,
        );
        let mean = |rule| {
            let ratios: Vec<f64> = all(data).map(|row| row.of(rule)).collect();
            ratios.iter().sum::<f64>() / ratios.len() as f64
        };
        shape.at_least(
            "mean of all rows: points above W-TinyLFU",
            "",
            (total > 0).then(|| mean(ADAPTIVE) - mean(TINY_LFU)),
            0.0,
        );
    }
}

/// A row of the suite.
#[derive(Clone, Copy)]
struct Row<'a> {
    data: &'a Data,
    panel: &'a str,
    place: &'a str,
}

impl Row<'_> {
    fn of(&self, rule: &str) -> f64 {
        let ratio = self.data.median(self.panel, rule, self.place);
        ratio.unwrap_or(f64::NAN)
    }

    /// By how many points the default rule is above the best of others.
    fn above(&self, others: &[&str]) -> f64 {
        let best = others.iter().map(|rule| self.of(rule)).fold(0.0, f64::max);
        self.of(ADAPTIVE) - best
    }
}

fn rows<'a>(data: &'a Data, panel: &'a str) -> impl Iterator<Item = Row<'a>> {
    data.line(panel, ADAPTIVE)
        .filter_map(move |row| match &row.x {
            crate::X::Word(place) => Some(Row { data, panel, place }),
            crate::X::Number(_) => None,
        })
}

fn all(data: &Data) -> impl Iterator<Item = Row<'_>> {
    PANELS.iter().flat_map(|(panel, _)| rows(data, panel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_in_a_panel_and_every_panel_has_patterns() {
        let panels: Vec<_> = PATTERNS.iter().map(|one| panel(one.name)).collect();
        assert!(panels.iter().all(Option::is_some), "{panels:?}");
        assert!(PANELS.iter().all(|(name, _)| panels.contains(&Some(*name))));
        assert_eq!(panel("zipf-loop-50"), Some(PANELS[2].0));
    }

    #[test]
    fn every_simulated_rule_is_one_that_is_compared() {
        let named = hit_ratio::reference::REFERENCES
            .iter()
            .map(|rule| rule.name);
        assert_eq!(named.collect::<Vec<_>>(), SIMULATED);
    }

    /// What fails if the default rule has these hit ratios in two rows with the bars 80 and 100.
    fn failures(zipf: f64, lag: f64) -> Vec<String> {
        let mut data = Data::default();
        for (place, adaptive, lru) in [("zipf-0.99, 10%", zipf, 80.0), ("lag-40, 10%", lag, 100.0)]
        {
            let panel = panel(place).unwrap();
            let others = SIMULATED.map(|rule| (rule, if rule == LRU { lru } else { 20.0 }));
            for (rule, ratio) in [(ADAPTIVE, adaptive), (S3FIFO, 80.0)]
                .into_iter()
                .chain(others)
            {
                data.add(Point::new(panel, rule, place, ratio));
            }
        }
        let shape = Suite.judged(&data);
        assert_eq!(shape.findings.len(), 6);
        let failures = shape.failures();
        failures.map(|finding| finding.what.clone()).collect()
    }

    #[test]
    fn a_row_that_misses_is_named() {
        assert_eq!(failures(79.6, 100.0), Vec::<String>::new());
        let failed = failures(78.9, 100.0);
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(failed[0].ends_with("in the worst row, zipf-0.99, 10%"));
        assert_eq!(failures(79.6, 98.0).len(), 3);
        assert_eq!(failures(0.0, 30.0).len(), 6);
    }
}
