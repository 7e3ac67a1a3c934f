//! Compares eviction rules by hit ratio: ours, plain simulators of well-known rules with the same
//! capacity, and the optimum.

pub mod ours;
pub mod pattern;
pub mod reference;
mod report;
pub mod trace;

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;

use glimmer_measure::machine;
use glimmer_store::evict::Rule;
use ours::Ours;
use pattern::{Pattern, Scale};
use reference::{REFERENCES, optimum};
pub use report::{Report, Row};
use trace::Trace;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Patterns of requests.
    pub patterns: Vec<Pattern>,
    /// Our rules.
    pub rules: Vec<Rule>,
    /// Keys of the traces, without those that are new all the time.
    pub keys: u32,
    /// Cache sizes as percentages of the number of keys, or of the bytes of all items. A pattern
    /// whose distances are shares of the capacity is measured at one of them.
    pub capacities_percent: Vec<f64>,
    /// Measured requests. The warm-up has as many.
    pub counted: usize,
    /// Seed of the traces.
    pub seed: u64,
}

/// A pattern at a capacity.
type Case = (Pattern, f64);

impl Options {
    fn cases(&self) -> Vec<Case> {
        let capacities = &self.capacities_percent;
        let middle = capacities.len() / 2;
        let cases = |&pattern: &Pattern| {
            let shown = match pattern.scale {
                Scale::Keys => &capacities[..],
                Scale::Capacity => &capacities[middle..=middle],
            };
            shown.iter().map(move |&percent| (pattern, percent))
        };
        self.patterns.iter().flat_map(cases).collect()
    }

    fn trace(&self, (pattern, percent): Case) -> Trace {
        pattern.trace(self.keys, percent, self.counted, self.seed)
    }
}

/// Runs every rule on every pattern at every capacity. The result depends only on the options.
/// `progress` receives a line for each pattern and capacity.
pub fn run(options: &Options, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let cases = options.cases();
    let rows = on_all_cores(cases.len(), &|index| {
        let (pattern, percent) = cases[index];
        let trace = options.trace(cases[index]);
        let row = measure(&options.rules, cases[index], &trace)?;
        let lru = row.references[0] * 100.0;
        let (number, all) = (index + 1, cases.len());
        progress(&format!(
            "{number} of {all}: {}, {percent}%: LRU {lru:.2}%",
            pattern.name
        ));
        Ok(row)
    })?;
    Ok(Report::new(options, rows))
}

fn measure(rules: &[Rule], (pattern, percent): Case, trace: &Trace) -> Result<Row> {
    let ours = rules.iter().map(|&rule| {
        let mut cache = Ours::new(trace, rule)?;
        let ratio = trace.hit_ratio(&mut cache);
        let reinsertions = cache.counts().reinsertions as f64 / trace.requests.len() as f64;
        Ok((ratio, reinsertions * 100.0))
    });
    let (ours, reinsertions_percent) = ours.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let reference = |rule: &reference::Reference| {
        let mut cache = (rule.cache)(trace.capacity, trace.key_bound());
        trace.hit_ratio(cache.as_mut())
    };
    Ok(Row {
        pattern: pattern.name,
        capacity_percent: percent,
        ours,
        reinsertions_percent,
        references: REFERENCES.iter().map(reference).collect(),
        optimum: optimum(trace),
    })
}

/// Runs `count` tasks, as many at a time as there are cores. Returns their results in order.
fn on_all_cores<T: Send>(
    count: usize,
    work: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            let result = work(index)?;
            results.lock().expect("no worker panics with the lock")[index] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..machine::cores()).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let results = results
        .into_inner()
        .expect("no worker panics with the lock");
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_store::evict::RULES;

    #[test]
    fn a_report_has_a_row_for_every_case_and_repeats() {
        let named = |name| Pattern::named(name).unwrap();
        let options = Options {
            patterns: ["zipf-0.99", "lag-40"].map(named).into(),
            rules: RULES.into(),
            keys: 20_000,
            capacities_percent: vec![1.0, 5.0, 20.0],
            counted: 20_000,
            seed: 5,
        };
        let report = run(&options, &|_| {}).unwrap().to_string();
        for name in ["**fifo**", "**s3fifo**", "SIEVE |", "W-TinyLFU |", "best |"] {
            assert_eq!(report.matches(name).count(), 1, "{name} in\n{report}");
        }
        assert_eq!(report.matches("| zipf-0.99").count(), 3, "{report}");
        assert_eq!(report.matches("| lag-40, 5% ").count(), 1, "{report}");
        assert_eq!(report, run(&options, &|_| {}).unwrap().to_string());
    }

    #[test]
    fn work_that_fails_fails_the_whole() {
        let work = |index| {
            if index == 3 {
                anyhow::bail!("three")
            } else {
                Ok(index)
            }
        };
        assert_eq!(on_all_cores(3, &work).unwrap(), [0, 1, 2]);
        assert_eq!(on_all_cores(9, &work).unwrap_err().to_string(), "three");
    }
}
