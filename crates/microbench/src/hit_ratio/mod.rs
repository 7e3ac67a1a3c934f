//! Compares eviction rules by hit ratio: ours, and plain simulators of well-known rules with the
//! same capacity in items.

pub mod ours;
pub mod reference;
pub mod trace;

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use serde::Serialize;

use glimmer_measure::{machine, report::Table};
use ours::{Ours, rules};
use reference::Cache;
use trace::{Trace, Workload};

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Traces.
    pub workloads: Vec<Workload>,
    /// Keys of the traces, without those of scans.
    pub keys: u32,
    /// Cache sizes as percentages of the number of keys.
    pub capacities_percent: Vec<f64>,
    /// Measured requests. The warm-up has as many.
    pub counted: usize,
    /// Seed of the traces.
    pub seed: u64,
}

/// One rule on one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name: ours as on the command line, others as in the literature.
    pub rule: String,
    ours: bool,
    /// Hit ratios by capacity.
    pub hit_ratios: Vec<f64>,
    /// Items reinserted at a tail per hundred requests, by capacity. Only for our rules.
    reinsertions_percent: Vec<f64>,
}

/// All rules on one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    workload: String,
    /// Rows; ours come first.
    pub rows: Vec<Row>,
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    keys: u32,
    capacities_percent: Vec<f64>,
    counted: usize,
    seed: u64,
    /// In the order of the workloads.
    pub comparisons: Vec<Comparison>,
}

/// The hit ratio, and for our rules the reinsertions.
type Cell = (f64, Option<f64>);

/// Runs every rule on every workload at every capacity. The result depends only on the options.
/// `progress` receives a line for each step.
pub fn run(options: &Options, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let mut comparisons = Vec::new();
    for &workload in &options.workloads {
        progress(&format!("{}: drawing the requests", workload.name()));
        let trace = Trace::generate(workload, options.keys, options.counted, options.seed);
        let references = reference::all(1, 1).len();
        let (all, capacities) = (rules().len() + references, &options.capacities_percent);
        let cells = on_all_cores(all * capacities.len(), &|index| {
            let (rule, percent) = (
                index / capacities.len(),
                capacities[index % capacities.len()],
            );
            let capacity = (f64::from(options.keys) * percent / 100.0) as usize;
            let cell = measure(rule, capacity, &trace)?;
            let (name, hits) = (rule_name(rule), cell.0 * 100.0);
            progress(&format!(
                "{}, {percent}%: {name}: {hits:.2}%",
                workload.name()
            ));
            Ok(cell)
        })?;
        let rows = cells
            .chunks(capacities.len())
            .enumerate()
            .map(|(rule, cells)| Row {
                rule: rule_name(rule),
                ours: rule < rules().len(),
                hit_ratios: cells.iter().map(|cell| cell.0).collect(),
                reinsertions_percent: cells.iter().filter_map(|cell| cell.1).collect(),
            });
        let rows = rows.collect();
        comparisons.push(Comparison {
            workload: workload.description(options.keys),
            rows,
        });
    }
    Ok(Report {
        keys: options.keys,
        capacities_percent: options.capacities_percent.clone(),
        counted: options.counted,
        seed: options.seed,
        comparisons,
    })
}

/// The name of a rule by its index: ours first, then the references.
fn rule_name(rule: usize) -> String {
    match rules().get(rule) {
        Some(&ours) => ours::name(ours),
        None => reference::all(1, 1)[rule - rules().len()].0.to_owned(),
    }
}

fn measure(rule: usize, capacity: usize, trace: &Trace) -> Result<Cell> {
    let Some(&ours) = rules().get(rule) else {
        let (_, mut cache) =
            reference::all(capacity, trace.key_bound).swap_remove(rule - rules().len());
        return Ok((trace.hit_ratio(|key| cache.request(key)), None));
    };
    let mut cache = Ours::new(capacity, ours)?;
    let ratio = trace.hit_ratio(|key| cache.request(key));
    let reinsertions = cache.counts().reinsertions as f64 / trace.requests.len() as f64 * 100.0;
    Ok((ratio, Some(reinsertions)))
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

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "Hit ratios of {} requests, after the same number to warm up, seed {}. Capacities are \
             numbers of items, as a share of {} keys. In parentheses, for our rules: items \
             reinserted at a log's tail for every hundred requests.",
            self.counted, self.seed, self.keys
        )?;
        for Comparison { workload, rows } in &self.comparisons {
            writeln!(out, "\n{workload}\n")?;
            let capacities = self
                .capacities_percent
                .iter()
                .map(|percent| format!("{percent}%"));
            let mut table = Table::new(["rule".to_owned()].into_iter().chain(capacities));
            for row in rows {
                let name = if row.ours {
                    format!("**{}**", row.rule)
                } else {
                    row.rule.clone()
                };
                let cell = |(place, ratio): (usize, &f64)| match row.reinsertions_percent.get(place)
                {
                    Some(back) => format!("{:.2}% ({back:.1})", ratio * 100.0),
                    None => format!("{:.2}%", ratio * 100.0),
                };
                let cells = row.hit_ratios.iter().enumerate().map(cell);
                table.row([name].into_iter().chain(cells));
            }
            write!(out, "{table}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_row_for_every_rule_and_repeats() {
        let options = Options {
            workloads: vec![Workload::Zipf, Workload::Alternating],
            keys: 20_000,
            capacities_percent: vec![5.0, 20.0],
            counted: 20_000,
            seed: 5,
        };
        let report = run(&options, &|_| {}).unwrap().to_string();
        for name in ["**fifo**", "**s3fifo**", "| SIEVE", "| strict LRU"] {
            assert_eq!(report.matches(name).count(), 2, "{name} in\n{report}");
        }
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
